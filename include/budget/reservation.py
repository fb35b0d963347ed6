"""From a request to a reservation or a denial: BudgetEval inside one transaction.

Planning a cost may take milliseconds, a transaction may not. So the policy runs on prices known
beforehand; when negotiation needs a price that is not, the transaction is given up, the price is
found outside on the same figures, and the policy runs again. A full grant stands if the database
takes it; anything else is decided under the lock.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from datetime import timedelta

from sqlalchemy import Engine

from include.accounting.accountant import Cost
from include.accounting.amounts import format_amount, format_delta
from include.budget.costing import require_claim
from include.budget.errors import (
    THAW,
    DeltaMismatch,
    IdempotencyConflict,
    InvalidRequest,
    LedgerUnavailable,
    PeriodTaken,
    PoolFrozen,
    UnknownName,
)
from include.budget.journal import AVAILABLE, HELD, NUMBER, Change, Draft, move
from include.budget.models import Charge, Request, canonical_json
from include.budget.partitions import rooms
from include.budget.policy import Decision, Limit, Price, Room, decide
from include.budget.store.engine import Collision
from include.budget.store.optimistic import step
from include.budget.store.rows import PoolRow, charge_of
from include.budget.store.transaction import Clock, Transaction, stamp
from include.budget.words import amounts_in_words

_PATIENCE = 50


class _NotPricedError(Exception):
    """The policy asked for a price that is not known inside the transaction."""

    def __init__(self, request: Request, pools: list[PoolRow], at_most: dict[str, int]) -> None:
        super().__init__()
        self.question = (request, pools, at_most)


class Prices:
    """Costs of epsilons, each planned once.

    Args:
        plan: The planner's cost of an epsilon.

    Privacy: ledger only.
    """

    def __init__(self, plan: Callable[[int], Cost]) -> None:
        self._plan = plan
        self._known: dict[int, Cost] = {}

    def find(self, epsilon_pico: int) -> Cost:
        """Plan a cost, or recall it."""
        if epsilon_pico not in self._known:
            self._known[epsilon_pico] = self._plan(epsilon_pico)
        return self._known[epsilon_pico]

    def recall(self, epsilon_pico: int) -> Cost:
        """Recall a cost; never plan one.

        Raises:
            KeyError: It was never planned.
        """
        return self._known[epsilon_pico]


def reserve(
    engine: Engine,
    request: Request,
    cost_of: Callable[[int], Cost],
    *,
    clock: Clock,
    lifetime: timedelta,
    before: Callable[[Transaction], None],
) -> Charge:
    """Decide a request and hold what it needs, once for its key and once for its period.

    Args:
        engine: The ledger's database.
        request: What is asked for.
        cost_of: The planner: epsilon in units of 1e-12 to the cost of the plan it buys.
        clock: Source of time.
        lifetime: How long the reservation stands if nobody opens it.
        before: Called first inside every transaction; raises when the ledger must not be used.

    Returns:
        The charge, reserved or denied; `replayed` when it was decided earlier.

    Raises:
        InvalidRequest, UnknownName, DeltaMismatch, IdempotencyConflict, PeriodTaken, PoolFrozen,
        LedgerUnavailable: As named; nothing was charged.

    Source: CuSyn, Algorithm 1.

    Privacy: ledger only.
    """
    prices = Prices(cost_of)
    prices.find(request.checked().epsilon_pico)
    request.digest()  # known from here on: nothing is hashed while others wait
    price: Price = prices.recall
    for attempt in range(_PATIENCE):
        try:
            with step(engine, clock, locking=attempt > 0) as tx:
                before(tx)
                return _answer(tx, request, price, lifetime)
        except _NotPricedError as wanted:
            _decide(*wanted.question, prices.find)
            if attempt > _PATIENCE // 2:
                price = prices.find  # the pools never stand still: plan under the lock
        except Collision:
            continue
    raise LedgerUnavailable("the ledger is too busy to decide this request: try again.")


def _answer(tx: Transaction, request: Request, price: Price, lifetime: timedelta) -> Charge:
    pools, at_most, found = tx.question(
        request.dataset, request.requester, request.key, request.release, request.period
    )
    earlier = _earlier(request, found)
    if earlier is not None:
        return earlier
    _check(request, pools)
    _require_snapshot(tx, request)
    try:
        decision = _decide(request, pools, at_most, price)
    except KeyError:
        raise _NotPricedError(request, pools, at_most) from None
    if decision.granted_pico < request.epsilon_pico or at_most:
        tx.under_lock()  # a full grant stands while there is room, any other rests on all figures
    return _record(tx, request, pools, decision, lifetime)


def _earlier(request: Request, found: Sequence[Charge]) -> Charge | None:
    """Give the same answer to the same question; refuse another question under its name."""
    digest = request.digest()
    for charge in sorted(found, key=lambda one: one.key != request.key):
        if charge.request_digest == digest:
            return _replay(charge)
        if charge.key == request.key:
            raise IdempotencyConflict(
                f"this run already asked for charge {charge.charge_id} with other parameters: "
                "trigger a new run to ask anew."
            )
        raise PeriodTaken(
            f"release {request.release} already has charge {charge.charge_id} ({charge.state}) for "
            f"period {request.period}, asked with other parameters: name another period."
        )
    return None


def _replay(charge: Charge) -> Charge:
    return charge.become(replayed=True)


def _check(request: Request, pools: Sequence[PoolRow]) -> None:
    of_data = [pool for pool in pools if pool.kind == "dataset"]
    if not of_data:
        raise UnknownName(
            f"dataset {request.dataset} is not registered with the ledger: register its "
            "populations, then the dataset."
        )
    for pool in pools:
        if pool.status == "frozen":
            raise PoolFrozen(f"budget pool {pool.pool_id} is frozen, nothing was charged; {THAW}.")
    delta = of_data[0].delta_exponent
    if request.delta_exponent not in (None, delta):
        raise DeltaMismatch(
            f"the request names delta {format_delta(request.delta_exponent or 0)}, the pools of "
            f"dataset {request.dataset} count at delta {format_delta(delta)}: leave it out."
        )


def _require_snapshot(tx: Transaction, request: Request) -> None:
    """Let nobody pay from one pool and measure another's people."""
    if request.snapshot_id is None:
        return
    found = tx.row("snapshot", request.snapshot_id)
    if found is None:
        raise UnknownName(f"snapshot {request.snapshot_id} is not in the ledger: load it first.")
    if (found["dataset"], found["partition"]) != (request.dataset, request.partition):
        raise InvalidRequest(
            f"snapshot {request.snapshot_id} holds "
            f"{_rows_in_words(found['dataset'], found['partition'])}, the request is for "
            f"{_rows_in_words(request.dataset, request.partition)}: its declarations were changed "
            "after it was loaded; trigger a new run."
        )


