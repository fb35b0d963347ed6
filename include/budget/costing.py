"""Whether a plan, its events and its rounds cost what was granted: the accountant's questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from include.accounting.accountant import Cost, compose
from include.accounting.amounts import format_amount, format_delta
from include.accounting.events import event_from_dict
from include.accounting.zcdp import rho_from_epsilon
from include.budget.errors import PlanExceedsGrant


def recost(events: Sequence[Mapping[str, Any]]) -> Cost:
    """Let the accountant compose events as they are journalled. Privacy: ledger only."""
    return compose(event_from_dict(dict(event)) for event in events)


def require_within(composed: Cost, ceiling: Cost, what: str) -> None:
    """Refuse events that cost more than the plan that was paid for.

    Args:
        composed: What the events cost.
        ceiling: What was paid for.
        what: Opens the sentence.

    Raises:
        PlanExceedsGrant: They do.

    Privacy: ledger only.
    """
    if composed.rho_pico > ceiling.rho_pico:
        raise PlanExceedsGrant(
            f"{what}: rho {format_amount(composed.rho_pico)} against "
            f"{format_amount(ceiling.rho_pico)}; nothing more may be measured."
        )
    pure, paid = composed.epsilon_pure_pico, ceiling.epsilon_pure_pico
    if paid is not None and (pure is None or pure > paid):
        shown = "none" if pure is None else format_amount(pure)
        raise PlanExceedsGrant(
            f"{what}: pure epsilon {shown} against {format_amount(paid)}; nothing more may be "
            "measured."
        )


def require_claim(cost: Cost, granted_pico: int, delta_exponent: int) -> None:
    """Refuse a plan that does not keep (granted epsilon, delta), whatever the pools count.

    Args:
        cost: Composed cost of the plan.
        granted_pico: Granted epsilon in units of 1e-12.
        delta_exponent: N of the pools' delta = 1e-N.

    Raises:
        PlanExceedsGrant: It does not.

    Privacy: ledger only.
    """
    pure = cost.epsilon_pure_pico
    if pure is not None and pure <= granted_pico:
        return
    if cost.rho_pico > rho_from_epsilon(granted_pico, delta_exponent):
        raise PlanExceedsGrant(
            f"the plan costs rho {format_amount(cost.rho_pico)}, more than epsilon "
            f"{format_amount(granted_pico)} at delta {format_delta(delta_exponent)} pays for: "
            "plan for the granted epsilon."
        )
