"""Scores of candidate marginals in exact integers, and how far one privacy unit can move them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SCALE_BITS = 20
"""Model counts are rounded to 2^-20 rows, so that scores are integers and sensitivities exact."""

WEIGHT_UNITS = 1024
_CEILING = 2**62


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
