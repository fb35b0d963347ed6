"""Cells to codes, one column at a time.

Each code is a function of its own cell and the declarations only. No other row, chunk or file may
change it: the fast path for a chunk is the only path, also when a cell in it does not parse.
"""

from __future__ import annotations

import datetime as dt
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from include.config.columns import (
    CategoryColumn,
    DateColumn,
    DateTimeColumn,
    FloatColumn,
    IntegerColumn,
)
from include.config.periods import period_index
from include.data.schema import DROP, Column

Codes = npt.NDArray[np.int32]

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"
_TRUE = frozenset({"true", "t", "yes", "y", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "0"})

# What a cell may be besides a level: its column's policy turns each into a code.
MISSING, STRAY, BELOW, ABOVE = -2, -3, -4, -5


def column_codes(column: Column, array: pa.Array) -> Codes:
    """Return the code of each cell, with the column's policy applied.

    Args:
        column: the declared column.
        array: its cells, shape (rows,), of any storage type.

    Returns:
        int32 codes, shape (rows,); DROP where the row is to be left out.

    Privacy: reads raw data.
    """
    return _apply_policy(column, raw_codes(column, array))


def raw_codes(column: Column, array: pa.Array) -> Codes:
    """Return a level or one of MISSING, STRAY, BELOW, ABOVE for each cell, before any policy.

    Privacy: reads raw data.
    """
    config = column.config
    if isinstance(config, CategoryColumn):
        index = {_plain(value): i for i, value in enumerate(config.values)}
        return _by_unique(as_text(array), lambda text: _category(_plain(text), index))
    if isinstance(config, IntegerColumn | FloatColumn):
        return _number_codes(config, as_number(array))
    if isinstance(config, DateColumn | DateTimeColumn):
        return _period_codes(config, array)
    return _by_unique(as_text(array), _truth)


def _category(text: str, index: dict[str, int]) -> int:
    """Find a value; a whole number that a tool wrote with ".0" is that whole number."""
    if text not in index and text.endswith(".0"):
        text = text[:-2]
    return index.get(text, STRAY)


def _apply_policy(column: Column, raw: Codes) -> Codes:
    codes = raw.copy()
    codes[raw == MISSING] = column.missing_cell
    codes[raw == STRAY] = column.stray_cell
    for mark, edge in ((BELOW, 0), (ABOVE, column.declared - 1)):
        codes[raw == mark] = edge if column.outside == "clamp" else column.stray_cell
    return codes


