"""The accountant: adds the exact costs of events and rounds once, upward."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from include.accounting.amounts import ONE
from include.accounting.events import Event
from include.accounting.zcdp import epsilon_from_rho

Accounting = Literal["zcdp", "epsilon"]

MIN_ZCDP_CHARGE_PICO = ONE // 1000
"""Floor of a zCDP plan's charge in epsilon: below it rho(epsilon, delta) is not superadditive."""


@dataclass(frozen=True)
class Cost:
    """What a sequence of events costs, in both currencies.

    Args:
        rho_pico: zCDP cost in units of 1e-12, rounded up.
        epsilon_pure_pico: Pure-DP cost in units of 1e-12, rounded up; None once any event is
            Gaussian, because delta = 0 can then not be claimed.

    Privacy: ledger only.
    """

    rho_pico: int
    epsilon_pure_pico: int | None

    def to_dict(self) -> dict[str, int | None]:
        """Describe the cost in JSON types."""
        return {"rho_pico": self.rho_pico, "epsilon_pure_pico": self.epsilon_pure_pico}


def compose(events: Iterable[Event]) -> Cost:
    """Add the costs of events under adaptive composition.

    Args:
        events: What was or will be done to the data, in any order.

    Returns:
        The sum of the exact fractions, rounded up once.

    Source: Bun and Steinke 2016, Lemma 2.3; with adaptively chosen amounts under a filter,
        Whitehouse et al. 2023.

    Privacy: ledger only.
    """
    listed = tuple(events)
    rho = sum((event.rho for event in listed), Fraction(0))
    pure: Fraction | None = Fraction(0)
    for event in listed:
        epsilon = event.epsilon_pure
        pure = None if pure is None or epsilon is None else pure + epsilon
    return Cost(_up(rho), None if pure is None else _up(pure))


def cost_in_currency(cost: Cost, accounting: Accounting, delta_exponent: int) -> int:
    """Express a cost in the currency of a budget pool.

    Args:
        cost: Composed cost of a plan or a charge.
        accounting: Currency of the pool: "zcdp" counts rho, "epsilon" counts epsilon.
        delta_exponent: N of the pool's delta = 1e-N.

    Returns:
        Amount in units of 1e-12. In a pool of epsilon a pure plan costs its pure epsilon; any
        other costs the tight epsilon of its rho, rounded up, at least 1e-3, so that charges of
        both sorts add up to (E1 + E2, delta).

    Raises:
        ValueError: The currency is unknown.

    Privacy: ledger only.
    """
    if accounting == "zcdp":
        return cost.rho_pico
    if accounting != "epsilon":
        raise ValueError(f"unknown accounting {accounting!r}: use zcdp or epsilon")
    if cost.epsilon_pure_pico is not None:
        return cost.epsilon_pure_pico
    return max(MIN_ZCDP_CHARGE_PICO, epsilon_from_rho(cost.rho_pico, delta_exponent))


def _up(amount: Fraction) -> int:
    return -((-amount * ONE).__floor__())
