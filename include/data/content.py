"""One stream of bytes for the content of a table, however it is stored or cut into chunks.

Two readings of the same rows give the same stream; the snapshot store keys it (MAC) so that known
content is recognised without leaving a bare hash, which would be a membership test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from include.data.cells import as_text

GROUP_ROWS = 1 << 16
"""Rows of one Parquet row group and of one step of the stream."""


class Absorbs(Protocol):
    """What takes bytes in, as hashlib and hmac objects do."""

    def update(self, data: bytes, /) -> None:
        """Take bytes in."""


def regroup(chunks: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Cut a stream of tables into groups of GROUP_ROWS rows, whatever its chunks were.

    Args:
        chunks: tables with the same columns, each small enough for memory.

    Yields:
        Tables of exactly GROUP_ROWS rows, the last one shorter (and none for no rows).

    Privacy: reads raw data.
    """
    held: list[pa.Table] = []
    rows = 0
    for chunk in chunks:
        held.append(chunk)
        rows += chunk.num_rows
        while rows >= GROUP_ROWS:
            joined = pa.concat_tables(held)
            yield joined.slice(0, GROUP_ROWS).combine_chunks()
            rest = joined.slice(GROUP_ROWS)
            held, rows = [rest], rest.num_rows
    if rows:
        yield pa.concat_tables(held).combine_chunks()


def absorb(group: pa.Table, sinks: Iterable[Absorbs]) -> None:
    """Feed one group's canonical bytes to hashes.

    Each column goes in as its cells' text: which are missing, how long each is, then all texts.

    Args:
        group: a table as `regroup` yields it.
        sinks: hash or MAC objects.

    Privacy: reads raw data.
    """
    for name in group.column_names:
        for piece in _column_bytes(group.column(name)):
            for sink in sinks:
                sink.update(piece)


def _column_bytes(column: pa.ChunkedArray) -> Iterator[bytes]:
    joined = column.combine_chunks()
    array = joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined
    text = pc.cast(as_text(array), pa.large_string())
    lengths = pc.fill_null(pc.cast(pc.binary_length(text), pa.int64()), -1)
    yield len(text).to_bytes(8, "little")
    yield lengths.to_numpy(zero_copy_only=False).astype("<i8").tobytes()
    yield "".join(text.fill_null("").to_pylist()).encode("utf-8", "surrogatepass")
