"""BudgetEval, the paper's Algorithm 1, as a pure function: constraints in, decision out.

The asymmetry is the paper's: above the system's limit for one operation a request is denied, above
the user's limit for one request it is negotiated down. What the paper lacks is a floor
(`accept_at_least`), the name of the constraint that bound, and integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from include.accounting.accountant import Accounting, Cost, cost_in_currency
from include.accounting.amounts import format_amount

Price = Callable[[int], Cost]
"""The planner's cost of a granted epsilon (units of 1e-12); must not fall as epsilon grows."""

UNIT = {"zcdp": "rho", "epsilon": "epsilon"}


@dataclass(frozen=True)
class Room:
    """What one budget pool can still hold.

    Args:
        pool_id: The pool.
        label: How the binding constraint is called, for example "dataset_pool:us_adults".
        accounting: Its currency.
        delta_exponent: N of its delta = 1e-N.
        available_pico: What is neither held nor spent, in the pool's currency.

    Privacy: ledger only.
    """

    pool_id: str
    label: str
    accounting: Accounting
    delta_exponent: int
    available_pico: int

    def charge(self, cost: Cost) -> int:
        """Express a cost in the pool's currency, in units of 1e-12."""
        return cost_in_currency(cost, self.accounting, self.delta_exponent)


@dataclass(frozen=True)
class Limit:
    """A limit on one operation or one request, compared in epsilon.

    Args:
        label: "per_operation_limit" or "per_request_limit", with its owner after a colon.
        epsilon_pico: The limit in units of 1e-12.

    Privacy: ledger only.
    """

    label: str
    epsilon_pico: int


@dataclass(frozen=True)
class Decision:
    """The answer to a request: granted in full, negotiated down, or denied.

    Args:
        granted_pico: Granted epsilon in units of 1e-12; 0 when denied.
        cost: The planner's cost of the grant; None when denied.
        amounts_pico: What each pool holds for it, by pool id, in the pool's currency.
        binding: The constraint that decided ("request" when none was tighter).
        reason: The decision in plain words.

    Privacy: ledger only.
    """

    granted_pico: int
    cost: Cost | None
    binding: str
    reason: str
    amounts_pico: dict[str, int] = field(default_factory=dict)


def decide(
    requested_pico: int,
    accept_at_least_pico: int,
    *,
    per_operation: Sequence[Limit],
    per_request: Sequence[Limit],
    rooms: Sequence[Room],
    price: Price,
) -> Decision:
    """Grant, negotiate down or deny a request for epsilon.

    Args:
        requested_pico: Epsilon asked for, units of 1e-12, above 0.
        accept_at_least_pico: The smallest grant worth a release, units of 1e-12, above 0.
        per_operation: The system's limits (alpha in the paper): above any of them, denied.
        per_request: The user's limits for one request: above them, negotiated down.
        rooms: Every pool that must hold the charge, all or none.
        price: The planner's cost of an epsilon.

    Returns:
        The largest epsilon not above the request that every constraint allows, or a denial.

    Source: CuSyn, Algorithm 1 (BudgetEval).

    Privacy: ledger only.
    """
    for limit in per_operation:
        if requested_pico > limit.epsilon_pico:
            asked, most = format_amount(requested_pico), format_amount(limit.epsilon_pico)
            return _denied(
                limit.label, f"epsilon {asked} is above the limit of {most} for one operation"
            )
    granted, binding = requested_pico, "request"
    for limit in per_request:
        if limit.epsilon_pico < granted:
            granted, binding = limit.epsilon_pico, limit.label
    if granted < accept_at_least_pico:
        return _too_little(
            binding, f"allows epsilon {format_amount(granted)}", accept_at_least_pico
        )
    for room in rooms:
        if _fits(room, granted, price):
            continue
        binding = room.label
        left = f"has {UNIT[room.accounting]} {format_amount(room.available_pico)} left"
        if not _fits(room, accept_at_least_pico, price):
            return _too_little(binding, left, accept_at_least_pico)
        granted = _largest(room, accept_at_least_pico, granted, price)
    return _granted(requested_pico, granted, binding, rooms, price)


def _fits(room: Room, epsilon_pico: int, price: Price) -> bool:
    return room.charge(price(epsilon_pico)) <= room.available_pico


def _largest(room: Room, fits_pico: int, too_much_pico: int, price: Price) -> int:
    """Halve the gap between an epsilon that fits and one that does not, down to one unit."""
    while too_much_pico - fits_pico > 1:
        middle = (fits_pico + too_much_pico) // 2
        if _fits(room, middle, price):
            fits_pico = middle
        else:
            too_much_pico = middle
    return fits_pico


def _granted(
    requested_pico: int, granted_pico: int, binding: str, rooms: Sequence[Room], price: Price
) -> Decision:
    cost = price(granted_pico)
    amount = format_amount(granted_pico)
    if granted_pico == requested_pico:
        reason = f"epsilon {amount} granted as asked"
    else:
        asked = format_amount(requested_pico)
        reason = f"epsilon {amount} granted instead of {asked}: {binding} allows no more"
    return Decision(
        granted_pico, cost, binding, reason, {room.pool_id: room.charge(cost) for room in rooms}
    )


def _denied(binding: str, why: str) -> Decision:
    return Decision(0, None, binding, f"denied by {binding}: {why}")


def _too_little(binding: str, why: str, accept_at_least_pico: int) -> Decision:
    least = format_amount(accept_at_least_pico)
    return _denied(binding, f"it {why}, the smallest acceptable epsilon is {least}")
