"""Opening a charge, the point of no return: held becomes spent before a single row is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from include.accounting.accountant import Cost, cost_in_currency
from include.accounting.amounts import format_amount
from include.budget import states
from include.budget.costing import recost, require_claim, require_within
from include.budget.errors import THAW, PlanExceedsGrant, PoolFrozen
from include.budget.journal import AVAILABLE, HELD, SPENT, Change, Draft, move
from include.budget.models import Charge, OpenedCharge, attempt_number, canonical_json, digest_of
from include.budget.store.rows import PoolRow
from include.budget.store.transaction import Transaction
from include.budget.words import amounts_in_words


def open_charge(
    tx: Transaction,
    charge_id: str,
    *,
    plan: Mapping[str, Any],
    cost: Cost,
    events: Sequence[Mapping[str, Any]],
    attempt: str,
) -> OpenedCharge:
    """Turn what is held into spent and give the right to read, once.

    Args:
        tx: The transaction.
        charge_id: A reserved charge.
        plan: The data-independent plan, JSON types; its digest is journalled with it.
        cost: Its composed cost.
        events: Its events in full, so that a better accountant can re-read them.
        attempt: Airflow's try number; a resume must bring a higher one.

    Returns:
        The right to read, under a new fence.

    Raises:
        PlanExceedsGrant: The plan costs more than what is held or granted.
        AlreadyOpened, WrongState, PoolFrozen: As named.

    Privacy: ledger only.
    """
    charge, pools = tx.charge_with_pools(charge_id)
    states.require("open", charge_id, charge.state)
    attempt_number(attempt)
    require_within(recost(events), cost, "the plan's events cost more than the plan says")
    spent = _priced(charge, cost, pools)
    unused = {pool_id: held - spent[pool_id] for pool_id, held in charge.amounts_pico.items()}
    returned = amounts_in_words({key: left for key, left in unused.items() if left}, pools)
    fence = charge.fence + 1
    text = canonical_json(dict(plan))
    tx.append(
        Draft(
            kind="open",
            actor=charge.actor,
            words=f"Charge {charge_id} opened for attempt {attempt}, fence {fence}: spent "
            f"{amounts_in_words(spent, pools)} before the data are read; returned {returned}.",
            charge_id=charge_id,
            changes=[
                Change(
                    "charge",
                    charge_id,
                    {
                        "state": states.OPENED,
                        "fence": fence,
                        "attempt": attempt,
                        "amounts": canonical_json(spent),
                        "cost_rho_pico": cost.rho_pico,
                        "cost_epsilon_pure_pico": cost.epsilon_pure_pico,
                        "plan": text,
                        "plan_digest": digest_of(dict(plan)),
                        "events": canonical_json([dict(event) for event in events]),
                    },
                    was={"state": states.RESERVED, "fence": charge.fence},
                )
            ],
            postings=move(spent, HELD, SPENT) + move(unused, HELD, AVAILABLE),
        )
    )
    return OpenedCharge(charge_id, fence)


def _priced(charge: Charge, cost: Cost, pools: Mapping[str, PoolRow]) -> dict[str, int]:
    spent: dict[str, int] = {}
    for pool_id, held in charge.amounts_pico.items():
        pool = pools[pool_id]
        if pool.status == "frozen":
            raise PoolFrozen(f"budget pool {pool_id} is frozen; {THAW}.")
        require_claim(cost, charge.granted_pico, pool.delta_exponent)
        spent[pool_id] = cost_in_currency(cost, pool.accounting, pool.delta_exponent)
        if spent[pool_id] > held:
            raise PlanExceedsGrant(
                f"charge {charge.charge_id}: the plan costs {format_amount(spent[pool_id])}, "
                f"{format_amount(held)} is held in {pool_id}: plan for the granted epsilon "
                f"{format_amount(charge.granted_pico)}."
            )
    return spent
