"""Exact counts of codes, in chunks, with memory that does not grow with the rows.

Counts are raw data: only a spending step may ask for them (see `private`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from include.data.errors import PrivateReadError

CHUNK_ROWS = 1 << 15
"""Rows counted at a time: a chunk's index fits the second-level cache."""

MAX_CELLS = 1 << 27
"""Largest table counted: 128 million cells, one gigabyte."""

Counts = npt.NDArray[np.int64]
CodeColumn = npt.NDArray[np.unsignedinteger]


def count_many(
    codes: Mapping[str, CodeColumn], domain: Mapping[str, int], cliques: Sequence[tuple[str, ...]]
) -> list[Counts]:
    """Count the cells of several marginals in one pass over the rows.

    Args:
        codes: for each column its codes, shape (rows,), each below the column's cells.
        domain: for each column its number of cells.
        cliques: the marginals, each a tuple of distinct columns.

    Returns:
        For each clique int64 counts, shape (product of cells,), last column fastest (C order).

    Raises:
        PrivateReadError: a table would exceed MAX_CELLS cells.

    Privacy: reads raw data.
    """
    totals = [np.zeros(_cells(domain, clique), dtype=np.int64) for clique in cliques]
    rows = min((len(column) for column in codes.values()), default=0)
    chunk = min(CHUNK_ROWS, max(rows, 1))
    index = np.empty(chunk, dtype=np.intp)
    for start in range(0, rows, chunk):
        part = {name: column[start : start + chunk] for name, column in codes.items()}
        length = min(chunk, rows - start)
        for total, clique in zip(totals, cliques, strict=True):
            _add(total, part, domain, clique, index[:length])
    return totals


def count_marginal(
    codes: Mapping[str, CodeColumn], domain: Mapping[str, int], clique: tuple[str, ...]
) -> Counts:
    """Count the cells of one marginal; see `count_many`.

    Privacy: reads raw data.
    """
    return count_many(codes, domain, [clique])[0]


def _cells(domain: Mapping[str, int], clique: tuple[str, ...]) -> int:
    cells = prod(domain[name] for name in clique)
    if cells > MAX_CELLS:
        raise PrivateReadError(
            f"the table {' x '.join(clique)} has {cells} cells, above the limit of {MAX_CELLS}; "
            "declare coarser bins or a smaller query"
        )
    return cells


def _add(
    total: Counts,
    part: Mapping[str, CodeColumn],
    domain: Mapping[str, int],
    clique: tuple[str, ...],
    index: npt.NDArray[np.intp],
) -> None:
    """Add one chunk: mixed-radix index of each row, then a histogram of the indices."""
    if not clique:
        total[0] += len(index)
        return
    np.copyto(index, part[clique[0]])
    for name in clique[1:]:
        index *= domain[name]
        index += part[name]
    if total.size <= 4 * len(index):
        total += np.bincount(index, minlength=total.size)
    else:
        np.add.at(total, index, 1)
