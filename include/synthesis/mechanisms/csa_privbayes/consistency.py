"""Noisy tables brought to agree with each other and to be distributions: post-processing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from include.synthesis.task import Clique

FloatArray = NDArray[np.float64]
PASSES = 4
"""Clipping disturbs agreement a little and the other way round; four passes settle both."""


@dataclass(eq=False)
class Table:
    """A measured table.

    Args:
        clique: Its columns, in domain order.
        values: Estimated counts, one axis a column.
        variance: Variance of the noise of one cell.

    Privacy: post-processing.
    """

    clique: Clique
    values: FloatArray
    variance: float


def consistent(tables: Sequence[Table], domain: Mapping[str, int], total: float) -> None:
    """Make tables agree on what they share, without negative cells, each summing to a total.

    Args:
        tables: The tables; changed in place.
        domain: Cells of each column.
        total: Noisy row count, above 0.

    Source: Qardaji, Yang and Li 2014 (PriView), sections 4.2 and 4.3; Wang, Li and Li 2020
        (norm-sub) for the clipping.

    Privacy: post-processing.
    """
    shared = _intersections([table.clique for table in tables])
    for table in tables:
        table.values += (total - table.values.sum()) / table.values.size
    for _ in range(PASSES):
        for clique in shared:
            _agree([table for table in tables if set(clique) <= set(table.clique)], clique, domain)
        for table in tables:
            table.values = clipped(table.values, total)


def clipped(values: FloatArray, total: float) -> FloatArray:
    """Set negative cells to zero and take what that adds from the others, evenly.

    Args:
        values: Estimated counts, any shape.
        total: What the result sums to, above 0.

    Returns:
        The nearest non-negative table with that sum (least squares), same shape.

    Source: Duchi, Shalev-Shwartz, Singer and Chandra 2008 (projection onto the simplex).

    Privacy: post-processing.
    """
    flat = np.sort(values.ravel())[::-1]
    excess = (np.cumsum(flat) - total) / np.arange(1, flat.size + 1)
    last = int(np.flatnonzero(flat > excess)[-1])
    found: FloatArray = np.maximum(values - excess[last], 0.0)
    return found


def margin(table: Table, clique: Sequence[str]) -> FloatArray:
    """Sum a table down to some of its columns, axes in the order of `clique`.

    Privacy: post-processing.
    """
    wanted = set(clique)
    axes = tuple(i for i, name in enumerate(table.clique) if name not in wanted)
    kept = [name for name in table.clique if name in wanted]
    found: FloatArray = table.values.sum(axis=axes)
    return found.transpose([kept.index(name) for name in clique])


def _intersections(cliques: Sequence[Clique]) -> list[Clique]:
    """List what two tables share, and what those parts share, smaller parts first."""
    order: dict[frozenset[str], Clique] = {}
    fresh = {frozenset(clique): clique for clique in cliques}
    while fresh:
        parts: dict[frozenset[str], Clique] = {}
        for one, other in itertools.combinations(fresh.values(), 2):
            common = tuple(name for name in one if name in other)
            if common and frozenset(common) not in order:
                parts[frozenset(common)] = common
        order |= parts
        fresh = parts
    return sorted(order.values(), key=lambda clique: (len(clique), clique))


def _agree(tables: Sequence[Table], clique: Clique, domain: Mapping[str, int]) -> None:
    """Move each table's margin to the inverse-variance mean, evenly over the cells below it."""
    if len(tables) < 2:
        return
    cells = math.prod(domain[name] for name in clique)
    margins = [margin(table, clique) for table in tables]
    weights = [cells / (table.variance * table.values.size) for table in tables]
    mean = sum(w * m for w, m in zip(weights, margins, strict=True)) / sum(weights)
    for table, own in zip(tables, margins, strict=True):
        shape = [domain[name] if name in clique else 1 for name in table.clique]
        table.values += ((mean - own) * (cells / table.values.size)).reshape(shape)
