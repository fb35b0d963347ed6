"""How a grant is divided between count, root, structure, regions and tables: exact arithmetic.

The number of tables is chosen privately and their cost in rho depends on it. So the plan fixes
both currencies of the tables as one block, from public numbers, and the tables are later given the
largest budgets, in proportion to their weights, that fit both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_DOWN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from include.accounting import (
    ONE,
    AdaptiveBlock,
    DiscreteLaplace,
    Event,
    ExponentialMechanism,
    Gaussian,
)
from include.synthesis.bins import selections
from include.synthesis.mechanisms.csa_privbayes.quantiles import LABEL
from include.synthesis.mechanisms.csa_privbayes.settings import Settings
from include.synthesis.plan import (
    MIN_EPSILON_PICO,
    granted_rho,
    selection_epsilon_within,
    sigma_within,
)

_DIGITS = 9


def parameters(settings: Settings, epsilon_pico: int, delta_exponent: int) -> dict[str, Any]:
    """Divide a grant.

    Args:
        settings: The checked task.
        epsilon_pico: Granted epsilon in units of 1e-12.
        delta_exponent: N of the budget pool's delta = 1e-N.

    Returns:
        Parameters of the parts: `total`, `root`, `structure` and `region` (epsilon of each event,
        or sigma for Gaussian measurements; None for parts that are not bought), `bins` (epsilon of
        each; only with `quantile_bins`), `block_rho_pico`
        and `block_epsilon_pico` (None under Gaussian noise) of all tables together, and
        `useful_cells_per_row`.

    Raises:
        PlanError: Epsilon is below 0.001.

    Privacy: ledger only.
    """
    if settings.gaussian or epsilon_pico < MIN_EPSILON_PICO:  # the latter is refused in there
        rho = Fraction(granted_rho(epsilon_pico, delta_exponent), ONE)
        found = _gaussian(settings, rho)
    else:
        found = _laplace(settings, Fraction(epsilon_pico, ONE))
    return {"degree": settings.degree, "weight": str(settings.weight), **found}


def events(settings: Settings, parts: dict[str, Any]) -> tuple[Event, ...]:
    """List everything a plan does to the data, the tables as one block.

    Privacy: ledger only.
    """
    others = len(settings.columns) - 1
    listed: list[Event] = []
    if parts["total"] is not None:
        listed.append(noisy_event(settings, parts["total"], "total"))
    if parts.get("bins") is not None:
        listed += [ExponentialMechanism(parts["bins"], LABEL)] * selections(settings.bins)
    if parts["root"] is not None:
        listed.append(ExponentialMechanism(parts["root"], "root"))
    listed += [ExponentialMechanism(parts["structure"], "structure")] * others
    if parts["region"] is not None:
        listed += [noisy_event(settings, parts["region"], "region")] * others
    listed.append(AdaptiveBlock(parts["block_rho_pico"], "table", parts["block_epsilon_pico"]))
    return tuple(listed)


def noisy_event(settings: Settings, amount: float, label: str) -> DiscreteLaplace | Gaussian:
    """Describe a measurement by its epsilon, or by its sigma under Gaussian noise.

    Privacy: ledger only.
    """
    if settings.gaussian:
        return Gaussian(amount, settings.task.max_rows, label)
    return DiscreteLaplace(amount, label)


def _laplace(settings: Settings, epsilon: Fraction) -> dict[str, Any]:
    others = len(settings.columns) - 1
    counts = {"total": 1, "root": 1, "structure": others, "region": others}
    if settings.bins:
        counts[LABEL] = selections(settings.bins)
    parts: dict[str, Any] = {
        name: short_epsilon(settings.shares[name] * epsilon / count)
        if name in settings.shares
        else None
        for name, count in counts.items()
    }
    used = sum(Fraction(parts[name]) * counts[name] for name in counts if parts[name] is not None)
    rest = (epsilon - used) * ONE // 1
    left = Fraction(rest, ONE)
    per_row = float(left) / (
        2 * len(settings.columns) * settings.usefulness * settings.task.max_rows
    )
    rho = _reference_rho(left, settings.weight, _tables(settings, per_row))
    return parts | {
        "block_epsilon_pico": rest,
        "block_rho_pico": math.ceil(rho * ONE),
        "useful_cells_per_row": per_row,
    }


def _gaussian(settings: Settings, rho: Fraction) -> dict[str, Any]:
    others, rows = len(settings.columns) - 1, settings.task.max_rows
    shares = settings.shares
    parts: dict[str, Any] = dict.fromkeys(("total", "root", "structure", "region"))
    used = Fraction(0)
    for name, count in (("total", 1), ("region", others)):
        if name in shares:
            parts[name] = sigma_within(shares[name] * rho, count, rows)
            used += Gaussian(parts[name], rows).rho * count
    for name, count in (("root", 1), ("structure", others), (LABEL, selections(settings.bins))):
        if name in shares:
            parts[name] = selection_epsilon_within(shares[name] * rho, count)
            used += ExponentialMechanism(parts[name]).rho * count
    rest = (rho - used) * ONE // 1
    sigma = rows * math.sqrt(len(settings.columns) / (2 * max(rest, 1) / ONE))
    return parts | {
        "block_epsilon_pico": None,
        "block_rho_pico": max(rest, 1),
        "useful_cells_per_row": 1 / (math.sqrt(2) * settings.usefulness * sigma),
    }


def _tables(settings: Settings, cells_per_row: float) -> int:
    """Count the tables of a network whose parent sets are as large as they can be: d - k."""
    sizes = sorted(settings.task.domain.values())
    reach = settings.degree
    if settings.public_rows is not None:
        most = settings.public_rows * cells_per_row
        while reach > settings.forced and math.prod(sizes[: reach + 1]) > most:
            reach -= 1
    return max(1, len(sizes) - reach)


def _reference_rho(epsilon: Fraction, weight: Fraction, tables: int) -> Fraction:
    """Find the rho of so many tables that use up epsilon, at the dearest mix of regions."""
    light = _dearest_mix(weight, tables)
    unit = epsilon / (light * weight + tables - light)
    # Coarse fractions keep the exact sum quick; rounding up only makes the block dearer.
    heavy, low = _coarse(unit), _coarse(unit * weight)
    return (tables - light) * DiscreteLaplace(heavy).rho + light * DiscreteLaplace(low).rho


@lru_cache(maxsize=256)
def _dearest_mix(weight: Fraction, tables: int) -> int:
    """Find how many tables of region A make the sum of squares largest for one epsilon in all."""

    def spread(light: int) -> Fraction:
        return (light * weight**2 + tables - light) / (light * weight + tables - light) ** 2

    return max(range(tables), key=spread)


def divide_tables(
    settings: Settings, weights: Sequence[Fraction], epsilon: Fraction | None, rho: Fraction
) -> list[float]:
    """Give tables the largest budgets in proportion to their weights that fit what is left.

    Args:
        settings: The checked task.
        weights: Weight of each table, in (0, 1].
        epsilon: Pure epsilon of all of them together; None under Gaussian noise.
        rho: Rho of all of them together.

    Returns:
        Epsilon of each (rounded down to 9 digits), or sigma of each under Gaussian noise (rounded
        up). The exact sums are at most `epsilon` and `rho`.

    Privacy: post-processing.
    """
    if epsilon is None:
        squares = sum((weight**2 for weight in weights), Fraction(0))
        rows = settings.task.max_rows
        return [sigma_within(rho * weight**2 / squares, 1, rows) for weight in weights]
    unit = epsilon / sum(weights, Fraction(0))
    if _rho_float(float(unit), weights) > float(rho):
        unit = min(unit, Fraction(_unit_within(weights, float(rho), float(unit))))
    while True:
        found = [short_epsilon(unit * weight) for weight in weights]
        if sum((DiscreteLaplace(one).rho for one in found), Fraction(0)) <= rho:
            return found
        unit *= 1 - Fraction(1, 10**8)


def _rho_float(unit: float, weights: Sequence[Fraction]) -> float:
    return sum(unit * float(w) * math.tanh(unit * float(w) / 2) for w in weights)


def _unit_within(weights: Sequence[Fraction], rho: float, upper: float) -> float:
    low, high = 0.0, upper
    for _ in range(200):
        middle = (low + high) / 2
        if _rho_float(middle, weights) <= rho:
            low = middle
        else:
            high = middle
    return low


def short_epsilon(value: Fraction) -> float:
    """Round an epsilon down to 9 digits, as a float that is never above it.

    Privacy: ledger only.
    """
    context = Context(prec=_DIGITS, rounding=ROUND_DOWN)
    short = float(context.divide(Decimal(value.numerator), Decimal(value.denominator)))
    while Fraction(short) > value:
        short = math.nextafter(short, 0.0)
    return short


def _coarse(value: Fraction) -> float:
    short = float(value)
    while Fraction(short) < value:
        short = math.nextafter(short, math.inf)
    return short
