"""One column of a dataset: its type, its public domain, and what happens to a cell outside it.

Everything here is declared by the steward from public knowledge. Nothing is learnt from rows.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field, model_validator

from include.config.base import ConfigModel, fault
from include.config.scalars import (
    MAX_LEVELS,
    CategoryValues,
    Day,
    Moment,
    Number,
    NumberBins,
    Whole,
    WholeBins,
    WholeOrNone,
    check_bins,
    check_periods,
)

Outside = Literal["clamp", "other", "null", "drop"]
OTHER = "other"


class _Column(ConfigModel):
    """What every modelled column may say.

    Privacy: ledger only.
    """

    nullable: bool = False
    outside: Outside | None = None
    source_column: str | None = None
    stored_as: Literal["text"] | None = None  # the source keeps it as text on purpose
    description: str | None = None
    sensitive: bool = False

    @model_validator(mode="after")
    def _outside_needs_a_place(self) -> _Column:
        if self.outside == "null" and not self.nullable:
            fault("outside: null needs `nullable: true`; add it or choose drop")
        return self

    @property
    def outside_rule(self) -> Outside:
        """What a value outside the domain becomes, with the default filled in."""
        return self.outside or ("null" if self.nullable else "drop")


class CategoryColumn(_Column):
    """A column of named values, compared as text.

    Privacy: ledger only.
    """

    type: Literal["category"]
    values: CategoryValues

    @model_validator(mode="after")
    def _no_clamp(self) -> CategoryColumn:
        if self.outside == "clamp":
            fault("a category cannot be clamped; choose outside: other, null or drop")
        return self


class BooleanColumn(_Column):
    """A column of true and false (yes/no, t/f and 1/0 are read as such).

    Privacy: ledger only.
    """

    type: Literal["boolean"]

    @model_validator(mode="after")
    def _only_null_or_drop(self) -> BooleanColumn:
        if self.outside in {"clamp", "other"}:
            fault("a boolean has no level for other values; choose outside: null or drop")
        return self


class _Numeric(_Column):
    """Bounds and bins shared by whole and decimal numbers.

    Privacy: ledger only.
    """

    @property
    def outside_rule(self) -> Outside:
        """What a number outside the bounds becomes: clamped unless declared otherwise."""
        return self.outside or "clamp"

    @model_validator(mode="after")
    def _no_other(self) -> _Numeric:
        if self.outside == "other":
            fault("a number has no level for other values; choose outside: clamp, null or drop")
        return self


class IntegerColumn(_Numeric):
    """Whole numbers between two public bounds, each a level or gathered in bins.

    `bins` lists the lower end of each bin (the last one ends at `max`), or is a number of bins of
    nearly equal width. Without it every whole number is a level of its own.

    Privacy: ledger only.
    """

    type: Literal["integer"]
    min: Whole
    max: Whole
    bins: WholeBins | None = None

    @model_validator(mode="after")
    def _check_levels(self) -> IntegerColumn:
        if self.max < self.min:
            fault(f"max {self.max} is below min {self.min}; exchange them")
        if isinstance(self.bins, int) and not 1 <= self.bins <= MAX_LEVELS:
            fault(f"bins must be from 1 to {MAX_LEVELS}; declare another number of bins")
        if self.bins is None and self.max - self.min >= MAX_LEVELS:
            fault(f"more than {MAX_LEVELS} whole numbers between min and max; declare bins")
        check_bins(self.lower_ends, self.min, self.max)
        return self

    @property
    def lower_ends(self) -> list[int]:
        """The lower end of each bin, rising; the first is `min`."""
        if isinstance(self.bins, list):
            return list(self.bins)
        width = self.max - self.min + 1
        count = min(width, self.bins or width)
        return [self.min + (i * width) // count for i in range(count)]


class FloatColumn(_Numeric):
    """Decimal numbers between two public bounds, gathered in declared bins.

    Privacy: ledger only.
    """

    type: Literal["float"]
    min: Number
    max: Number
    bins: NumberBins
    decimals: WholeOrNone = Field(default=None, ge=0, le=12)

    @model_validator(mode="after")
    def _check_levels(self) -> FloatColumn:
        if self.max <= self.min:
            fault(f"max {self.max:g} is not above min {self.min:g}; widen the bounds")
        if isinstance(self.bins, int) and not 1 <= self.bins <= MAX_LEVELS:
            fault(f"bins must be from 1 to {MAX_LEVELS}; declare another number of bins")
        check_bins(self.lower_ends, self.min, self.max)
        if self.lower_ends[-1] == self.max:
            fault("the last bin begins at max and would be empty; remove it (bins are lower ends)")
        for (first, last), low in zip(self.written or (), self.lower_ends, strict=False):
            if first > last:
                fault(
                    f"decimals: no number of {self.decimals} decimals lies in the bin that begins "
                    f"at {low:g}; declare more decimals or wider bins"
                )
            if max(abs(first), abs(last)) > 2**53:
                fault("decimals: more digits than a number holds; declare fewer")
        return self

    @property
    def lower_ends(self) -> list[float]:
        """The lower end of each bin, rising; the first is `min`."""
        if isinstance(self.bins, list):
            return list(self.bins)
        step = (self.max - self.min) / self.bins
        # Binary division leaves 0.30000000000000004 where 0.3 is meant.
        digits = 13 - math.ceil(math.log10(max(abs(self.min), abs(self.max))))
        return [self.min, *(round(self.min + i * step, digits) for i in range(1, self.bins))]

    @property
    def written(self) -> list[tuple[int, int]] | None:
        """For each bin the first and last number that may be written, in units of 10^-decimals.

        None where `decimals` is not declared. A bin ends before the next one begins, so that codes
        survive a round trip; the last one ends at `max`.
        """
        if self.decimals is None:
            return None
        unit = 10**self.decimals
        lower = self.lower_ends
        first = [_nearest(low, unit) for low in lower]
        first = [n + (n / unit < low) for n, low in zip(first, lower, strict=True)]
        last = [_nearest(high, unit) for high in (*lower[1:], self.max)]
        last = [n - (n / unit >= high) for n, high in zip(last, lower[1:], strict=False)] + [
            last[-1] - (last[-1] / unit > self.max)
        ]
        return list(zip(first, last, strict=True))


def _nearest(number: float, unit: int) -> int:
    return round(Fraction(number) * unit)


DateResolution = Literal["day", "month", "quarter", "year"]
MomentResolution = Literal["minute", "hour", "day", "month", "quarter", "year"]


class DateColumn(_Numeric):
    """Dates between two public bounds, known to a declared resolution.

    Privacy: ledger only.
    """

    type: Literal["date"]
    min: Day
    max: Day
    resolution: DateResolution

    @model_validator(mode="after")
    def _check_levels(self) -> DateColumn:
        check_periods(self.min, self.max, self.resolution)
        return self


class DateTimeColumn(_Numeric):
    """Moments (UTC) between two public bounds, known to a declared resolution.

    Privacy: ledger only.
    """

    type: Literal["datetime"]
    min: Moment
    max: Moment
    resolution: MomentResolution

    @model_validator(mode="after")
    def _check_levels(self) -> DateTimeColumn:
        check_periods(self.min, self.max, self.resolution)
        return self


class KeyColumn(ConfigModel):
    """A column of identifiers: never modelled; a fresh running number stands in its place.

    Privacy: ledger only.
    """

    type: Literal["key"]
    replace: Literal["surrogate", "drop"] = "surrogate"
    source_column: str | None = None
    stored_as: Literal["text"] | None = None
    description: str | None = None

    @property
    def nullable(self) -> bool:
        """A surrogate is never missing."""
        return False


ColumnConfig = Annotated[
    CategoryColumn
    | BooleanColumn
    | IntegerColumn
    | FloatColumn
    | DateColumn
    | DateTimeColumn
    | KeyColumn,
    Field(discriminator="type"),
]

ORDERED_TYPES = ("integer", "float", "date", "datetime")
"""Types whose levels have an order, so that neighbouring ones can be gathered in bins."""

COLUMN_TYPES = ("category", "boolean", "integer", "float", "date", "datetime", "key")
