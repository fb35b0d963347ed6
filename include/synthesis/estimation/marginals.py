"""Any marginal of a calibrated junction tree, inside a node or across the tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from include.synthesis.estimation.contraction import Reduction
from include.synthesis.estimation.elimination import bits
from include.synthesis.estimation.junction import Columns, JunctionTree
from include.synthesis.estimation.measurement import FloatArray
from include.synthesis.estimation.propagation import DENSE_CELLS, Tables


class MarginalReader:
    """Answers marginals from conditionals and separators, remembering partial sums.

    Every wanted column lives at its top node. The answer is taken at the lowest node above all
    wanted columns, where branches meet as tables P(wanted columns below | separator). Those
    tables are shared by all questions: all pair marginals need one for each column and node.

    Args:
        tree: the junction tree.
        conditionals: P(rest | separator) per node.
        separators: each node's separator marginal, shape (separator cells, 1), the total at a root.
        total: sum of each marginal, in rows.

    Source: Koller and Friedman 2009, section 10.3.3 (out-of-clique queries).

    Privacy: post-processing.
    """

    def __init__(
        self,
        tree: JunctionTree,
        conditionals: Tables,
        separators: Sequence[FloatArray],
        total: float,
    ) -> None:
        self._tree = tree
        self._conditionals, self._separators = conditionals, separators
        self._total = total
        self._below: dict[tuple[int, int], tuple[Columns, FloatArray]] = {}
        self._joint: dict[int, FloatArray] = {}
        self._paths = [self._path(position) for position in range(len(tree.nodes))]

    def read(self, columns: Columns) -> FloatArray:
        """Compute one marginal.

        Args:
            columns: positions of the columns.

        Returns:
            float64, shape (cells,), C order over the columns as given, summing to the total.
        """
        parts: dict[int, int] = {}
        for column in columns:
            root = self._paths[self._tree.top[column]][0]
            parts[root] = parts.get(root, 0) | 1 << column
        axes: Columns = ()
        table: FloatArray = np.array(self._total)
        for mask in parts.values():
            more, part = self._connected(mask)
            table = np.multiply.outer(table, part / self._total) if axes else part
            axes += more
        return np.ascontiguousarray(table.transpose([axes.index(c) for c in columns])).ravel()

    def forget(self) -> None:
        """Drop the remembered partial sums."""
        self._below.clear()
        self._joint.clear()

    def _path(self, position: int) -> tuple[int, ...]:
        parent = self._tree.nodes[position].parent
        return (position,) if parent < 0 else (*self._path(parent), position)

    def _connected(self, mask: int) -> tuple[Columns, FloatArray]:
        """Answer for columns of one tree of the forest."""
        host = self._smallest(mask)
        if host >= 0:
            return self._reduced_joint(host, mask)
        tops = [self._paths[self._tree.top[column]] for column in bits(mask)]
        meet = [level[0] for level in zip(*tops, strict=False) if len(set(level)) == 1][-1]
        return self._combine(meet, mask, joint=True)

    def _smallest(self, mask: int) -> int:
        deepest = max(self._tree.top[column] for column in bits(mask))
        return deepest if mask & ~self._tree.nodes[deepest].mask == 0 else -1

    def _combine(self, position: int, mask: int, *, joint: bool) -> tuple[Columns, FloatArray]:
        """Join a node's table with the branches that hold wanted columns.

        Args:
            position: the node.
            mask: wanted columns in the node and below.
            joint: whether to start from the node's marginal (where branches meet) or from its
                conditional, whose separator must then survive for the parent.
        """
        node = self._tree.nodes[position]
        keep = mask if joint else mask | self._separator_mask(position)
        pending = list(self._branches(position, mask).items())
        needed = keep & node.mask
        for child, _ in pending:
            needed |= self._separator_mask(child)
        if joint:
            axes, table = self._reduced_joint(position, needed)
        else:
            axes, table = _reduce(self._conditionals.table[position], node.columns, needed)
        while pending:
            child, wanted = pending.pop(0)
            branch_axes, branch = self._branch(child, wanted)
            later = keep
            for other, _ in pending:
                later |= self._separator_mask(other)
            both = dict.fromkeys((*axes, *branch_axes))
            out = tuple(column for column in both if later >> column & 1)
            table = _contract(table, axes, branch, branch_axes, out)
            axes = out
        return axes, table

    def _branches(self, position: int, mask: int) -> dict[int, int]:
        """Tell which child leads to which wanted columns outside a node."""
        depth = len(self._paths[position])
        found: dict[int, int] = {}
        for column in bits(mask & ~self._tree.nodes[position].mask):
            child = self._paths[self._tree.top[column]][depth]
            found[child] = found.get(child, 0) | 1 << column
        return found

    def _branch(self, position: int, mask: int) -> tuple[Columns, FloatArray]:
        """Give P(wanted columns | separator) of the subtree below a node's parent."""
        key = (position, mask)
        if key not in self._below:
            self._below[key] = self._combine(position, mask, joint=False)
        return self._below[key]

    def _separator_mask(self, position: int) -> int:
        return sum(1 << column for column in self._tree.nodes[position].separator)

    def _reduced_joint(self, position: int, mask: int) -> tuple[Columns, FloatArray]:
        """Give the marginal of some of a node's columns."""
        node = self._tree.nodes[position]
        if node.parent < 0:
            axes, table = _reduce(self._conditionals.table[position], node.columns, mask)
            return axes, table * self._total
        if position not in self._joint:
            if node.cells > DENSE_CELLS:  # never more than one large table at a time
                self._joint.clear()
            joint = self._conditionals.square[position] * self._separators[position]
            self._joint[position] = joint.reshape(self._tree.shape(node.columns))
        return _reduce(self._joint[position], node.columns, mask)


_PLANNED_CELLS = 4096  # below, one call of NumPy's is faster than a plan


def _reduce(table: FloatArray, columns: Columns, mask: int) -> tuple[Columns, FloatArray]:
    """Sum out the columns that are not in a set."""
    keep = [bool(mask >> column & 1) for column in columns]
    kept = tuple(column for column in columns if mask >> column & 1)
    if all(keep):
        return kept, table
    if table.size > _PLANNED_CELLS:
        shape = [cells for cells, stays in zip(table.shape, keep, strict=True) if stays]
        return kept, Reduction(table.shape, keep)(table).reshape(shape)
    return kept, table.sum(axis=tuple(i for i, stays in enumerate(keep) if not stays))


def _contract(
    left: FloatArray, left_axes: Columns, right: FloatArray, right_axes: Columns, out: Columns
) -> FloatArray:
    """Multiply two tables and sum out what is not wanted."""
    # einsum has letters for 52 axes only, fewer than columns: number those that take part.
    label = {column: i for i, column in enumerate(dict.fromkeys((*left_axes, *right_axes)))}
    operands: list[Any] = [left, [label[c] for c in left_axes]]
    operands += [right, [label[c] for c in right_axes], [label[c] for c in out]]
    table: FloatArray = np.einsum(*operands)
    return table
