"""The memory a junction tree needs, known exactly before it is built."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from include.synthesis.estimation.elimination import (
    State,
    adjacency,
    bits,
    elimination,
    integer_logs,
)
from include.synthesis.estimation.measurement import Clique, check_clique, check_domain

BYTES_PER_CELL = 8
BYTES_PER_MB = 2**20


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
        self._measure(fresh)
        return np.array([self._known[mask] for mask in masks], dtype=np.float64)

    def _mask(self, clique: Clique) -> int:
        check_clique(self._domain, clique)
        return sum(1 << self._index[name] for name in clique)

    def _covered(self, mask: int) -> bool:
        # Only columns that already touch each other: the graph, hence the tree, stays as it is.
        return all(mask & ~(self._neighbours[v] | 1 << v) == 0 for v in bits(mask))

    def _settle(self) -> None:
        self._neighbours = adjacency(len(self._sizes), self._masks)
        walk = list(elimination(self._neighbours, self._logs))
        self._states = [state for state, _ in walk]
        self._turn = {column: turn for turn, (_, column) in enumerate(walk) if column is not None}
        cells = sum(_cells(mask, self._sizes) for mask in self._states[-1].found)
        self._size_mb = cells * (BYTES_PER_CELL / BYTES_PER_MB)
        self._known.clear()

    def _measure(self, masks: Sequence[int]) -> None:
        """Eliminate the graph with each clique added, many side by side.

        A new clique only makes its own columns dearer, so the greedy order is the present one up
        to the first of them: candidates start there, in batches that share a start.
        """
        batches: dict[int, list[int]] = {}
        for mask in masks:
            first = min(self._turn[column] for column in bits(mask))
            batches.setdefault(first - first % _STRIDE, []).append(mask)
        for start, batch in batches.items():
            state = self._states[start]
            step = max(1, _CHUNK_CELLS // len(state.alive) ** 2)
            for place in range(0, len(batch), step):
                chunk = batch[place : place + step]
                sizes = _sizes_of_many(state, chunk, self._sizes, self._logs)
                self._known.update(zip(chunk, sizes, strict=True))


def _cells(mask: int, sizes: Sequence[int]) -> float:
    # A float on purpose: exact below 2^53 cells, and a hopeless size becomes inf, not an error.
    return math.prod(float(sizes[column]) for column in bits(mask))


_CHUNK_CELLS = 2_000_000
_STRIDE = 8  # finer starts save little and cost a batch each


def _sizes_of_many(
    state: State, extra: Sequence[int], sizes: Sequence[int], logs: Sequence[int]
) -> list[float]:
    """Finish the elimination of many graphs: one state, and one more clique each.

    Returns:
        Megabytes of each whole model.
    """
    alive = state.alive
    base = _membership([state.graph[column] for column in alive], alive)
    added = _membership(extra, alive)
    weights = np.array([logs[v] for v in alive], dtype=np.float64)  # integers: sums are exact
    cells = np.array([sizes[v] for v in alive], dtype=np.float64)
    graph = base | (added[:, :, None] & added[:, None, :])
    graph[:, np.arange(len(alive)), np.arange(len(alive))] = True
    rows = np.arange(len(extra))
    gone = np.zeros((len(extra), len(alive)), dtype=bool)
    before = np.packbits(_membership(state.found, alive), axis=1)
    history = np.empty((len(before) + len(alive), len(extra), before.shape[1]), dtype=np.uint8)
    history[: len(before)] = before[:, None]
    total = np.full(len(extra), math.fsum(_cells(mask, sizes) for mask in state.found))
    for turn in range(len(before), len(history)):
        costs = graph @ weights
        costs[gone] = np.inf
        column = costs.argmin(axis=1)
        clique = graph[rows, column]
        packed = np.packbits(clique, axis=1)
        inside = ~(packed & ~history[:turn]).any(axis=2).all(axis=0)
        with np.errstate(over="ignore"):  # a hopeless candidate has the size inf
            size = np.where(clique, cells, 1.0).prod(axis=1)
        total += np.where(inside, 0.0, size)
        history[turn] = packed
        gone[rows, column] = True
        graph |= clique[:, :, None] & clique[:, None, :]
        graph[rows, :, column] = False
    return [float(value) for value in total * (BYTES_PER_CELL / BYTES_PER_MB)]


def _membership(masks: Sequence[int], columns: Sequence[int]) -> NDArray[np.bool_]:
    """Write bit sets as rows of truth values over some columns."""
    table = [[mask >> column & 1 for column in columns] for mask in masks]
    return np.array(table, dtype=bool).reshape(len(masks), len(columns))