def as_text(array: pa.Array) -> pa.Array:
    """Return cells as text: whole floats without ".0", truth values as true/false, NaN missing.

    Privacy: reads raw data.
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        return as_text(array.dictionary_decode())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array
    if pa.types.is_string_view(kind):
        return pc.cast(array, pa.string())
    if pa.types.is_floating(kind):
        return _float_text(array)
    if pa.types.is_decimal(kind):
        text = pc.cast(array, pa.string())
        return _by_unique_text(text, _short_decimal)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        values = [None if v is None else v.decode("utf-8", "replace") for v in array.to_pylist()]
        return pa.array(values, pa.string())
    try:
        return pc.cast(array, pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # lists, blocks, durations
        texts = [None if v is None else str(v) for v in array.to_pylist()]
        return pa.array(texts, pa.string())


def _float_text(array: pa.Array) -> pa.Array:
    numbers = array.to_numpy(zero_copy_only=False).astype(np.float64)
    whole = np.isfinite(numbers) & (np.floor(numbers) == numbers) & (np.abs(numbers) < 2**53)
    safe = np.where(whole, numbers, 0).astype(np.int64)
    as_int = pc.cast(pa.array(safe), pa.string())
    as_float = pc.cast(pa.array(numbers), pa.string())
    text = pc.if_else(pa.array(whole), as_int, as_float)
    return pc.if_else(pa.array(np.isnan(numbers)), pa.scalar(None, pa.string()), text)


def _short_decimal(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text.strip())


def _by_unique_text(array: pa.Array, change: Callable[[str], str]) -> pa.Array:
    encoded = array.dictionary_encode()
    changed = pa.array([None if v is None else change(v) for v in encoded.dictionary.to_pylist()])
    return pc.take(changed, encoded.indices) if len(changed) else array


def _by_unique(texts: pa.Array, code_of: Callable[[str], int]) -> Codes:
    """Code each distinct text once; blank counts as missing."""
    encoded = texts.dictionary_encode()
    values = encoded.dictionary.to_pylist()
    table = np.array(
        [code_of(v) if v is not None and v.strip() else MISSING for v in values] + [MISSING],
        dtype=np.int32,
    )
    indices = pc.fill_null(encoded.indices, len(values)).to_numpy(zero_copy_only=False)
    codes: Codes = table[indices]
    return codes


def _truth(text: str) -> int:
    word = text.strip().casefold()
    return 1 if word in _TRUE else 0 if word in _FALSE else STRAY


def as_number(array: pa.Array) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
    """Return cells as float64 and what each is: 0 a number, MISSING or STRAY.

    Privacy: reads raw data.
    """
    kind = array.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        missing = array.is_null().to_numpy(zero_copy_only=False)
        filled = array.fill_null(0) if array.null_count else array
        numbers = filled.to_numpy(zero_copy_only=False).astype(np.float64)
        missing = missing | np.isnan(numbers)
        return np.where(missing, 0.0, numbers), np.where(missing, MISSING, 0).astype(np.int32)
    if pa.types.is_boolean(kind):
        return as_number(pc.cast(array, pa.int8()))
    text = pc.utf8_trim_whitespace(as_text(array))
    good = pc.fill_null(pc.match_substring_regex(text, _NUMBER), False)
    numbers = pc.cast(pc.if_else(good, text, pa.scalar("0", text.type)), pa.float64())
    blank = pc.or_(text.is_null(), pc.fill_null(pc.equal(text, ""), True))
    state = np.where(
        blank.to_numpy(zero_copy_only=False),
        MISSING,
        np.where(good.to_numpy(zero_copy_only=False), 0, STRAY),
    )
    return numbers.to_numpy(zero_copy_only=False), state.astype(np.int32)


def _number_codes(
    config: IntegerColumn | FloatColumn,
    cells: tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]],
) -> Codes:
    numbers, state = cells
    lower = np.asarray(config.lower_ends, dtype=np.float64)
    codes = (np.searchsorted(lower, numbers, side="right") - 1).astype(np.int32)
    codes[numbers < config.min] = BELOW
    codes[numbers > config.max] = ABOVE
    if isinstance(config, IntegerColumn):
        codes[np.isfinite(numbers) & (np.floor(numbers) != numbers)] = STRAY
    bad = state != 0
    codes[bad] = state[bad]
    return codes


def _period_codes(config: DateColumn | DateTimeColumn, array: pa.Array) -> Codes:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _period_codes(config, array.dictionary_decode())
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _from_moments(config, array)
    origin, last = _ends(config)
    return _by_unique(as_text(array), lambda text: _text_period(text, config, origin, last))


def _ends(config: DateColumn | DateTimeColumn) -> tuple[int, int]:
    return (
        period_index(config.min, config.resolution),
        period_index(config.max, config.resolution),
    )


def _text_period(text: str, config: DateColumn | DateTimeColumn, origin: int, last: int) -> int:
    try:
        moment = dt.datetime.fromisoformat(text.strip())
        if moment.tzinfo is not None:
            moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return STRAY
    return _within(period_index(moment, config.resolution), origin, last)


def _within(period: int, origin: int, last: int) -> int:
    return BELOW if period < origin else ABOVE if period > last else period - origin


def _from_moments(config: DateColumn | DateTimeColumn, array: pa.Array) -> Codes:
    moments = pc.cast(array, pa.timestamp("us"), safe=False)
    missing = moments.is_null().to_numpy(zero_copy_only=False)
    days: Any = moments.to_numpy(zero_copy_only=False).astype("datetime64[us]")
    days = np.where(missing, np.datetime64(0, "us"), days)
    origin, last = _ends(config)
    periods = _periods(days, config.resolution) - origin
    codes = np.where(periods < 0, BELOW, np.where(periods > last - origin, ABOVE, periods))
    codes[missing] = MISSING
    return codes.astype(np.int32)


def _periods(moments: Any, resolution: str) -> npt.NDArray[np.int64]:
    """Count periods as `period_index` does (a test compares the two)."""
    if resolution in ("month", "quarter", "year"):
        months = moments.astype("datetime64[M]").astype(np.int64) + 1970 * 12
        return np.asarray(months // {"month": 1, "quarter": 3, "year": 12}[resolution])
    unit = {"day": "D", "hour": "h", "minute": "m"}[resolution]
    per_day = {"day": 1, "hour": 24, "minute": 1440}[resolution]
    epoch = dt.date(1970, 1, 1).toordinal() * per_day
    return np.asarray(moments.astype(f"datetime64[{unit}]").astype(np.int64) + epoch)


__all__ = ["ABOVE", "BELOW", "DROP", "MISSING", "STRAY", "column_codes", "raw_codes"]
