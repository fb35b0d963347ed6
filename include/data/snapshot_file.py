"""The Parquet file of a snapshot: written once, in groups of equal size, then never again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from include.data.content import absorb, regroup
from include.data.encode import as_table
from include.data.errors import FormatError
from include.data.partition import Partition, select

Chunk: TypeAlias = "pa.Table | pd.DataFrame"


def store_rows(
    path: Path, chunks: Iterable[Chunk], part: Partition | None, sinks: Any
) -> list[str]:
    """Write rows as Parquet, feeding their canonical bytes to hashes.

    Args:
        path: the file to write.
        chunks: the rows in pieces; one is held at a time.
        part: keep only the rows of one partition.
        sinks: hash or MAC objects.

    Returns:
        The names of the stored columns.

    Raises:
        FormatError: chunks differ in their columns, or the partition column is missing.

    Privacy: reads raw data.
    """
    writer: pq.ParquetWriter | None = None
    schema: pa.Schema | None = None

    def tables() -> Iterator[pa.Table]:
        nonlocal schema
        for chunk in chunks:
            table = as_table(chunk)
            table = select(table, part) if part else table
            schema = schema or _storable(table.schema)
            yield _conform(table, schema)

    try:
        for group in regroup(tables()):
            writer = writer or pq.ParquetWriter(path, group.schema, compression="zstd")
            writer.write_table(group)
            absorb(group, sinks)
        if writer is None:  # no rows: the columns are stored all the same
            empty = schema or pa.schema([])
            writer = pq.ParquetWriter(path, empty)
            writer.write_table(empty.empty_table())
    finally:
        if writer is not None:
            writer.close()
    return list(schema.names) if schema is not None else []


def _storable(schema: pa.Schema) -> pa.Schema:
    """Return the stored types: a column empty so far becomes text, any chunk can then fill it."""
    fields = []
    for field in schema:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        fields.append(pa.field(field.name, pa.string() if pa.types.is_null(kind) else kind))
    return pa.schema(fields)


def _conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    if table.column_names != schema.names:
        raise FormatError(
            "", "columns", "the parts of the source differ in their columns; make them alike"
        )
    arrays = []
    for field, column in zip(schema, table.columns, strict=True):
        plain = column.cast(column.type.value_type) if _is_dictionary(column) else column
        arrays.append(plain if plain.type == field.type else _cast(plain, field))
    return pa.Table.from_arrays(arrays, schema=schema)


def _is_dictionary(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_dictionary(column.type))


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid:
        raise FormatError(
            field.name,
            "type",
            f"column '{field.name}' has another type in a later part of the source; store it alike",
        ) from None


def settle(path: Path) -> None:
    """Make a finished file read-only and durable.

    Privacy: ledger only.
    """
    with path.open("rb") as file:
        os.fsync(file.fileno())
    path.chmod(0o400)
