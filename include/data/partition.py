"""Keeping only the rows whose column equals a public value."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from include.data.cells import as_text
from include.data.errors import FormatError


@dataclass(frozen=True)
class Partition:
    """A public rule, independent of the rows: column equals value.

    Privacy: ledger only.
    """

    column: str
    value: str


def select(table: pa.Table, partition: Partition) -> pa.Table:
    """Keep the rows of one partition, and leave its constant column out.

    A number, a text or a date in the source equals the value when their plain texts are equal:
    1994, 1994.0, "1994" and " 1994 " are all the value "1994".

    Args:
        table: a chunk of the source.
        partition: the column and the value.

    Returns:
        The rows that belong to the partition, without the column.

    Raises:
        FormatError: the column is not in the source.

    Privacy: reads raw data.
    """
    if partition.column not in table.column_names:
        raise FormatError(
            partition.column,
            "present",
            f"the partition column '{partition.column}' is not in the source; correct its name in "
            "the release file",
        )
    column = table.column(partition.column)
    joined = column.combine_chunks()
    array = joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined
    text = pc.utf8_trim_whitespace(as_text(array))
    wanted = partition.value.strip()
    same = pc.fill_null(pc.is_in(text, value_set=pa.array(sorted({wanted, wanted + ".0"}))), False)
    return table.filter(same).drop_columns([partition.column])
