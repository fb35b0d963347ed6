"""Message passing on one junction tree, in preallocated buffers.

A distribution is held as conditional tables P(rest | separator), one per node, all in one flat
buffer. A step multiplies them by small factor tables and passes messages up once; marginals follow
by passing separators down once. Conditionals stay between 0 and 1, so no logarithm is needed
except for the first pass from arbitrary potentials.

Small nodes lie side by side: one sparse product spreads all factors over them. Large nodes are
scanned one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from include.synthesis.estimation.contraction import Scan
from include.synthesis.estimation.junction import Columns, JunctionTree, Node
from include.synthesis.estimation.measurement import FloatArray

DENSE_CELLS = 1 << 14
"""Nodes above this size are scanned one by one."""
TINY = 1e-290
"""Stands in for an empty separator cell: 0 / TINY is 0, where 0 / 0 would be no number."""


@dataclass(frozen=True)
class Slot:
    """Where a factor's table lies.

    Args:
        columns: axes, in the order of the node's axes.
        node: position of the node that hosts it.
        start: first cell in the flat vector of all factors.
        stop: one past the last cell.

    Privacy: ledger only.
    """

    columns: Columns
    node: int
    start: int
    stop: int


class Tables:
    """One flat buffer holding a table per node.

    Args:
        plan: whose layout cuts the buffer.

    Privacy: post-processing.
    """

    def __init__(self, plan: Propagation) -> None:
        self.flat = np.empty(plan.tree.cells)
        self.square: list[FloatArray] = []
        self.table: list[FloatArray] = []
        for node, start in zip(plan.tree.nodes, plan.starts, strict=True):
            piece = self.flat[start : start + node.cells]
            self.square.append(piece.reshape(node.separator_cells, node.rest_cells))
            self.table.append(piece.reshape(plan.tree.shape(node.columns)))


class Propagation:
    """The plan of one structure; it holds no distribution, only scratch.

    Args:
        tree: the junction tree.
        factors: where each factor lies; together they fill the flat vector.

    Source: Koller and Friedman 2009, section 10.2 (sum-product, upward and downward pass).

    Privacy: post-processing.
    """

    def __init__(self, tree: JunctionTree, factors: Sequence[Slot]) -> None:
        self.tree = tree
        self.size = sum(factor.stop - factor.start for factor in factors)
        dense = [node.cells > DENSE_CELLS for node in tree.nodes]
        cells = np.array([node.cells for node in tree.nodes], dtype=np.int64)
        order = np.argsort(dense, kind="stable")
        starts = np.empty_like(cells)
        starts[order] = np.cumsum(cells[order]) - cells[order]
        self.starts = [int(start) for start in starts]
        self._small = int(cells[order][: len(dense) - sum(dense)].sum())
        self._scratch = np.empty(self._small)
        self.separators: list[FloatArray] = [
            np.empty((node.separator_cells, 1)) for node in tree.nodes
        ]
        self._hosted = [[f for f in factors if f.node == i] for i in range(len(tree.nodes))]
        self._links = [self._link(i, dense) for i in range(len(tree.nodes))]
        self._scans = [self._scan(i) if dense[i] else None for i in range(len(tree.nodes))]
        self._spread = self._spreading(dense)
        self._gather = self._spread.T

    def start(self, theta: FloatArray, out: Tables) -> None:
        """Turn log tables of any scale into conditionals.

        Args:
            theta: log tables of the factors, float64, shape (size,).
            out: overwritten.
        """
        out.flat[: self._small] = self._spread @ theta
        out.flat[self._small :] = 0.0
        for position, node in self._upward():
            if self._scans[position] is not None:
                for f in self._hosted[position]:
                    shape = self._shape_in(node.columns, f.columns)
                    out.table[position] += theta[f.start : f.stop].reshape(shape)
            message = _normalise_logs(out.square[position])
            if node.parent >= 0:
                shape = self._shape_in(self.tree.nodes[node.parent].columns, node.separator)
                out.table[node.parent] += message.reshape(shape)

    def step(self, base: Tables, move: FloatArray, out: Tables) -> bool:
        """Multiply a distribution by the exponential of a step in the factors, and normalise.

        Args:
            base: conditionals of the present point.
            move: change of the log tables, float64, shape (size,).
            out: overwritten with conditionals.

        Returns:
            Whether the new distribution has any mass in double precision.
        """
        alive = True
        small = out.flat[: self._small]
        np.exp(self._spread @ move, out=small)
        np.multiply(small, base.flat[: self._small], out=small)
        for position, node in self._upward():
            square, mass = out.square[position], self.separators[position]
            scan, link = self._scans[position], self._links[position]
            if scan is not None:
                tables = [np.exp(move[f.start : f.stop]) for f in self._hosted[position]]
                tables += [self.separators[child] for child in self.tree.children[position]]
                scan.multiply(base.square[position], tables, square)
            np.add.reduce(square, axis=1, out=mass, keepdims=True)
            np.divide(square, np.maximum(mass, TINY), out=square)
            if link is not None:
                above = out.flat[link.start : link.stop]
                np.multiply(above, mass.take(link.cells), out=above)
            elif node.parent < 0:
                alive &= bool(mass[0, 0] > TINY)
        return alive

    def distribute(self, conditionals: Tables, total: float) -> FloatArray:
        """Compute every separator's and every factor's marginal.

        Args:
            conditionals: the distribution.
            total: the sum of each marginal, in rows.

        Returns:
            Factor marginals, float64, shape (size,); `separators` has the others.
        """
        large: list[tuple[Slot, FloatArray]] = []
        for position, node in enumerate(self.tree.nodes):
            mass, scan, link = (
                self.separators[position],
                self._scans[position],
                self._links[position],
            )
            if link is not None:
                above = self._scratch[link.start : link.stop].take(link.order)
                above = above.reshape(node.separator_cells, -1)
                np.add.reduce(above, axis=1, out=mass, keepdims=True)
            elif node.parent < 0:
                mass[0, 0] = total
            square, scan = conditionals.square[position], self._scans[position]
            if scan is not None:
                large.extend(self._scatter(position, scan, square))
            else:
                start = self.starts[position]
                out = self._scratch[start : start + node.cells].reshape(square.shape)
                np.multiply(square, mass, out=out)
        marginals: FloatArray = self._gather @ self._scratch
        for slot, found in large:
            marginals[slot.start : slot.stop] = found
        return marginals

    def _scatter(
        self, position: int, scan: Scan, square: FloatArray
    ) -> list[tuple[Slot, FloatArray]]:
        """Sum a large node onto its children's separators and onto its factors."""
        hosted, children = self._hosted[position], self.tree.children[position]
        mass = self.separators[position]
        # The largest table is a root: it is summed as it stands, without a copy times the total.
        table, scale = (square, float(mass[0, 0])) if mass.size == 1 else (square * mass, 1.0)
        sums = scan.sums(table.reshape(-1), len(hosted) + len(children))
        for child, found in zip(children, sums[len(hosted) :], strict=True):
            np.multiply(found[:, None], scale, out=self.separators[child])
        return [(slot, found * scale) for slot, found in zip(hosted, sums, strict=False)]

    def _upward(self) -> Iterator[tuple[int, Node]]:
        nodes = self.tree.nodes
        return ((position, nodes[position]) for position in range(len(nodes) - 1, -1, -1))

    def _shape_in(self, columns: Columns, inside: Columns) -> tuple[int, ...]:
        return tuple(self.tree.sizes[c] if c in inside else 1 for c in columns)

    def _scan(self, position: int) -> Scan:
        operands = [f.columns for f in self._hosted[position]]
        operands += [self.tree.nodes[child].separator for child in self.tree.children[position]]
        return Scan(self.tree, self.tree.nodes[position].columns, operands)

    def _link(self, position: int, dense: Sequence[bool]) -> _Link | None:
        """Plan the messages between a node and its parent; a large parent's scan has its own."""
        node = self.tree.nodes[position]
        if node.parent < 0 or dense[node.parent]:
            return None
        cells = cell_index(self.tree, self.tree.nodes[node.parent].columns, node.separator)
        start = self.starts[node.parent]
        order = np.argsort(cells, kind="stable")
        return _Link(start, start + cells.size, cells.astype(np.intp), order)

    def _spreading(self, dense: Sequence[bool]) -> sparse.csr_array:
        """Build the 0/1 matrix that spreads factor cells over the cells of small nodes."""
        counts, entries = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)]
        for position, node in enumerate(self.tree.nodes):
            if dense[position]:
                continue
            here = self._hosted[position]
            counts.append(np.full(node.cells, len(here)))
            if here:
                layers = [cell_index(self.tree, node.columns, f.columns) + f.start for f in here]
                entries.append(np.stack(layers, axis=1).ravel())
        indices = np.concatenate(entries).astype(np.int32)
        indptr = np.cumsum(np.concatenate(counts)).astype(np.int32)
        ones = np.ones(indices.size)
        return sparse.csr_array((ones, indices, indptr), shape=(self._small, self.size))


