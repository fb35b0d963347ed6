"""Values as a column's declaration may hold them, each refused with its fix where it is odd."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import unicodedata
from typing import Annotated, Any

from pydantic import BeforeValidator

from include.config.base import fault
from include.config.errors import quoted
from include.config.periods import count_periods

MAX_LEVELS = 4096
"""Most levels of one column. Every pair of columns is a table of the product of their levels."""


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
WholeOrNone = Annotated[
    int | None, BeforeValidator(lambda value: None if value is None else _whole(value))
]
Number = Annotated[float, BeforeValidator(_number)]


def check_bins(lower: list[Any], low: Any, high: Any) -> None:
    """Refuse bins that are empty, too many, not rising, or not between the bounds.

    Privacy: ledger only.
    """
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


def check_periods(low: dt.date, high: dt.date, resolution: str) -> None:
    """Refuse bounds that cross, span too many periods, or lie outside 1678 to 2261.

    Privacy: ledger only.
    """
    if not dt.date(1678, 1, 1) <= dt.date(low.year, low.month, low.day):
        fault("min is before the year 1678; declare a later bound")
    if high.year > 2261:
        fault("max is after the year 2261; declare an earlier bound")
    if high < low:
        fault("max is before min; exchange them")
    if count_periods(low, high, resolution) > MAX_LEVELS:
        fault(f"more than {MAX_LEVELS} periods of one {resolution}; declare a coarser resolution")


CategoryValues = Annotated[tuple[str, ...], BeforeValidator(_category_values)]
WholeBins = Annotated[int | list[int], BeforeValidator(_whole_bins)]
NumberBins = Annotated[int | list[float], BeforeValidator(_number_bins)]
