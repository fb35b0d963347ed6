"""Measurements laid on a junction tree: factors, residuals, gradient.

Measurements of one clique are merged by inverse variance. A clique contained in another measured
clique reads its marginal from that one's small table (never from a node's large table) and hands
its gradient back the same way. The maximal measured cliques are the model's factors: their log
tables are the parameters, all in one flat vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from include.synthesis.estimation.junction import Columns, JunctionTree
from include.synthesis.estimation.measurement import FloatArray, Measurement
from include.synthesis.estimation.propagation import Propagation, Views, parent_shape

DENSE_CELLS = 1 << 14
"""Above this many cells a node is scanned axis by axis; below, one sparse product serves all."""


@dataclass(eq=False)
class _Block:
    """One measured clique: where its table is read from and where it lies in the flat vector."""

    mask: int
    columns: Columns
    values: FloatArray
    weight: float
    node: int
    host: int = -1  # position of the measured superset, or -1 for a factor
    cells: slice = field(default_factory=lambda: slice(0, 0))


class Objective:
    """Half the chi-square of the measurements as a function of the factors' log tables.

    Args:
        tree: a junction tree with a node for every measured clique.
        plan: the propagation over the same tree.
        measurements: noisy marginals.

    Source: McKenna, Sheldon and Miklau 2019, section 3 (L2 loss over measured marginals).

    Privacy: post-processing.
    """

    def __init__(
        self, tree: JunctionTree, plan: Propagation, measurements: Sequence[Measurement]
    ) -> None:
        self._tree, self._plan = tree, plan
        merged, self.constant = _merge(tree, measurements)
        self._blocks = _arrange(tree, merged)
        self._factors = [block for block in self._blocks if block.host < 0]
        self.size = sum(block.values.size for block in self._factors)
        self._targets = np.concatenate([np.zeros(0)] + [b.values for b in self._blocks])
        self._weights = np.concatenate(
            [np.zeros(0)] + [np.full(b.values.size, b.weight) for b in self._blocks]
        )
        self._inner = self._projection(
            [
                (block.cells.start - self.size, self._blocks[block.host], block)
                for block in self._blocks
                if block.host >= 0
            ]
        )
        self._dense = [f for f in self._factors if tree.nodes[f.node].cells > DENSE_CELLS]
        self._spread = self._spreading()
        self._gather = self._spread.T

    @property
    def lipschitz(self) -> float:
        """A bound of the curvature of the loss in the largest factor."""
        curvature = [
            sum(
                b.weight * f.values.size / b.values.size
                for b in self._blocks
                if b is f or (b.host >= 0 and self._blocks[b.host] is f)
            )
            for f in self._factors
        ]
        return max(curvature, default=1.0)

    def factor_tables(self, flat: FloatArray) -> list[tuple[Columns, FloatArray]]:
        """Cut a flat vector of factor cells into tables with their columns."""
        return [
            (f.columns, flat[f.cells].reshape(self._tree.shape(f.columns))) for f in self._factors
        ]

    def add_to_tables(self, flat: FloatArray, tables: Views) -> None:
        """Fill node tables with the sums of their factors' log tables.

        Args:
            flat: log tables, float64, shape (size,).
            tables: overwritten.
        """
        tables.flat[:] = self._spread @ flat
        for factor in self._dense:
            tables.table[factor.node] += self._broadcast(factor, flat)

    def multiply(self, base: Views, step: FloatArray, out: Views) -> None:
        """Multiply conditionals by the exponential of a step in the factors.

        Args:
            base: conditionals of the present point.
            step: change of the log tables, float64, shape (size,).
            out: overwritten with unnormalised tables.
        """
        np.exp(self._spread @ step, out=out.flat)
        out.flat *= base.flat
        for factor in self._dense:
            out.table[factor.node] *= np.exp(self._broadcast(factor, step))

    def evaluate(self, marginals: Views) -> tuple[float, FloatArray, FloatArray]:
        """Compute the loss, its gradient in the factors' marginals, and those marginals.

        Args:
            marginals: node marginals.

        Returns:
            Half the chi-square; gradient, shape (size,); factor marginals, shape (size,).
        """
        outer = self._gather @ marginals.flat
        for factor in self._dense:
            table = marginals.table[factor.node]
            axes = self._axes(factor)
            target = outer[factor.cells].reshape(parent_shape(table, axes))
            np.add.reduce(table, axis=axes, out=target)
        residual = np.concatenate([outer, self._inner @ outer])
        residual -= self._targets
        weighted = residual * self._weights
        loss = 0.5 * float(residual @ weighted) + self.constant
        gradient = weighted[: self.size] + weighted[self.size :] @ self._inner
        return loss, gradient, outer

    def _axes(self, factor: _Block) -> tuple[int, ...]:
        columns = self._tree.nodes[factor.node].columns
        return tuple(i for i, column in enumerate(columns) if column not in factor.columns)

    def _broadcast(self, factor: _Block, flat: FloatArray) -> FloatArray:
        columns = self._tree.nodes[factor.node].columns
        shape = tuple(self._tree.sizes[c] if c in factor.columns else 1 for c in columns)
        return flat[factor.cells].reshape(shape)

    def _projection(self, pairs: list[tuple[int, _Block, _Block]]) -> sparse.csr_array:
        """Build the 0/1 matrix that sums factor cells into the cells of contained cliques."""
        rows, columns, count = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], 0
        for start, host, block in pairs:
            index = cell_index(self._tree, host.columns, block.columns)
            rows.append(index + start)
            columns.append(np.arange(index.size, dtype=np.int32) + host.cells.start)
            count += block.values.size
        row, column = np.concatenate(rows), np.concatenate(columns)
        matrix = sparse.coo_array((np.ones(row.size), (row, column)), shape=(count, self.size))
        return sparse.csr_array(matrix)

    def _spreading(self) -> sparse.csr_array:
        """Build the 0/1 matrix that spreads factor cells over the cells of small nodes."""
        counts, entries = [np.zeros(1, np.int64)], [np.zeros(0, np.int32)]
        for position, node in enumerate(self._tree.nodes):
            here = [f for f in self._factors if f.node == position]
            if node.cells > DENSE_CELLS:
                here = []
            counts.append(np.full(node.cells, len(here)))
            if here:
                layers = [
                    cell_index(self._tree, node.columns, f.columns) + f.cells.start for f in here
                ]
                entries.append(np.stack(layers, axis=1).ravel())
        indices = np.concatenate(entries).astype(np.int32)
        indptr = np.cumsum(np.concatenate(counts))
        shape = (int(self._plan.offsets[-1]), self.size)
        return sparse.csr_array((np.ones(indices.size), indices, indptr), shape=shape)


def cell_index(tree: JunctionTree, columns: Columns, kept: Columns) -> NDArray[np.int32]:
    """Map each cell of a table to its cell in the marginal over some of the columns.

    Args:
        tree: which knows the sizes.
        columns: axes of the table.
        kept: axes of the marginal, in its own order.

    Returns:
        int32, shape (cells of the table,).

    Privacy: ledger only.
    """
    marginal = np.arange(int(np.prod(tree.shape(kept), dtype=np.int64)), dtype=np.int32)
    order = sorted(range(len(kept)), key=lambda i: columns.index(kept[i]))
    aligned = marginal.reshape(tree.shape(kept)).transpose(order)
    shape = tuple(tree.sizes[c] if c in kept else 1 for c in columns)
    return np.broadcast_to(aligned.reshape(shape), tree.shape(columns)).ravel()


def _merge(
    tree: JunctionTree, measurements: Sequence[Measurement]
) -> tuple[dict[int, tuple[Columns, FloatArray, float]], float]:
    """Merge measurements of one set of columns; return them and the loss that is left over."""
    merged: dict[int, tuple[Columns, FloatArray, float]] = {}
    constant = 0.0
    for item in measurements:
        columns = tree.columns(item.clique)
        order = sorted(range(len(columns)), key=columns.__getitem__)
        values = item.values.reshape(tree.shape(columns)).transpose(order).ravel()
        weight = 1.0 / item.sigma**2
        mask = tree.mask(item.clique)
        if mask in merged:
            _, before, mass = merged[mask]
            both = mass + weight
            constant += 0.5 * mass * weight / both * float(np.sum((values - before) ** 2))
            values, weight = (before * mass + values * weight) / both, both
        merged[mask] = (tuple(sorted(columns)), values, weight)
    return merged, constant


def _arrange(
    tree: JunctionTree, merged: dict[int, tuple[Columns, FloatArray, float]]
) -> list[_Block]:
    """Order blocks, factors first, and put each block's axes into its host's order."""
    masks = list(merged)
    factors = [m for m in masks if not any(m != o and m & ~o == 0 for o in masks)]
    blocks: list[_Block] = []
    start = 0
    for mask in factors + [m for m in masks if m not in set(factors)]:
        columns, values, weight = merged[mask]
        host = -1
        if len(blocks) >= len(factors):
            inside = [i for i in range(len(factors)) if mask & ~blocks[i].mask == 0]
            host = min(inside, key=lambda i: blocks[i].values.size)
        node = tree.host(mask) if host < 0 else blocks[host].node
        axes = tuple(c for c in tree.nodes[node].columns if mask >> c & 1)
        turned = values.reshape(tree.shape(columns)).transpose([columns.index(c) for c in axes])
        block = _Block(mask, axes, turned.ravel(), weight, node, host)
        block.cells = slice(start, start + values.size)
        start += values.size
        blocks.append(block)
    return blocks
