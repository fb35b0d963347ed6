"""Greedy elimination on bit sets: the cliques of a triangulated graph, and the memory they need.

One rule decides everywhere: eliminate the column whose clique has the fewest cells, the first
column in domain order on a tie. Cells are compared by integer logarithms, so that two code paths
(one graph, a thousand candidate graphs at once) can never round a tie differently: the filter of
candidates promises a size that the junction tree then has.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from include.synthesis.estimation.measurement import Clique, check_clique, check_domain

BYTES_PER_CELL = 8
BYTES_PER_MB = 2**20
_LOG_UNIT = 2**20


def integer_logs(sizes: Sequence[int]) -> list[int]:
    """Give each column's log2 of its cells as an integer multiple of 2^-20.

    Privacy: ledger only.
    """
    return [round(math.log2(size) * _LOG_UNIT) for size in sizes]


def bits(mask: int) -> list[int]:
    """List the positions of the set bits, ascending.

    Privacy: ledger only.
    """
    positions = []
    while mask:
        low = mask & -mask
        positions.append(low.bit_length() - 1)
        mask ^= low
    return positions


def adjacency(columns: int, masks: Iterable[int]) -> list[int]:
    """Connect the columns of each clique with each other.

    Args:
        columns: number of columns.
        masks: cliques as bit sets.

    Returns:
        For each column the bit set of its neighbours.

    Privacy: ledger only.
    """
    neighbours = [0] * columns
    for mask in masks:
        for column in bits(mask):
            neighbours[column] |= mask & ~(1 << column)
    return neighbours


def eliminate(neighbours: Sequence[int], logs: Sequence[int]) -> list[int]:
    """Triangulate by greedy elimination and return the maximal cliques.

    Args:
        neighbours: the graph, one bit set per column.
        logs: integer logarithms of the cells per column.

    Returns:
        Maximal cliques as bit sets, in elimination order.

    Source: the min-weight heuristic of Koller and Friedman 2009, section 9.4.3.2.

    Privacy: ledger only.
    """
    graph = list(neighbours)
    costs = [logs[v] + sum(logs[u] for u in bits(graph[v])) for v in range(len(graph))]
    alive = list(range(len(graph)))
    found: list[int] = []
    while alive:
        column = min(alive, key=costs.__getitem__)
        alive.remove(column)
        around = graph[column]
        clique = around | 1 << column
        if not any(clique & earlier == clique for earlier in found):
            found.append(clique)
        for other in bits(around):
            merged = (graph[other] | around) & ~(1 << other | 1 << column)
            added = merged & ~graph[other]
            costs[other] += sum(logs[u] for u in bits(added)) - logs[column]
            graph[other] = merged
    return found


def model_size_mb(domain: Mapping[str, int], cliques: Iterable[Clique]) -> float:
    """Compute the exact size of the junction tree of some cliques, without fitting.

    Args:
        domain: column name to number of cells.
        cliques: measured cliques; columns in none of them still cost their own cells.

    Returns:
        Megabytes (2^20 bytes) of the float64 tables of all maximal cliques.

    Raises:
        EstimationError: for an unknown column.

    Privacy: ledger only.
    """
    return ModelSizer(domain, cliques).size_mb


class ModelSizer:
    """The size of a growing model, and of the same model with one more clique each.

    Args:
        domain: column name to number of cells.
        cliques: cliques already in the model.

    Privacy: ledger only.
    """

    def __init__(self, domain: Mapping[str, int], cliques: Iterable[Clique] = ()) -> None:
        check_domain(domain)
        self._domain = dict(domain)
        self._index = {name: position for position, name in enumerate(domain)}
        self._sizes = [int(cells) for cells in domain.values()]
        self._logs = integer_logs(self._sizes)
        self._maximal: list[int] = []
        self._masks: list[int] = []
        self._known: dict[int, float] = {}
        for clique in cliques:
            self._masks.append(self._mask(clique))
        self._settle()

    @property
    def size_mb(self) -> float:
        """Megabytes of the present model."""
        return self._size_mb

    def add(self, clique: Clique) -> None:
        """Put a clique into the model for good.

        Args:
            clique: column names.

        Raises:
            EstimationError: for an unknown column.

        Privacy: ledger only.
        """
        mask = self._mask(clique)
        self._masks.append(mask)
        if not self._covered(mask):
            self._settle()

    def size_with_mb(self, clique: Clique) -> float:
        """Compute the size the model would have with one more clique.

        Args:
            clique: column names.

        Returns:
            Megabytes.

        Privacy: ledger only.
        """
        return float(self.sizes_with_mb([clique])[0])

    def sizes_with_mb(self, cliques: Sequence[Clique]) -> NDArray[np.float64]:
        """Compute the size the model would have with each of many cliques in turn.

        Args:
            cliques: candidate cliques.

        Returns:
            Megabytes, float64, shape (number of cliques,); equal to `model_size_mb` of the
            cliques of the model and the candidate.

        Privacy: ledger only.
        """
        masks = [self._mask(clique) for clique in cliques]
        unknown = list({mask: None for mask in masks if mask not in self._known})
        fresh = []
        for mask in unknown:
            if self._covered(mask):
                self._known[mask] = self._size_mb
            else:
                fresh.append(mask)
        if fresh:
            sizes = _sizes_of_many(self._neighbours, fresh, self._sizes, self._logs)
            self._known.update(zip(fresh, sizes, strict=True))
        return np.array([self._known[mask] for mask in masks], dtype=np.float64)

    def _mask(self, clique: Clique) -> int:
        check_clique(self._domain, clique)
        return sum(1 << self._index[name] for name in clique)

    def _covered(self, mask: int) -> bool:
        # Only columns that already touch each other: the graph, hence the tree, stays as it is.
        return all(mask & ~(self._neighbours[v] | 1 << v) == 0 for v in bits(mask))

    def _settle(self) -> None:
        self._neighbours = adjacency(len(self._sizes), self._masks)
        self._maximal = eliminate(self._neighbours, self._logs)
        self._size_mb = sum(_cells(mask, self._sizes) for mask in self._maximal) * (
            BYTES_PER_CELL / BYTES_PER_MB
        )
        self._known.clear()


def _cells(mask: int, sizes: Sequence[int]) -> float:
    # A float on purpose: exact below 2^53 cells, and a hopeless size becomes inf, not an error.
    return math.prod(float(sizes[column]) for column in bits(mask))


_CHUNK_CELLS = 2_000_000


def _sizes_of_many(
    neighbours: Sequence[int], extra: Sequence[int], sizes: Sequence[int], logs: Sequence[int]
) -> list[float]:
    """Eliminate many graphs, each the same graph and one more clique, side by side."""
    columns = len(sizes)
    step = max(1, _CHUNK_CELLS // columns**2)
    found: list[float] = []
    for start in range(0, len(extra), step):
        chunk = extra[start : start + step]
        found.extend(_eliminate_chunk(neighbours, chunk, sizes, logs))
    return found


def _eliminate_chunk(
    neighbours: Sequence[int], extra: Sequence[int], sizes: Sequence[int], logs: Sequence[int]
) -> list[float]:
    columns, count = len(sizes), len(extra)
    base = np.zeros((columns, columns), dtype=bool)
    for v in range(columns):
        base[v, bits(neighbours[v])] = True
    added = np.zeros((count, columns), dtype=bool)
    for row, mask in enumerate(extra):
        added[row, bits(mask)] = True
    graph = base | (added[:, :, None] & added[:, None, :])
    graph[:, np.arange(columns), np.arange(columns)] = True
    weights = np.array(logs, dtype=np.float64)  # integers below 2^53: sums are exact
    cells = np.array(sizes, dtype=np.float64)
    rows = np.arange(count)
    gone = np.zeros((count, columns), dtype=bool)
    history = np.zeros((columns, count, columns), dtype=bool)
    total = np.zeros(count)
    for turn in range(columns):
        costs = graph @ weights
        costs[gone] = np.inf
        column = costs.argmin(axis=1)
        clique = graph[rows, column]
        inside = (clique[None] <= history[:turn]).all(axis=2).any(axis=0)
        with np.errstate(over="ignore"):  # a hopeless candidate has the size inf
            size = np.where(clique, cells, 1.0).prod(axis=1)
        total += np.where(inside, 0.0, size)
        history[turn] = clique
        gone[rows, column] = True
        graph |= clique[:, :, None] & clique[:, None, :]
        graph[rows, :, column] = False
    return [float(value) for value in total * (BYTES_PER_CELL / BYTES_PER_MB)]
