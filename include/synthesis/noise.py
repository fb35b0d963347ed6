"""Exact samplers over OpenDP, fed by the operating system's entropy. Nothing here can be seeded.

Floating-point noise leaks through its low bits and a seed undoes every guarantee, so mechanisms
draw from these three functions only, and they see no table: what is noised is handed to them by
`include.synthesis.spending`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def discrete_gaussian(counts: NDArray[np.int64], sigma: float) -> NDArray[np.int64]:
    """Add discrete Gaussian noise to integer counts.

    Args:
        counts: Exact counts, int64, shape (cells,).
        sigma: Noise scale in rows, above 0.

    Returns:
        Noisy counts, int64, shape (cells,); negative values are kept.

    Source: Canonne, Kamath and Steinke 2020, Algorithm 3, by OpenDP's `make_gaussian`.

    Privacy: reads raw data (spends Gaussian(sigma)).
    """
    import numpy as np

    return np.asarray(_gaussian(sigma)(_int64(counts)), dtype=np.int64)


def discrete_laplace(counts: NDArray[np.int64], scale: float) -> NDArray[np.int64]:
    """Add discrete Laplace noise to integer counts.

    Args:
        counts: Exact counts, int64, shape (cells,).
        scale: Noise scale in rows, above 0; epsilon is the L1 sensitivity over it.

    Returns:
        Noisy counts, int64, shape (cells,); negative values are kept.

    Source: Ghosh, Roughgarden and Sundararajan 2009, by OpenDP's `make_laplace`.

    Privacy: reads raw data (spends DiscreteLaplace(sensitivity / scale)).
    """
    import numpy as np

    return np.asarray(_laplace(scale)(_int64(counts)), dtype=np.int64)


def laplace_scale(epsilon: float | int, sensitivity: int) -> float:
    """Return the discrete Laplace scale of an event, rounded up: never more is spent.

    Args:
        epsilon: Pure-DP parameter of the event, above 0.
        sensitivity: L1 sensitivity of the counts, in rows.

    Returns:
        Scale in rows, the smallest float that is at least sensitivity / epsilon.

    Privacy: ledger only.
    """
    return _up(Fraction(sensitivity) / Fraction(epsilon))


def laplace_deviation(scale: float) -> float:
    """Return the standard deviation of discrete Laplace noise.

    Args:
        scale: Noise scale in rows, above 0.

    Returns:
        Deviation in rows, at least 0.001 (below, no cell ever moves and weights would overflow).

    Privacy: ledger only.
    """
    tail = math.exp(-1 / scale)
    return max(0.001, math.sqrt(2 * tail) / -math.expm1(-1 / scale))


def exponential_mechanism(scores: NDArray[np.int64], sensitivity: int, epsilon: float) -> int:
    """Select the index of a large score by the exact exponential mechanism.

    Args:
        scores: Integer scores, int64, shape (candidates,), at least one.
        sensitivity: Most that one privacy unit can change any score, in units of a score; no
            monotonicity is assumed.
        epsilon: Pure-DP parameter of the selection, above 0.

    Returns:
        The selected index, with probability proportional to exp(epsilon score / 2 sensitivity).

    Source: McSherry and Talwar 2007, as report-noisy-max with Gumbel noise by OpenDP's
        `make_noisy_max` under zero-concentrated divergence (under max divergence OpenDP draws
        exponential noise, which is not bounded-range and would cost epsilon^2 / 2).

    Privacy: reads raw data (spends ExponentialMechanism(epsilon)).
    """
    scale = _up(Fraction(2 * sensitivity) / Fraction(epsilon))
    return int(_noisy_max(scale)(_int64(scores)))


def _up(wanted: Fraction) -> float:
    """Round a noise scale up to a float: never more than epsilon is spent."""
    scale = float(wanted)
    while Fraction(scale) < wanted:
        scale = math.nextafter(scale, math.inf)
    return scale


def _int64(values: NDArray[np.int64]) -> NDArray[np.int64]:
    import numpy as np

    return np.ascontiguousarray(values, dtype=np.int64)


def _prelude() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


@lru_cache(maxsize=64)
def _gaussian(sigma: float) -> Any:
    dp = _prelude()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    return dp.m.make_gaussian(*space, scale=sigma)


@lru_cache(maxsize=64)
def _laplace(scale: float) -> Any:
    dp = _prelude()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return dp.m.make_laplace(*space, scale=scale)


@lru_cache(maxsize=64)
def _noisy_max(scale: float) -> Any:
    dp = _prelude()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    return dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=scale)
