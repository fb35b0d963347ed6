"""A table of cells to a table of codes, and codes back to cells."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from include.config.columns import (
    BooleanColumn,
    CategoryColumn,
    DateColumn,
    DateTimeColumn,
    FloatColumn,
    IntegerColumn,
)
from include.config.labels import period_starts
from include.data.cells import DROP, MISSING, STRAY, column_codes, raw_codes
from include.data.errors import FormatError, without_values
from include.data.schema import Column, Schema
from include.errors import CuSynError

Table: TypeAlias = pa.Table
CodeArray: TypeAlias = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]


def code_dtype(schema: Schema) -> np.dtype[Any]:
    """Return the smallest unsigned type that holds every code of a schema.

    Privacy: post-processing (declarations only).
    """
    return np.dtype(np.uint8 if max(schema.domain.values()) <= 256 else np.uint16)


def encode(frame: pd.DataFrame | Table, schema: Schema) -> CodeArray:
    """Encode a table, applying each column's policy row by row.

    Args:
        frame: cells, with at least the schema's columns.
        schema: the declared domain.

    Returns:
        Codes of the rows that are kept, shape (kept rows, columns), in schema order.

    Raises:
        FormatError: a column is missing or stored as a nested type.

    Privacy: reads raw data.
    """
    codes, kept = encode_kept(frame, schema)
    return codes[kept]


def encode_kept(
    frame: pd.DataFrame | Table, schema: Schema
) -> tuple[CodeArray, npt.NDArray[np.bool_]]:
    """Encode a table and tell which rows its policies keep.

    Args:
        frame: cells, with at least the schema's columns.
        schema: the declared domain.

    Returns:
        Codes of all rows, shape (rows, columns), and a mask of the kept rows, shape (rows,).
        Codes of rows that are not kept mean nothing.

    Raises:
        FormatError: a column is missing or stored as a nested type.

    Privacy: reads raw data.
    """
    table = as_table(frame)
    require_columns(table, schema)
    codes = np.empty((table.num_rows, len(schema)), dtype=code_dtype(schema), order="F")
    kept = np.ones(table.num_rows, dtype=np.bool_)
    for i, column in enumerate(schema):
        cells = without_values(
            lambda name=column.name, c=column: column_codes(c, _cells(table, name)),  # type: ignore[misc]
            CuSynError,
            f"encoding the column '{column.name}'",
        )
        good = cells != DROP
        kept &= good
        codes[:, i] = np.where(good, cells, 0)
    return codes, kept


def row_faults(frame: pd.DataFrame | Table, schema: Schema) -> list[tuple[str, str]]:
    """Return which columns break which rule in at least one row, for strict datasets only.

    Args:
        frame: cells, with at least the schema's columns.
        schema: the declared domain.

    Returns:
        Pairs (column, rule) with rule "not null", "type or value" or "bounds"; no values.

    Privacy: reads raw data (a strict dataset declares what this tells as unprotected).
    """
    table = as_table(frame)
    faults = []
    for column in schema:
        raw = raw_codes(column, _cells(table, column.name))
        if not column.nullable and bool((raw == MISSING).any()):
            faults.append((column.name, "not null"))
        if bool((raw == STRAY).any()):
            faults.append((column.name, "type or value"))
        if bool((raw < STRAY).any()):
            faults.append((column.name, "bounds"))
    return faults


def as_table(frame: pd.DataFrame | Table) -> Table:
    """Return an Arrow table; columns of mixed Python types become text.

    Privacy: reads raw data.
    """
    if isinstance(frame, pa.Table):
        return frame
    arrays = [_series_array(frame.iloc[:, i]) for i in range(frame.shape[1])]
    return pa.Table.from_arrays(arrays, names=[str(name) for name in frame.columns])


def _series_array(series: pd.Series[Any]) -> pa.Array:
    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        values = [None if _is_missing(v) else _text(v) for v in series]
        array = pa.array(values, pa.string())
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or value != value


def _text(value: Any) -> str:
    """Write a mixed cell as it would be written in a column of its own type."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).encode("utf-8", "replace").decode()


