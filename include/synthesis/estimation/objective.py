"""Measurements laid on a junction tree: factors, residuals, gradient.

Measurements of one clique are merged by inverse variance. A clique contained in another measured
clique reads its marginal from that one's small table (never from a node's large table) and hands
its gradient back the same way. The maximal measured cliques are the model's factors: their log
tables are the parameters, all in one flat vector.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from include.synthesis.estimation.junction import Columns, JunctionTree
from include.synthesis.estimation.measurement import FloatArray, Measurement
from include.synthesis.estimation.propagation import Slot, cell_index


@dataclass(frozen=True, eq=False)
class _Merged:
    """All measurements of one set of columns as one, axes in domain order."""

    columns: Columns
    values: FloatArray
    weight: float


class Objective:
    """Half the chi-square of the measurements as a function of the factors' marginals.

    Args:
        tree: a junction tree with a node for every measured clique.
        measurements: noisy marginals.

    Source: McKenna, Sheldon and Miklau 2019, section 3 (L2 loss over measured marginals).

    Privacy: post-processing.
    """

    def __init__(self, tree: JunctionTree, measurements: Sequence[Measurement]) -> None:
        merged, self._constant = _merge(tree, measurements)
        maximal, inner = _split(merged)
        self._tree = tree
        self.factors: list[Slot] = []
        self.size = 0
        for mask in maximal:
            host, size = tree.host(mask), merged[mask].values.size
            axes = _axes_in(tree.nodes[host].columns, mask)
            self.factors.append(Slot(axes, host, self.size, self.size + size))
            self.size += size
        hosts = [self.factors[_smallest_host(mask, maximal, merged)] for mask in inner]
        inner_axes = [_axes_in(host.columns, m) for host, m in zip(hosts, inner, strict=True)]
        self._inner = self._projection(hosts, inner_axes)
        self._outer = self._inner.T
        laid = [(merged[m], f.columns) for m, f in zip(maximal, self.factors, strict=True)]
        laid += [(merged[m], a) for m, a in zip(inner, inner_axes, strict=True)]
        self._targets = np.concatenate([np.zeros(0)] + [_turn(tree, m, a) for m, a in laid])
        weights = [np.full(m.values.size, m.weight) for m, _ in laid]
        self._weights = np.concatenate([np.zeros(0), *weights])
        curvature = self._outer @ self._weights[self.size :] + self._weights[: self.size]
        self.curvature = float(max(curvature, default=1.0))

    def factor_tables(self, flat: FloatArray) -> list[tuple[Columns, FloatArray]]:
        """Cut a flat vector of factor cells into tables with their columns (views)."""
        return [
            (f.columns, flat[f.start : f.stop].reshape(self._tree.shape(f.columns)))
            for f in self.factors
        ]

    def evaluate(self, marginals: FloatArray) -> tuple[float, FloatArray]:
        """Compute the loss and its gradient.

        Args:
            marginals: factor marginals, float64, shape (size,).

        Returns:
            Half the chi-square; gradient in the factors' marginals, shape (size,).
        """
        residual = np.concatenate([marginals, self._inner @ marginals])
        residual -= self._targets
        weighted = residual * self._weights
        loss = 0.5 * float(residual @ weighted) + self._constant
        gradient = weighted[: self.size] + self._outer @ weighted[self.size :]
        return loss, gradient

    def _projection(self, hosts: Sequence[Slot], axes: Sequence[Columns]) -> sparse.csr_array:
        """Build the 0/1 matrix that sums factor cells into the cells of contained cliques."""
        rows, columns, count = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], 0
        for host, inside in zip(hosts, axes, strict=True):
            rows.append(cell_index(self._tree, host.columns, inside) + count)
            columns.append(np.arange(host.start, host.stop, dtype=np.int32))
            count += math.prod(self._tree.shape(inside))
        row, column = np.concatenate(rows), np.concatenate(columns)
        matrix = sparse.coo_array((np.ones(row.size), (row, column)), shape=(count, self.size))
        return sparse.csr_array(matrix)


def _split(masks: Iterable[int]) -> tuple[list[int], list[int]]:
    """Tell the maximal sets of columns from those inside another one."""
    maximal: list[int] = []
    inner: list[int] = []
    for mask in sorted(masks, key=int.bit_count, reverse=True):
        contained = any(mask & ~larger == 0 for larger in maximal)
        (inner if contained else maximal).append(mask)
    return maximal, inner


def _axes_in(columns: Columns, mask: int) -> Columns:
    return tuple(column for column in columns if mask >> column & 1)


def _turn(tree: JunctionTree, merged: _Merged, axes: Columns) -> FloatArray:
    """Bring values from domain order into another order of the same axes."""
    if merged.columns == axes:
        return merged.values
    order = [merged.columns.index(column) for column in axes]
    return merged.values.reshape(tree.shape(merged.columns)).transpose(order).ravel()


def _smallest_host(mask: int, factors: Sequence[int], merged: dict[int, _Merged]) -> int:
    inside = [i for i, factor in enumerate(factors) if mask & ~factor == 0]
    return min(inside, key=lambda i: merged[factors[i]].values.size)


def _merge(
    tree: JunctionTree, measurements: Sequence[Measurement]
) -> tuple[dict[int, _Merged], float]:
    """Merge measurements of one set of columns; return them and the loss that is left over."""
    merged: dict[int, _Merged] = {}
    constant = 0.0
    for item in measurements:
        columns = tree.columns(item.clique)
        given = _Merged(columns, item.values, 1.0 / item.sigma**2)
        axes, mask = tuple(sorted(columns)), tree.mask(item.clique)
        values, weight = _turn(tree, given, axes), given.weight
        if mask in merged:
            before = merged[mask]
            both = before.weight + weight
            gap = values - before.values
            constant += 0.5 * before.weight * weight / both * float(gap @ gap)
            values, weight = before.values + gap * (weight / both), both
        merged[mask] = _Merged(axes, values, weight)
    return merged, constant
