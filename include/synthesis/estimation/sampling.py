"""Rows from a calibrated junction tree, with the counts of every table kept as even as possible."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from include.synthesis.estimation.junction import JunctionTree
from include.synthesis.estimation.measurement import FloatArray
from include.synthesis.estimation.propagation import Tables

Codes = NDArray[np.unsignedinteger]


def sample_rows(
    tree: JunctionTree, conditionals: Tables, rows: int, rng: np.random.Generator
) -> Codes:
    """Sample a table node by node along the tree.

    Within every group of rows that agree on a node's separator the rest is drawn by systematic
    sampling: one uniform offset, then equal steps through the cumulative distribution, handed to
    the group's rows in random order. Each row follows the model exactly (unbiased, correlations
    kept), while each cell's count differs from its expectation in the group by less than one.

    Args:
        tree: the junction tree.
        conditionals: P(rest | separator) per node.
        rows: number of rows, at least 0.
        rng: the only source of randomness.

    Returns:
        Codes, the smallest unsigned type that holds every column, shape (rows, columns), columns
        in domain order, rows in random order.

    Source: Madow 1949 (systematic sampling); McKenna et al. 2019, appendix (synthetic data).

    Privacy: post-processing.
    """
    dtype = np.min_scalar_type(max(max(tree.sizes) - 1, 0))
    codes = np.zeros((rows, len(tree.sizes)), dtype=dtype, order="F")
    if rows == 0:
        return codes
    for position, node in enumerate(tree.nodes):
        group = _flat_index(codes, node.separator, tree.shape(node.separator), rows)
        cells = draw_cells(conditionals.square[position], group, rng)
        for column in reversed(node.rest):
            cells, codes[:, column] = np.divmod(cells, tree.sizes[column])
    return codes


def _flat_index(
    codes: Codes, columns: tuple[int, ...], shape: tuple[int, ...], rows: int
) -> NDArray[np.int64]:
    flat = np.zeros(rows, dtype=np.int64)
    for column, cells in zip(columns, shape, strict=True):
        flat *= cells
        flat += codes[:, column]
    return flat


def draw_cells(
    square: FloatArray, group: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw a cell for every row, systematically within each group.

    Args:
        square: conditional distributions, shape (groups, cells).
        group: each row's group, int64, shape (rows,), at least one row.
        rng: the only source of randomness.

    Returns:
        Cells, int64, shape (rows,).

    Privacy: post-processing.
    """
    groups, rows = len(square), group.size
    order = rng.permutation(rows)
    order = order[np.argsort(group[order], kind="stable")]
    sorted_group = group[order]
    sizes = np.bincount(group, minlength=groups)
    starts = np.cumsum(sizes) - sizes
    used = np.flatnonzero(sizes)
    offsets = np.zeros(groups)
    offsets[used] = rng.random(used.size)
    rank = np.arange(rows) - starts[sorted_group]
    uniform = (rank + offsets[sorted_group]) / sizes[sorted_group]
    drawn = np.empty(rows, dtype=np.int64)
    drawn[order] = _invert(square, used, sizes, sorted_group, uniform)
    return drawn


def _invert(
    square: FloatArray,
    used: NDArray[np.int64],
    sizes: NDArray[np.int64],
    sorted_group: NDArray[np.int64],
    uniform: FloatArray,
) -> NDArray[np.int64]:
    """Find the cell of each uniform number in its group's cumulative distribution."""
    cumulative = np.cumsum(square if used.size == len(square) else square[used], axis=1)
    mass = cumulative[:, -1:].copy()
    # A group whose separator has no mass never occurs but by rounding: spread it evenly.
    cumulative[mass[:, 0] <= 0] = np.arange(1, square.shape[1] + 1)
    cumulative /= cumulative[:, -1:].copy()
    last = np.argmax(cumulative >= 1.0, axis=1)  # the last cell that has any mass
    place = np.repeat(np.arange(used.size), sizes[used])
    cumulative += np.arange(used.size)[:, None]
    found = np.searchsorted(cumulative.ravel(), uniform + place, side="right")
    cells: NDArray[np.int64] = np.minimum(found - place * square.shape[1], last[place])
    return cells
