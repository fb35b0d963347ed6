"""Scores of candidate marginals in exact integers, and how far one privacy unit can move them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Node = tuple[str, tuple[str, ...]]
"""A child and its parents in a network, the parents in the order of the domain."""

SCALE_BITS = 20
"""Model counts are rounded to 2^-20 rows, so that scores are integers and sensitivities exact."""

WEIGHT_UNITS = 1024
_CEILING = 2**62
_BATCH_CELLS = 1 << 21
_WORD_ROWS = 2**31  # below, products of two counts fit 63 bits


def integer_weights(weights: Sequence[float]) -> tuple[int, ...]:
    """Round public weights to integers in proportion, the largest becoming 1024.

    Args:
        weights: Weights above 0, one for each candidate.

    Returns:
        Integers from 1 to 1024; all 1 where the weights are equal.

    Privacy: ledger only.
    """
    largest = max(weights)
    if min(weights) == largest:
        return (1,) * len(weights)
    return tuple(max(1, round(WEIGHT_UNITS * weight / largest)) for weight in weights)


def score_sensitivity(weights: Sequence[int], max_rows: int) -> int:
    """Bound how far one privacy unit moves any score of `l1_score`.

    Args:
        weights: Integer weights of the candidates.
        max_rows: Rows one unit may own; each moves one cell by one.

    Returns:
        Sensitivity in units of a score.

    Source: the L1 norm is 1-Lipschitz; add/remove of a unit changes a marginal by `max_rows` in L1.

    Privacy: ledger only.
    """
    return (max(weights) * max_rows) << SCALE_BITS


def l1_score(
    counts: NDArray[np.int64], expected: NDArray[np.float64], penalty: float, weight: int
) -> int:
    """Score a candidate: how much of its L1 error is more than the noise of measuring it.

    Args:
        counts: Exact counts, int64, shape (cells,).
        expected: The model's counts, shape (cells,), from earlier answers only.
        penalty: Expected L1 error after measuring, in rows (public).
        weight: Integer weight (public).

    Returns:
        weight (|counts - expected|_1 - penalty) in units of 2^-20 rows, clamped to 63 bits (a
        clamp is 1-Lipschitz: the sensitivity stands).

    Source: McKenna, Mullins, Sheldon and Miklau 2022 (AIM), Algorithm 4, in exact integers.

    Privacy: reads raw data (call it inside a spending primitive only).
    """
    import numpy as np

    rounded = np.rint(expected * float(1 << SCALE_BITS)).astype(np.int64)
    distance = int(np.abs((counts << SCALE_BITS) - rounded).sum())
    score = weight * (distance - math.floor(penalty * (1 << SCALE_BITS)))
    return max(-_CEILING, min(_CEILING, score))


def dependence_sensitivity(nodes: Sequence[Node], domain: Mapping[str, int], max_rows: int) -> int:
    """Bound how far one privacy unit moves any score of `dependence_score`.

    Args:
        nodes: The candidates.
        domain: Cells of each column.
        max_rows: Rows one unit may own.

    Returns:
        Sensitivity in units of a score (2^-21 rows): 2 max_rows rows for n R itself, and for the
        rounding of each cell, half a unit on either side, less than 2^-20 rows a cell.

    Source: docs/guarantee.md, "The dependence score". One row changes the absolute differences by
        4 (1 - a)(1 - b) n / (n + 1) < 4 in sum, a and b the shares of its child and parent cells.

    Privacy: ledger only.
    """
    cells = max(
        (domain[child] * math.prod(domain[name] for name in parents) for child, parents in nodes),
        default=1,
    )
    return ((4 * max_rows) << SCALE_BITS) + 2 * cells


def dependence_score(
    counts: NDArray[np.int64], clique: Sequence[str], node: Node, domain: Mapping[str, int]
) -> int:
    """Score how far a child is from independent of its parents: n R, in exact integers.

    R is half the L1 distance between the joint distribution and the product of its two margins:
    unlike mutual information its sensitivity times n is below 2 whatever n is.

    Args:
        counts: Exact counts, int64, shape (cells,), C order over `clique`.
        clique: The child and the parents, in the order of `counts`.
        node: Which of them is the child.
        domain: Cells of each column.

    Returns:
        sum |c_xp - c_x c_p / n| in units of 2^-20 rows (so n R in units of 2^-21), each expected
        count rounded to a unit; 0 where there are no rows.

    Source: Zhang, Cormode, Procopiuc, Srivastava and Xiao 2017 (PrivBayes), section 4.3, score R.

    Privacy: reads raw data (call it inside a spending primitive only).
    """
    import numpy as np

    child, parents = node
    table = counts.reshape([domain[name] for name in clique])
    joint = np.moveaxis(table, list(clique).index(child), 0).reshape(domain[child], -1)
    rows = int(joint.sum())
    if rows == 0 or not parents:
        return 0
    if rows >= _WORD_ROWS:
        joint = joint.astype(object)
    product = joint.sum(axis=1)[:, None] * joint.sum(axis=0)[None, :]
    whole = product // rows
    rest = product - whole * rows
    scale = 1 << SCALE_BITS
    expected = whole * scale + (rest * (2 * scale) + rows) // (2 * rows)
    return int(np.abs(joint * scale - expected).sum())


def quantile_sensitivity(part: int, parts: int, max_rows: int) -> int:
    """Bound how far one privacy unit moves any score of `quantile_scores`.

    Args:
        part: Which quantile, from 1 to parts - 1.
        parts: Of how many.
        max_rows: Rows one unit may own.

    Returns:
        Sensitivity in units of a score (1 / parts of a row): below `max_rows` rows.

    Source: docs/guarantee.md, "The quantile score". A row below an edge moves its score by at most
        parts - part, a row above by at most part, a row without a number not at all.

    Privacy: ledger only.
    """
    return max(part, parts - part) * max_rows


def quantile_scores(
    counts: NDArray[np.int64], grid: int, part: int, parts: int
) -> NDArray[np.int64]:
    """Score each inner edge of a grid as a quantile, in exact integers.

    Args:
        counts: Exact counts of the column, int64, shape (cells,); those behind the grid (rows
            without a number) count for nothing.
        grid: Cells in their order, at least 2.
        part: Which quantile, from 1 to parts - 1.
        parts: Of how many.

    Returns:
        int64, shape (grid - 1,): for the edge below cell c = 1 .. grid - 1 minus the distance
        |parts rank(c) - part n|, rank(c) being the rows below it and n the rows on the grid.

    Source: Smith 2011 (the exponential mechanism on the rank error), on a declared grid.

    Privacy: reads raw data (call it inside a spending primitive only).
    """
    import numpy as np

    below = np.cumsum(counts[:grid], dtype=np.int64)
    found: NDArray[np.int64] = -np.abs(parts * below[:-1] - part * below[-1])
    return found


def batches(
    nodes: Sequence[Node], domain: Mapping[str, int]
) -> Iterator[dict[tuple[str, ...], list[Node]]]:
    """Group nodes by the table that scores them, a bounded number of cells at a time.

    Privacy: ledger only.
    """
    order = {name: place for place, name in enumerate(domain)}
    tables: dict[tuple[str, ...], list[Node]] = {}
    for child, parents in nodes:
        clique = tuple(sorted((child, *parents), key=order.__getitem__))
        tables.setdefault(clique, []).append((child, parents))
    batch: dict[tuple[str, ...], list[Node]] = {}
    cells = 0
    for clique, members in tables.items():
        size = math.prod(domain[name] for name in clique)
        if batch and cells + size > _BATCH_CELLS:
            yield batch
            batch, cells = {}, 0
        batch[clique] = members
        cells += size
    if batch:
        yield batch
