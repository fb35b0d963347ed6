"""Exact counts of codes, in chunks, with memory that does not grow with the rows.

Counts are raw data: only a spending step may ask for them (see `private`).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from include.data.errors import PrivateReadError

CHUNK_ROWS = 1 << 15
"""Rows counted at a time: a chunk's index fits the second-level cache."""

MAX_CELLS = 1 << 27
"""Largest table counted: 128 million cells, one gigabyte."""

JOINT_CELLS = 1 << 14
"""Largest table that is counted in the place of several smaller ones: 128 kB, cached as well."""

_MOST_SHARED_COLUMNS = 4  # beyond, marginals seldom have a small table in common

Counts = npt.NDArray[np.int64]
Clique = tuple[str, ...]
CodeColumn = npt.NDArray[np.unsignedinteger]


def count_many(
    codes: Mapping[str, CodeColumn], domain: Mapping[str, int], cliques: Sequence[Clique]
) -> list[Counts]:
    """Count the cells of several marginals in one pass over the rows.

    Small marginals with columns in common are read off one joint table: rows are then looked at
    once for all of them.

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
    for clique in cliques:
        _check_cells(domain, clique)
    joints, home = joint_tables(domain, cliques)
    totals = [np.zeros(prod(domain[name] for name in joint), dtype=np.int64) for joint in joints]
    rows = min((len(column) for column in codes.values()), default=0)
    chunk = min(CHUNK_ROWS, max(rows, 1))
    small, index = np.empty(chunk, dtype=np.uint16), np.empty(chunk, dtype=np.intp)
    for start in range(0, rows, chunk):
        part = {name: column[start : start + chunk] for name, column in codes.items()}
        length = min(chunk, rows - start)
        for total, joint in zip(totals, joints, strict=True):
            _add(total, part, domain, joint, small[:length], index[:length])
    return [
        _margin(totals[place], joints[place], clique, domain)
        for place, clique in zip(home, cliques, strict=True)
    ]


def joint_tables(
    domain: Mapping[str, int], cliques: Sequence[Clique]
) -> tuple[list[Clique], list[int]]:
    """Find few tables that the marginals can be read off.

    Columns with few cells form groups; marginals over the same groups share one table, if that
    has at most JOINT_CELLS cells. All others are counted by themselves.

    Args:
        domain: for each column its number of cells.
        cliques: the marginals.

    Returns:
        The tables, columns in the order of the domain, and for each marginal the place of its own.

    Privacy: ledger only.
    """
    most = max(map(len, cliques), default=0)
    if most > _MOST_SHARED_COLUMNS:
        return list(cliques), list(range(len(cliques)))
    group = _groups(domain, most)
    keys = [frozenset(group[name] for name in clique) for clique in cliques]
    above: dict[frozenset[int], frozenset[int]] = {}
    columns: dict[frozenset[int], set[str]] = {}
    for clique, key in sorted(zip(cliques, keys, strict=True), key=lambda pair: -len(pair[1])):
        home = above.setdefault(key, key)
        columns.setdefault(home, set()).update(clique)
        for size in range(len(key)):  # a marginal within some of the groups joins the table of all
            for part in itertools.combinations(key, size):
                above.setdefault(frozenset(part), home)
    tables: dict[Clique, int] = {}
    places = []
    for clique, key in zip(cliques, keys, strict=True):
        table = tuple(name for name in domain if name in columns[above[key]])
        if prod(domain[name] for name in table) > JOINT_CELLS:
            table = clique
        places.append(tables.setdefault(table, len(tables)))
    return list(tables), places


def _groups(domain: Mapping[str, int], most: int) -> dict[str, int]:
    """Pack columns, large ones first, into groups of which any `most` make a joint table."""
    group: dict[str, int] = {}
    filled: list[int] = []
    for name in sorted(domain, key=lambda name: -domain[name]):
        fits = (
            i for i, cells in enumerate(filled) if (cells * domain[name]) ** most <= JOINT_CELLS
        )
        group[name] = next(fits, len(filled))
        if group[name] == len(filled):
            filled.append(1)
        filled[group[name]] *= domain[name]
    return group


def _check_cells(domain: Mapping[str, int], clique: Clique) -> None:
    cells = prod(domain[name] for name in clique)
    if cells > MAX_CELLS:
        raise PrivateReadError(
            f"the table {' x '.join(clique)} has {cells} cells, above the limit of {MAX_CELLS}; "
            "declare coarser bins or a smaller query"
        )


def _add(
    total: Counts,
    part: Mapping[str, CodeColumn],
    domain: Mapping[str, int],
    table: Clique,
    small: npt.NDArray[np.uint16],
    index: npt.NDArray[np.intp],
) -> None:
    """Add one chunk: mixed-radix index of each row, then a histogram of the indices."""
    if not table:
        total[0] += len(index)
        return
    kinds = {part[name].dtype for name in table}
    narrow = total.size <= 1 << 16 and kinds <= {np.dtype(np.uint8), np.dtype(np.uint16)}
    radix: npt.NDArray[np.integer] = small if narrow else index  # two bytes a row: twice as fast
    np.copyto(radix, part[table[0]], casting="same_kind")
    for name in table[1:]:
        radix *= domain[name]
        radix += part[name]
    if narrow:
        np.copyto(index, small)
    if total.size <= 4 * len(index):
        total += np.bincount(index, minlength=total.size)
    else:
        np.add.at(total, index, 1)


def _margin(counts: Counts, table: Clique, clique: Clique, domain: Mapping[str, int]) -> Counts:
    """Sum a joint table down to one marginal, in the order of the marginal's columns."""
    if table == clique:
        return counts
    joint = counts.reshape([domain[name] for name in table])
    kept = joint.sum(axis=tuple(i for i, name in enumerate(table) if name not in clique))
    order = [name for name in table if name in clique]
    return np.ascontiguousarray(kept.transpose([order.index(name) for name in clique])).reshape(-1)