def _rows_in_words(dataset: str, partition: str | None) -> str:
    return f"dataset {dataset}" + (f", partition {partition}" if partition else "")


def _decide(
    request: Request, pools: Sequence[PoolRow], at_most: dict[str, int], price: Price
) -> Decision:
    if not any(pool.kind == "user" for pool in pools):
        label = f"user_pool:{request.requester}"
        why = f"{request.requester} has no budget for dataset {request.dataset}"
        return Decision(0, None, label, f"denied by {label}: {why}")
    limits = {
        kind: [
            Limit(label, pool.limit_pico)
            for pool in pools
            if pool.kind == kind and pool.limit_pico is not None
        ]
        for kind, label in (("dataset", "per_operation_limit"), ("user", "per_request_limit"))
    }
    found: list[Room] = rooms(pools, at_most, dataset=request.dataset, partition=request.partition)
    return decide(
        request.epsilon_pico,
        request.accept_at_least_pico,
        per_operation=limits["dataset"],
        per_request=limits["user"],
        rooms=found,
        price=price,
    )


def _record(
    tx: Transaction,
    request: Request,
    pools: Sequence[PoolRow],
    decision: Decision,
    lifetime: timedelta,
) -> Charge:
    granted = decision.cost is not None
    if decision.cost is not None:
        delta = next(pool.delta_exponent for pool in pools if pool.kind == "dataset")
        require_claim(decision.cost, decision.granted_pico, delta)
    charge_id = "ch_" + secrets.token_hex(10)
    values = {
        "key": request.key,
        "request_digest": request.digest(),
        "dataset": request.dataset,
        "requester": request.requester,
        "actor": request.actor,
        "release": request.release,
        "period": request.period,
        "partition": request.partition,
        "mechanism": request.mechanism,
        "parameters": canonical_json(dict(request.parameters)),
        "snapshot_id": request.snapshot_id,
        "requested_pico": request.epsilon_pico,
        "accept_at_least_pico": request.accept_at_least_pico,
        "granted_pico": decision.granted_pico,
        "planned_rho_pico": decision.cost.rho_pico if decision.cost else None,
        "planned_epsilon_pure_pico": decision.cost.epsilon_pure_pico if decision.cost else None,
        "amounts": canonical_json(decision.amounts_pico),
        "binding": decision.binding,
        "reason": decision.reason,
        "dag_id": request.dag_id,
        "run_id": request.run_id,
        "task_id": request.task_id,
        "map_index": request.map_index,
        "created_at": tx.at,
        "expires_at": stamp(tx.now + lifetime) if granted else None,
        "decided_seq": NUMBER,
        "state": "reserved" if granted else "denied",
        "fence": 0,
        "attempt": None,
        "rounds_begun": 0,
        "rounds_closed": 0,
        "rounds_answered": 0,
        "cost_rho_pico": None,
        "cost_epsilon_pure_pico": None,
        "plan": None,
        "plan_digest": None,
        "events": "[]",
        "transcript_digest": None,
        "manifest_digest": None,
        "release_id": None,
        "uri": None,
        "note": None,
        "sealed_seq": None,
    }
    entry = tx.append(
        Draft(
            kind="reserve",
            actor=request.actor,
            words=_words(request, pools, decision),
            charge_id=charge_id,
            changes=[Change("charge", charge_id, values)],
            postings=move(decision.amounts_pico, AVAILABLE, HELD),
        )
    )
    decided = {"decided_seq": entry.seq, "decided_hash": entry.hash, "sealed_hash": None}
    return charge_of({"charge_id": charge_id, **values, **decided})


def _words(request: Request, pools: Sequence[PoolRow], decision: Decision) -> str:
    asked = (
        f"{request.actor} asked, for {request.requester}, epsilon "
        f"{format_amount(request.epsilon_pico)} of dataset "
        f"{request.dataset} for release {request.release}, period {request.period}: "
        f"{decision.reason}"
    )
    if not decision.amounts_pico:
        return asked + "; nothing is charged."
    held = amounts_in_words(decision.amounts_pico, {pool.pool_id: pool for pool in pools})
    return f"{asked}; held {held}."
