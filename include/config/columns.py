"""One column of a dataset: its type, its public domain, and what happens to a cell outside it.

Everything here is declared by the steward from public knowledge. Nothing is learnt from rows.
"""

from __future__ import annotations

import datetime as dt
import itertools
import math
import unicodedata
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from include.config.base import ColumnName, ConfigModel, fault
from include.config.errors import quoted

MAX_LEVELS = 4096
"""Most levels of one column. Every pair of columns is a table of the product of their levels."""

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


def _category_values(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        fault("values is empty or not a list; write values: [a, b, ...]")
    if len(value) > MAX_LEVELS:
        fault(f"more than {MAX_LEVELS} values; group them into fewer categories")
    texts = [_category_text(item) for item in value]
    plain = [unicodedata.normalize("NFC", text.strip()) for text in texts]
    for text in plain:
        if plain.count(text) > 1:
            fault(f"the value {quoted(text)} is listed twice; remove one")
    return tuple(texts)


def _category_text(item: Any) -> str:
    if isinstance(item, bool):
        fault(
            f"the value {str(item).lower()} without quotes is a truth value; "
            "write it in quotes or use `type: boolean`"
        )
    if item is None:
        fault("an empty value in the list; remove it and write `nullable: true`")
    if isinstance(item, float):
        fault(f"the value {item!r} is read as a binary float; write it in quotes")
    if not isinstance(item, str | int):
        fault("a value in the list is itself a list or a block; write plain texts")
    text = str(item)
    if not text.strip():
        fault("a blank value in the list; remove it and write `nullable: true`")
    return text


class CategoryColumn(_Column):
    """A column of named values, compared as text.

    Privacy: ledger only.
    """

    type: Literal["category"]
    values: Annotated[tuple[str, ...], BeforeValidator(_category_values)]

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


def _whole(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int):
        fault(f"{quoted(value)} is not a whole number; write it without quotes or decimals")
    if abs(value) >= 2**53:
        fault("the number is beyond 2^53; declare a smaller bound")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        fault(f"{quoted(value)} is not a number; write it without quotes")
    if not math.isfinite(value):
        fault("the number is NaN or infinite; declare a finite bound")
    return float(value)


def _whole_bins(value: Any) -> Any:
    return [_whole(item) for item in value] if isinstance(value, list) else _whole(value)


def _number_bins(value: Any) -> Any:
    return [_number(item) for item in value] if isinstance(value, list) else _whole(value)


Whole = Annotated[int, BeforeValidator(_whole)]
Number = Annotated[float, BeforeValidator(_number)]


def _check_bins(lower: list[Any], low: Any, high: Any) -> None:
    if not lower:
        fault("bins is empty; list the lower end of each bin, or a number of equal bins")
    if len(lower) > MAX_LEVELS:
        fault(f"more than {MAX_LEVELS} bins; declare fewer")
    if any(b <= a for a, b in itertools.pairwise(lower)):
        fault("bins do not rise; list the lower end of each bin in increasing order")
    if lower[0] != low:
        fault(f"the first bin begins at {lower[0]:g}, not at min {low:g}; make them equal")
    if lower[-1] > high:
        fault(f"a bin begins at {lower[-1]:g}, above max {high:g}; remove it or raise max")


class IntegerColumn(_Numeric):
    """Whole numbers between two public bounds, each a level or gathered in bins.

    `bins` lists the lower end of each bin (the last one ends at `max`), or is a number of bins of
    nearly equal width. Without it every whole number is a level of its own.

    Privacy: ledger only.
    """

    type: Literal["integer"]
    min: Whole
    max: Whole
    bins: Annotated[int | list[int], BeforeValidator(_whole_bins)] | None = None

    @model_validator(mode="after")
    def _check_levels(self) -> IntegerColumn:
        if self.max < self.min:
            fault(f"max {self.max} is below min {self.min}; exchange them")
        if isinstance(self.bins, int) and not 1 <= self.bins <= MAX_LEVELS:
            fault(f"bins must be from 1 to {MAX_LEVELS}; declare another number of bins")
        if self.bins is None and self.max - self.min >= MAX_LEVELS:
            fault(f"more than {MAX_LEVELS} whole numbers between min and max; declare bins")
        _check_bins(self.lower_ends, self.min, self.max)
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
    bins: Annotated[int | list[float], BeforeValidator(_number_bins)]
    decimals: int | None = Field(default=None, ge=0, le=12)

    @model_validator(mode="after")
    def _check_levels(self) -> FloatColumn:
        if self.max <= self.min:
            fault(f"max {self.max:g} is not above min {self.min:g}; widen the bounds")
        if isinstance(self.bins, int) and not 1 <= self.bins <= MAX_LEVELS:
            fault(f"bins must be from 1 to {MAX_LEVELS}; declare another number of bins")
        _check_bins(self.lower_ends, self.min, self.max)
        if self.lower_ends[-1] == self.max:
            fault("the last bin begins at max and would be empty; remove it (bins are lower ends)")
        return self

    @property
    def lower_ends(self) -> list[float]:
        """The lower end of each bin, rising; the first is `min`."""
        if isinstance(self.bins, list):
            return list(self.bins)
        step = (self.max - self.min) / self.bins
        return [self.min + i * step for i in range(self.bins)]


def _date(value: Any) -> dt.date:
    if isinstance(value, dt.datetime):
        return value.date()
    if isinstance(value, dt.date):
        return value
    try:
        return dt.date.fromisoformat(str(value))
    except ValueError:
        fault(f"{quoted(value)} is not a date; write it as 2024-12-31")


def _moment(value: Any) -> dt.datetime:
    if isinstance(value, dt.datetime):
        moment = value
    elif isinstance(value, dt.date):
        moment = dt.datetime(value.year, value.month, value.day)
    else:
        try:
            moment = dt.datetime.fromisoformat(str(value))
        except ValueError:
            fault(f"{quoted(value)} is not a date and time; write it as 2024-12-31T23:00")
    if moment.tzinfo is not None:
        fault("the bound carries a time zone; write it in UTC without one (cells are read as UTC)")
    return moment


Day = Annotated[dt.date, BeforeValidator(_date)]
Moment = Annotated[dt.datetime, BeforeValidator(_moment)]
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
        _check_periods(self.min, self.max, self.resolution)
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
        _check_periods(self.min, self.max, self.resolution)
        return self


def _check_periods(low: dt.date, high: dt.date, resolution: str) -> None:
    if not dt.date(1678, 1, 1) <= dt.date(low.year, low.month, low.day):
        fault("min is before the year 1678; declare a later bound")
    if high.year > 2261:
        fault("max is after the year 2261; declare an earlier bound")
    if high < low:
        fault("max is before min; exchange them")
    if count_periods(low, high, resolution) > MAX_LEVELS:
        fault(f"more than {MAX_LEVELS} periods of one {resolution}; declare a coarser resolution")


def period_index(moment: dt.date, resolution: str) -> int:
    """Return the number of whole periods between a fixed origin and a moment.

    Args:
        moment: a date, or a datetime for the resolutions hour and minute.
        resolution: minute, hour, day, month, quarter or year.

    Privacy: ledger only.
    """
    months = moment.year * 12 + moment.month - 1
    coarse = {"month": months, "quarter": months // 3, "year": moment.year}
    if resolution in coarse:
        return coarse[resolution]
    if resolution == "day" or not isinstance(moment, dt.datetime):
        return moment.toordinal()
    hours = moment.toordinal() * 24 + moment.hour
    return hours if resolution == "hour" else hours * 60 + moment.minute


def count_periods(low: dt.date, high: dt.date, resolution: str) -> int:
    """Return how many periods two moments span, both ends counted.

    Privacy: ledger only.
    """
    return period_index(high, resolution) - period_index(low, resolution) + 1


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


ModelledColumn = CategoryColumn | BooleanColumn | IntegerColumn | FloatColumn | DateColumn
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

COLUMN_TYPES = ("category", "boolean", "integer", "float", "date", "datetime", "key")
ColumnNames = tuple[ColumnName, ...]
