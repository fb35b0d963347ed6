"""Any marginal of a calibrated junction tree, inside a node or across the tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from include.synthesis.estimation.junction import Columns, JunctionTree
from include.synthesis.estimation.measurement import FloatArray
from include.synthesis.estimation.propagation import Tables


class MarginalReader:
    """Answers marginals from conditionals and node marginals, remembering partial sums.

    Every wanted column lives at its top node. The answer is taken at the lowest node above all
    wanted columns, where branches meet as tables P(wanted columns below | separator). Those
    tables are shared by all questions: all pair marginals need one for each column and node.

    Args:
        tree: the junction tree.
        conditionals: P(rest | separator) per node.
        marginals: node marginals.
        total: sum of each marginal, in rows.

    Source: Koller and Friedman 2009, section 10.3.3 (out-of-clique queries).

    Privacy: post-processing.
    """

    def __init__(
        self, tree: JunctionTree, conditionals: Tables, marginals: Tables, total: float
    ) -> None:
        self._tree = tree
        self._conditionals, self._marginals = conditionals, marginals
        self._total = total
        self._below: dict[tuple[int, int], tuple[Columns, FloatArray]] = {}
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
        table: NDArray[np.float64] = np.array(self._total)
        for mask in parts.values():
            more, part = self._connected(mask)
            table = np.multiply.outer(table, part / self._total if axes else part)
            if not axes:
                table = part
            axes += more
        return np.ascontiguousarray(table.transpose([axes.index(c) for c in columns])).ravel()

    def forget(self) -> None:
        """Drop the remembered partial sums."""
        self._below.clear()

    def _path(self, position: int) -> tuple[int, ...]:
        parent = self._tree.nodes[position].parent
        return (position,) if parent < 0 else (*self._path(parent), position)

    def _connected(self, mask: int) -> tuple[Columns, FloatArray]:
        """Answer for columns of one tree of the forest."""
        host = self._smallest(mask)
        if host >= 0:
            return self._reduce(self._marginals.table[host], self._tree.nodes[host].columns, mask)
        tops = [self._paths[self._tree.top[c]] for c in range(mask.bit_length()) if mask >> c & 1]
        meet = [level[0] for level in zip(*tops, strict=False) if len(set(level)) == 1][-1]
        return self._combine(meet, mask, self._marginals.table[meet])

    def _smallest(self, mask: int) -> int:
        top = [self._tree.top[c] for c in range(mask.bit_length()) if mask >> c & 1]
        deepest = max(top)
        return deepest if mask & ~self._tree.nodes[deepest].mask == 0 else -1

    def _combine(self, position: int, mask: int, table: FloatArray) -> tuple[Columns, FloatArray]:
        """Join a node's table with the branches that hold wanted columns."""
        node = self._tree.nodes[position]
        inside = mask & node.mask
        branches: dict[int, int] = {}
        for column in range(mask.bit_length()):
            if mask >> column & 1 and not node.mask >> column & 1:
                child = self._paths[self._tree.top[column]][len(self._paths[position])]
                branches[child] = branches.get(child, 0) | 1 << column
        keep = inside | self._outer_mask(position, table)
        needed = keep
        for child in branches:
            for column in self._tree.nodes[child].separator:
                needed |= 1 << column
        axes, joined = self._reduce(table, node.columns, needed)
        pending = list(branches.items())
        while pending:
            child, wanted = pending.pop(0)
            more, branch = self._branch(child, wanted)
            later = keep | wanted
            for other, _ in pending:
                later |= sum(1 << c for c in self._tree.nodes[other].separator)
            for column in axes:
                if not self._tree.nodes[position].mask >> column & 1:
                    later |= 1 << column
            out = tuple(c for c in (*axes, *(m for m in more if m not in axes)) if later >> c & 1)
            joined = _contract(joined, axes, branch, more, out)
            axes = out
        return axes, joined

    def _outer_mask(self, position: int, table: FloatArray) -> int:
        """Columns that must survive for the parent: none at the meeting node."""
        if table is self._marginals.table[position]:
            return 0
        return sum(1 << c for c in self._tree.nodes[position].separator)

    def _branch(self, position: int, mask: int) -> tuple[Columns, FloatArray]:
        """Give P(wanted columns | separator) of the subtree below a node's parent."""
        key = (position, mask)
        if key not in self._below:
            self._below[key] = self._combine(position, mask, self._conditionals.table[position])
        return self._below[key]

    @staticmethod
    def _reduce(table: FloatArray, columns: Columns, mask: int) -> tuple[Columns, FloatArray]:
        drop = tuple(i for i, column in enumerate(columns) if not mask >> column & 1)
        kept = tuple(column for column in columns if mask >> column & 1)
        return kept, (table.sum(axis=drop) if drop else table)


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