@dataclass(frozen=True, eq=False)
class _Link:
    """How a separator sits in a small parent's table.

    Args:
        start: first cell of the parent in the flat buffer.
        stop: one past its last cell.
        cells: separator cell of each parent cell.
        order: parent cells sorted by separator cell.
    """

    start: int
    stop: int
    cells: NDArray[np.intp]
    order: NDArray[np.intp]


def _normalise_logs(square: FloatArray) -> FloatArray:
    """Turn log tables into conditionals in place; return the log of each row's mass."""
    peak = square.max(axis=1, keepdims=True)
    np.subtract(square, peak, out=square)
    np.exp(square, out=square)
    mass = square.sum(axis=1, keepdims=True)
    np.divide(square, mass, out=square)
    logs: FloatArray = np.log(mass) + peak
    return logs


def cell_index(tree: JunctionTree, columns: Columns, kept: Columns) -> NDArray[np.int32]:
    """Map each cell of a table to its cell in the marginal over some of the columns.

    Args:
        tree: which knows the sizes.
        columns: axes of the table.
        kept: axes of the marginal, in the same order.

    Returns:
        int32, shape (cells of the table,).

    Privacy: ledger only.
    """
    keep = tuple(column in kept for column in columns)
    shape = tree.shape(columns)
    if math.prod(shape) <= _REMEMBERED_CELLS:
        return _small_index(shape, keep)
    return _index(shape, keep)


_REMEMBERED_CELLS = 4096  # at most 16 kB each, 16 MB in all; one release asks for few patterns


@lru_cache(maxsize=1024)
def _small_index(shape: tuple[int, ...], keep: tuple[bool, ...]) -> NDArray[np.int32]:
    found = _index(shape, keep)
    found.setflags(write=False)
    return found


def _index(shape: tuple[int, ...], keep: tuple[bool, ...]) -> NDArray[np.int32]:
    inside = [cells if kept else 1 for cells, kept in zip(shape, keep, strict=True)]
    cells = np.arange(math.prod(inside), dtype=np.int32).reshape(inside)
    return np.broadcast_to(cells, shape).ravel()
