"""Message passing on one junction tree, in preallocated buffers.

A distribution is held as conditional tables P(rest | separator), one per node, all in one flat
buffer. A step multiplies them by small factor tables and passes messages up once; marginals follow
by passing separators down once. Conditionals stay between 0 and 1, so no logarithm is needed
except for the first pass from arbitrary potentials.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from include.synthesis.estimation.junction import JunctionTree, Node
from include.synthesis.estimation.measurement import FloatArray

TINY = 1e-290
"""Stands in for an empty separator cell: 0 / TINY is 0, where 0 / 0 would be no number."""


class Propagation:
    """Views, axes and scratch of one tree; it holds no distribution.

    Args:
        tree: the junction tree.

    Source: Koller and Friedman 2009, section 10.2 (sum-product, upward and downward pass).

    Privacy: post-processing.
    """

    def __init__(self, tree: JunctionTree) -> None:
        self.tree = tree
        self.offsets = np.concatenate([[0], np.cumsum([node.cells for node in tree.nodes])])
        self._messages = [np.empty(node.separator_cells) for node in tree.nodes]
        self._links = [self._link(node) for node in tree.nodes]

    def _link(self, node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the message's shape inside the parent's table and the axes to sum over."""
        if node.parent < 0:
            return (), ()
        axes = self.tree.nodes[node.parent].columns
        shape = tuple(self.tree.sizes[c] if c in node.separator else 1 for c in axes)
        return shape, tuple(i for i, c in enumerate(axes) if c not in node.separator)

    def new_table(self) -> FloatArray:
        """Allocate one flat buffer for all nodes, float64, shape (cells of the tree,)."""
        return np.empty(int(self.offsets[-1]))

    def views(self, flat: FloatArray) -> Views:
        """Cut a flat buffer into the tables of the nodes (no copy)."""
        return Views(self, flat)

    def collect(self, tables: Views) -> bool:
        """Turn unnormalised tables into conditionals, in place, leaves first.

        Args:
            tables: non-negative tables whose product is the distribution up to a constant.

        Returns:
            Whether the distribution has any mass left in double precision.
        """
        alive = True
        for position in range(len(self.tree.nodes) - 1, -1, -1):
            square, message = tables.square[position], self._messages[position]
            np.add.reduce(square, axis=1, out=message)
            shape = self._links[position][0]
            if shape:
                parent = tables.table[self.tree.nodes[position].parent]
                np.multiply(parent, message.reshape(shape), out=parent)
            else:
                alive &= bool(message[0] > TINY)
            np.maximum(message, TINY, out=message)
            np.divide(square, message[:, None], out=square)
        return alive

    def collect_logs(self, tables: Views) -> None:
        """Turn log-potentials into conditionals, in place, leaves first, safe at any scale.

        Args:
            tables: log tables whose sum is the log distribution up to a constant.
        """
        for position in range(len(self.tree.nodes) - 1, -1, -1):
            square = tables.square[position]
            peak = square.max(axis=1, keepdims=True)
            np.subtract(square, peak, out=square)
            np.exp(square, out=square)
            mass = square.sum(axis=1, keepdims=True)
            np.divide(square, mass, out=square)
            shape = self._links[position][0]
            if shape:
                parent = tables.table[self.tree.nodes[position].parent]
                parent += (np.log(mass) + peak).reshape(shape)

    def distribute(self, conditionals: Views, total: float, marginals: Views) -> None:
        """Compute every node's marginal, roots first.

        Args:
            conditionals: the result of `collect`.
            total: the sum of each marginal, in rows.
            marginals: filled in place.
        """
        for position, node in enumerate(self.tree.nodes):
            if node.parent < 0:
                np.multiply(conditionals.square[position], total, out=marginals.square[position])
                continue
            axes, message = self._links[position][1], self._messages[position]
            parent = marginals.table[node.parent]
            np.add.reduce(parent, axis=axes, out=message.reshape(parent_shape(parent, axes)))
            np.multiply(
                conditionals.square[position], message[:, None], out=marginals.square[position]
            )


def parent_shape(table: NDArray[np.float64], axes: Sequence[int]) -> tuple[int, ...]:
    """Give the shape that is left when some axes are summed out.

    Privacy: ledger only.
    """
    return tuple(cells for axis, cells in enumerate(table.shape) if axis not in axes)


class Views:
    """A flat buffer seen node by node: as a table with one axis a column, and as a square.

    Args:
        plan: whose offsets cut the buffer.
        flat: float64, shape (cells of the tree,).

    Privacy: post-processing.
    """

    def __init__(self, plan: Propagation, flat: FloatArray) -> None:
        self.flat = flat
        self.table: list[FloatArray] = []
        self.square: list[FloatArray] = []
        for position, node in enumerate(plan.tree.nodes):
            piece = flat[plan.offsets[position] : plan.offsets[position + 1]]
            self.table.append(piece.reshape(plan.tree.shape(node.columns)))
            self.square.append(piece.reshape(node.separator_cells, node.rest_cells))
