"""Parquet files, read by row group with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from include.config.datasets import SourceConfig
from include.data.content import GROUP_ROWS
from include.data.errors import SourceError
from include.data.places import Place


def parquet_names(place: Place, source: SourceConfig) -> list[str]:
    """Return the file's column names in order.

    Raises:
        SourceError: it is not a Parquet file.

    Privacy: post-processing (names only).
    """
    try:
        with place.open() as raw:
            return list(pq.read_schema(raw).names)
    except (pa.ArrowException, OSError):  # the text may quote the file; a folder's name is a value
        raise SourceError(
            f"{source.path} is not a Parquet file, or a file in it is not: it does not begin and "
            "end as one; write it again or correct source.format"
        ) from None


def read_parquet(place: Place, source: SourceConfig, names: list[str]) -> Iterator[pa.Table]:
    """Read the named columns that the file has, in chunks.

    Args:
        place: the file.
        source: the declared source (Parquet says its own format).
        names: columns in the source's words.

    Yields:
        Tables of at most GROUP_ROWS rows; the first one is empty and carries the columns.

    Raises:
        SourceError: the file is damaged inside.

    Privacy: reads raw data.
    """
    try:
        with place.open() as raw, pq.ParquetFile(raw) as file:
            schema = file.schema_arrow
            present = [name for name in names if name in schema.names]
            yield pa.schema([schema.field(name) for name in present]).empty_table()
            for batch in file.iter_batches(GROUP_ROWS, columns=present):
                yield pa.Table.from_batches([batch]).select(present)
    except (pa.ArrowException, OSError):
        error = SourceError(
            f"{source.path} is damaged, or a file in it is: its columns cannot be read; copy it "
            "again from where it came, or write it again without encryption"
        )
    else:
        return
    raise error
