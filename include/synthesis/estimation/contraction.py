"""Sums and products of tables along planned paths.

NumPy sums over scattered axes of a large table up to twenty times slower than over adjacent ones.
The plans here, made once per structure, group adjacent axes, sum one group at a time with the
fastest kernel for its shape, and join small tables before they meet a large one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from include.synthesis.estimation.junction import Columns, JunctionTree
from include.synthesis.estimation.measurement import FloatArray

_SHORT = 8  # innermost axes up to this length are summed by a matrix product


class Reduction:
    """Sum a table over all axes but some, in a few passes over adjacent axes.

    Args:
        shape: cells per axis.
        keep: which axes stay, in their order.

    Privacy: post-processing.
    """

    def __init__(self, shape: Sequence[int], keep: Sequence[bool]) -> None:
        groups = _group(shape, keep)
        self._stages: list[Callable[[FloatArray], FloatArray]] = []
        while any(not kept for _, kept in groups):
            widths = [0 if kept else cells for cells, kept in groups]
            widest = widths.index(max(widths))
            before = math.prod(cells for cells, _ in groups[:widest])
            after = math.prod(cells for cells, _ in groups[widest + 1 :])
            self._stages.append(_stage(before, groups[widest][0], after))
            rest = groups[:widest] + groups[widest + 1 :]
            groups = _group([cells for cells, _ in rest], [kept for _, kept in rest])

    def __call__(self, table: FloatArray) -> FloatArray:
        """Sum; the result is flat, C order over the kept axes."""
        for stage in self._stages:
            table = stage(table)
        return table.reshape(-1)


def _group(shape: Sequence[int], keep: Sequence[bool]) -> list[tuple[int, bool]]:
    """Merge neighbouring axes of one fate; axes of one cell belong to either."""
    groups: list[tuple[int, bool]] = []
    for cells, kept in zip(shape, keep, strict=True):
        if cells == 1:
            continue
        if groups and groups[-1][1] == kept:
            groups[-1] = (groups[-1][0] * cells, kept)
        else:
            groups.append((cells, kept))
    return groups


def _stage(before: int, cells: int, after: int) -> Callable[[FloatArray], FloatArray]:
    """Sum the middle one of three axes."""
    if after == 1 and cells > _SHORT:
        return lambda table: np.add.reduce(table.reshape(before, cells), axis=1)
    if after <= _SHORT and before > 1:
        fold = np.tile(np.eye(after), (cells, 1))
        return lambda table: table.reshape(before, cells * after) @ fold
    return lambda table: np.add.reduce(table.reshape(before, cells, after), axis=1)


@dataclass(eq=False)
class _Item:
    """A table of the scan: an operand, or the product of two others."""

    columns: Columns
    shape: tuple[int, ...]
    parts: tuple[_Item, ...] = ()
    operand: int = -1
    reduction: Reduction | None = None  # from the table that contains it


class Scan:
    """Multiply a node's table by many small ones, and sum it back onto each of them.

    Operands are joined pairwise as long as their product stays much smaller than the node; the
    same joins serve backwards for the sums.

    Args:
        tree: which knows the sizes.
        columns: axes of the node's table.
        operands: axes of each small table, in the order of the node's axes.

    Privacy: post-processing.
    """

    def __init__(self, tree: JunctionTree, columns: Columns, operands: Sequence[Columns]) -> None:
        self._tree, self._columns = tree, columns
        self._shape = tree.shape(columns)
        limit = math.prod(self._shape) // 8
        items = [_Item(c, tree.shape(c), operand=i) for i, c in enumerate(operands)]
        while True:
            unions = [
                (math.prod(tree.shape(self._union(a, b))), i, j)
                for i, a in enumerate(items)
                for j, b in enumerate(items[:i])
            ]
            size, i, j = min(unions, default=(limit + 1, 0, 0))
            if size > limit:
                break
            joined = self._join(items[i], items[j])
            items = [item for k, item in enumerate(items) if k not in (i, j)] + [joined]
        self._top = items
        for item in items:
            item.reduction = self._reduction(columns, item.columns)

    def multiply(self, base: FloatArray, tables: Sequence[FloatArray], out: FloatArray) -> None:
        """Multiply.

        Args:
            base: the node's table, flat.
            tables: the operands, flat.
            out: overwritten, flat.
        """
        target, source = out.reshape(self._shape), base.reshape(self._shape)
        for item in self._top:
            factor = self._product(item, tables)
            np.multiply(source, self._align(self._columns, item.columns, factor), out=target)
            source = target
        if not self._top:
            target[...] = source

    def sums(self, table: FloatArray, operands: int) -> list[FloatArray]:
        """Sum the node's table onto each operand's axes.

        Args:
            table: the node's table, flat.
            operands: how many there are.

        Returns:
            One flat table per operand.
        """
        found: list[FloatArray] = [table] * operands
        waiting = [(item, table) for item in self._top]
        while waiting:
            item, source = waiting.pop()
            if item.reduction is not None:
                source = item.reduction(source)
            if item.operand >= 0:
                found[item.operand] = source
            waiting.extend((part, source) for part in item.parts)
        return found

    def _union(self, a: _Item, b: _Item) -> Columns:
        both = {*a.columns, *b.columns}
        return tuple(c for c in self._columns if c in both)

    def _join(self, a: _Item, b: _Item) -> _Item:
        columns = self._union(a, b)
        for part in (a, b):
            part.reduction = self._reduction(columns, part.columns)
        return _Item(columns, self._tree.shape(columns), parts=(a, b))

    def _product(self, item: _Item, tables: Sequence[FloatArray]) -> FloatArray:
        if item.operand >= 0:
            return tables[item.operand]
        left, right = (
            self._align(item.columns, part.columns, self._product(part, tables))
            for part in item.parts
        )
        return (left * right).reshape(-1)

    def _align(self, columns: Columns, inside: Columns, table: FloatArray) -> FloatArray:
        return table.reshape([self._tree.sizes[c] if c in inside else 1 for c in columns])

    def _reduction(self, columns: Columns, kept: Columns) -> Reduction | None:
        if columns == kept:
            return None
        return Reduction(self._tree.shape(columns), [c in kept for c in columns])
