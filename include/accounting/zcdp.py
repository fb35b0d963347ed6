"""Tight conversion between rho-zCDP and (epsilon, delta), with proven rounding directions.

For every order a > 1, rho-zCDP implies (epsilon, delta)-DP with

    epsilon(a) = a rho + log(1 - 1/a) + log(1 / (delta a)) / (a - 1),

so any order gives a valid bound and only tightness depends on the search for the best one. The
search runs in floats; the bound itself is then evaluated once, at that order, in 60-digit decimals
whose logarithms are correctly rounded, and rounded outward.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from functools import lru_cache

from include.accounting.amounts import ONE

_CONTEXT = Context(prec=60)
_MARGIN = Decimal("1e-30")  # far above the evaluation error (<1e-40), far below one unit (1e-12)
_PICO = Decimal(ONE)


@lru_cache(maxsize=4096)
def rho_from_epsilon(epsilon_pico: int, delta_exponent: int) -> int:
    """Find the most zCDP that an (epsilon, delta) guarantee can pay for.

    Args:
        epsilon_pico: Epsilon in units of 1e-12, not negative.
        delta_exponent: N of delta = 1e-N.

    Returns:
        The largest rho in units of 1e-12 that implies (epsilon, delta)-DP: rounded down, and
        `epsilon_from_rho` of it is never above `epsilon_pico`.

    Source: Canonne, Kamath and Steinke 2020, Corollary 13 (with Bun and Steinke 2016).

    Privacy: ledger only.
    """
    if epsilon_pico <= 0:
        return 0
    log_inverse_delta = delta_exponent * math.log(10)
    epsilon = epsilon_pico / ONE

    def gap(t: float) -> float:  # t = a - 1; at the best order rho = log(1/(delta a)) / t^2
        rest = log_inverse_delta - math.log1p(t)
        return epsilon - ((2 * t + 1) * rest / (t * t) + math.log(t) - math.log1p(t))

    best = Decimal(_increasing_root(gap, upper=10.0**delta_exponent))
    ctx = _CONTEXT
    order = ctx.add(best, Decimal(1))
    rest = ctx.subtract(ctx.divide(Decimal(epsilon_pico), _PICO), _log_terms(best, delta_exponent))
    rho = ctx.multiply(ctx.subtract(ctx.divide(rest, order), _MARGIN), _PICO)
    rho_pico = max(0, int(rho.to_integral_value(ROUND_FLOOR)))
    while rho_pico > 0 and epsilon_from_rho(rho_pico, delta_exponent) > epsilon_pico:
        rho_pico -= 1
    return rho_pico


@lru_cache(maxsize=4096)
def epsilon_from_rho(rho_pico: int, delta_exponent: int) -> int:
    """Find the smallest epsilon that rho-zCDP is known to imply at delta.

    Args:
        rho_pico: Rho in units of 1e-12, not negative.
        delta_exponent: N of delta = 1e-N.

    Returns:
        Epsilon in units of 1e-12, rounded up; 0 only for rho = 0.

    Source: Canonne, Kamath and Steinke 2020, Corollary 13 (with Bun and Steinke 2016).

    Privacy: ledger only.
    """
    if rho_pico <= 0:
        return 0
    log_inverse_delta = delta_exponent * math.log(10)
    rho = rho_pico / ONE

    def slope(t: float) -> float:
        return rho * t * t + math.log1p(t) - log_inverse_delta

    best = Decimal(_increasing_root(slope, upper=10.0**delta_exponent))
    ctx = _CONTEXT
    order = ctx.add(best, Decimal(1))
    linear = ctx.multiply(order, ctx.divide(Decimal(rho_pico), _PICO))
    epsilon = ctx.add(ctx.add(linear, _log_terms(best, delta_exponent)), _MARGIN)
    return max(1, int(ctx.multiply(epsilon, _PICO).to_integral_value(ROUND_CEILING)))


def _log_terms(t: Decimal, delta_exponent: int) -> Decimal:
    """Evaluate log(1 - 1/a) + log(1 / (delta a)) / (a - 1) at a = 1 + t to 60 digits."""
    ctx = _CONTEXT
    log_order = ctx.ln(ctx.add(t, Decimal(1)))
    log_inverse_delta = ctx.multiply(Decimal(delta_exponent), ctx.ln(Decimal(10)))
    last = ctx.divide(ctx.subtract(log_inverse_delta, log_order), t)
    return ctx.add(ctx.subtract(ctx.ln(t), log_order), last)


def _increasing_root(function: Callable[[float], float], *, upper: float) -> float:
    """Bisect an increasing function of t > 0 on a logarithmic scale.

    Where the root lies outside the bracket an end of it is returned: still a valid order.
    """
    low, high = math.log(1e-12), math.log(upper)
    for _ in range(64):
        middle = (low + high) / 2
        if function(math.exp(middle)) < 0:
            low = middle
        else:
            high = middle
    return math.exp((low + high) / 2)