def require_columns(table: Table, schema: Schema) -> None:
    """Check that every column of a schema stands in the table exactly once.

    Raises:
        FormatError: one does not; it is named.

    Privacy: post-processing (names only).
    """
    for column in schema:
        count = table.column_names.count(column.name)
        if count == 0:
            raise FormatError(
                column.name,
                "present",
                f"column '{column.name}' is not in the source; add it there, or remove it from the "
                "dataset file or point source_column at its name there",
            )
        if count > 1:
            raise FormatError(
                column.name,
                "unique",
                f"column '{column.name}' stands {count} times in the source; rename one there",
            )


def _cells(table: Table, name: str) -> pa.Array:
    column = table.column(name)
    return column.chunk(0) if column.num_chunks == 1 else _joined(column)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def decode(codes: npt.NDArray[Any], schema: Schema, rng: np.random.Generator) -> pd.DataFrame:
    """Turn codes into a table of cells with the declared types.

    A number is drawn evenly within its bin, a date or moment is the first of its period, a missing
    level is an empty cell, and keys are numbered 1, 2, ... by row.

    Args:
        codes: codes, shape (rows, columns), columns in schema order.
        schema: the declared domain.
        rng: generator of the draws within bins. No row of the raw data has a part in it.

    Returns:
        Columns in output order: category as text, boolean, Int64, float, datetime.

    Privacy: post-processing.
    """
    rows = len(codes)
    cells: dict[str, Any] = {
        column.name: _decode_column(column, codes[:, i], rng) for i, column in enumerate(schema)
    }
    for name in schema.surrogates:
        cells[name] = pd.Series(np.arange(1, rows + 1), dtype="Int64")
    return pd.DataFrame({name: cells[name] for name in schema.output})


def _decode_column(
    column: Column, codes: npt.NDArray[Any], rng: np.random.Generator
) -> pd.Series[Any]:
    index = codes.astype(np.int64)
    missing = np.zeros(len(index), dtype=np.bool_)
    if column.null_code is not None:
        missing = index == column.null_code
        index = np.where(missing, 0, index)
    config = column.config
    series: pd.Series[Any]
    if isinstance(config, CategoryColumn):
        labels = np.array(column.labels, dtype=object)
        series = pd.Series(labels[index], dtype="str")
    elif isinstance(config, BooleanColumn):
        series = pd.Series(index == 1, dtype="boolean")
    elif isinstance(config, IntegerColumn):
        series = pd.Series(_draw_whole(config, index, rng), dtype="Int64")
    elif isinstance(config, FloatColumn):
        series = pd.Series(_draw_decimal(config, index, rng), dtype="float64")
    elif isinstance(config, DateColumn | DateTimeColumn):
        # Microseconds: the unit that a Parquet file gives back unchanged.
        starts = np.array(period_starts(config), dtype="datetime64[us]")
        series = pd.Series(starts[index])
    else:
        raise CuSynError(f"a column of type {column.type} cannot be written; leave it out")
    return series.mask(missing) if missing.any() else series


def _draw_whole(
    config: IntegerColumn, index: npt.NDArray[np.int64], rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    lower = np.asarray(config.lower_ends, dtype=np.int64)
    upper = np.append(lower[1:] - 1, config.max)
    return np.asarray(rng.integers(lower[index], upper[index], endpoint=True))


def _draw_decimal(
    config: FloatColumn, index: npt.NDArray[np.int64], rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    lower = np.asarray(config.lower_ends, dtype=np.float64)
    upper = np.append(lower[1:], config.max)
    low, high = lower[index], upper[index]
    drawn = low + rng.random(len(index)) * (high - low)
    if (written := config.written) is not None:
        # Whole multiples of the last decimal: 2.0 is written, never 1.9999999999999998.
        unit = 10.0 ** (config.decimals or 0)
        first, final = np.asarray(written, dtype=np.float64).T
        return np.clip(np.rint(drawn * unit), first[index], final[index]) / unit
    # Stay inside the bin, so that codes survive a round trip.
    last = np.where(upper[index] == config.max, high, np.nextafter(high, low))
    return np.clip(drawn, low, last)
