"""What an administrator changes later, each change a journal entry with who and why.

A cap is never raised: a new generation of the pool opens beside what the old one has used, and its
entry states the sum that now protects the same people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from include.accounting.accountant import Accounting
from include.accounting.amounts import format_amount, format_delta
from include.accounting.zcdp import epsilon_from_rho
from include.budget.errors import THAW, InvalidRequest, PoolFrozen
from include.budget.journal import AVAILABLE, ISSUED, Change, Draft, move
from include.budget.models import require_pico, require_text, same_person
from include.budget.partitions import figure
from include.budget.policy import UNIT
from include.budget.pools import (
    lane_change,
    limit_change,
    limit_in_words,
    other,
    pool_change,
    required_pools,
)
from include.budget.store.rows import PoolRow
from include.budget.store.transaction import Transaction


def change_limit(
    tx: Transaction, subject: str, limit_pico: int | None, *, actor: str, reason: str
) -> None:
    """Change a limit on one operation or one request; the history keeps the old one.

    Args:
        tx: The transaction.
        subject: "population:NAME" or "user:NAME@DATASET".
        limit_pico: The new limit in epsilon, units of 1e-12; None for none.
        actor: Who changes it.
        reason: Why.

    Raises:
        UnknownName: There is no such pool.

    Privacy: ledger only.
    """
    if limit_pico is not None:
        require_pico(limit_pico, name="limit")
    pools = required_pools(tx, subject)
    changes = [limit_change(tx, subject, limit_pico, actor, require_text(reason, name="reason"))]
    changes += [
        Change("pool", p.pool_id, {"limit_pico": limit_pico}, was={"status": p.status})
        for p in pools
    ]
    before, after = limit_in_words(pools[0].limit_pico), limit_in_words(limit_pico)
    tx.append(
        Draft(
            kind="change_limit",
            actor=require_text(actor, name="actor"),
            words=f"{actor} changed the limit of {subject} from {before} to {after}: {reason}.",
            changes=changes,
        )
    )


def new_generation(
    tx: Transaction,
    subject: str,
    epsilon_pico: int,
    *,
    actor: str,
    authorised_by: str,
    reason: str,
    additional_epsilon_pico: int | None = None,
) -> None:
    """Open a new generation of a pool; the old one is retired with what it has used.

    Args:
        tx: The transaction.
        subject: "population:NAME" or "user:NAME@DATASET".
        epsilon_pico: Total epsilon of the new generation, units of 1e-12.
        actor: Who asks for it.
        authorised_by: Who allows it; somebody else.
        reason: Why.
        additional_epsilon_pico: Total of the second currency, where the population has one.

    Raises:
        UnknownName: There is no such pool.
        InvalidRequest: One person wants to do both, or a total is missing.

    Privacy: ledger only.
    """
    require_text(reason, name="reason")
    second = require_text(authorised_by, name="authorised_by")
    if same_person(require_text(actor, name="actor"), second):
        raise InvalidRequest("a new generation of a budget needs two people: name another.")
    old = required_pools(tx, subject)
    if any(pool.status == "frozen" for pool in old):
        raise PoolFrozen(f"{subject} is frozen; {THAW}.")
    totals = _totals(tx, old, epsilon_pico, additional_epsilon_pico)
    fresh = [_next(pool, totals[pool.accounting]) for pool in old]
    fresh += _next_partitions(tx, old, totals)
    # A partition's pool of the old generation is retired with it; what it used still counts there.
    retired = [pool for pool in tx.pools_about(subject) if pool.status != "retired"]
    claims = {row["claim"]: row["at_most"] for row in tx.rows("claim", population=old[0].owner)}
    used = [figure(pool, retired, claims, spent=False) for pool in old]
    sums = "; ".join(
        _sum(pool, pool_used + cap)
        for pool, pool_used, (_, cap) in zip(old, used, fresh[: len(old)], strict=True)
    )
    tx.append(
        Draft(
            kind="generation",
            actor=actor,
            words=f"{actor}, authorised by {authorised_by}, opened generation "
            f"{old[0].generation + 1} of {subject} with epsilon {format_amount(epsilon_pico)}: "
            f"{reason}. In all generations together the same people are now protected by {sums}.",
            changes=[
                *(
                    Change("pool", p.pool_id, {"status": "retired"}, was={"status": p.status})
                    for p in retired
                ),
                *(change for change, _ in fresh),
            ],
            postings=move({change.key: cap for change, cap in fresh}, ISSUED, AVAILABLE),
            facts={"authorised_by": authorised_by, "reason": reason},
        )
    )


def _totals(
    tx: Transaction, old: Sequence[PoolRow], epsilon_pico: int, additional_pico: int | None
) -> dict[Accounting, int]:
    require_pico(epsilon_pico, name="epsilon")
    population = tx.row("population", old[0].owner) if old[0].kind == "dataset" else None
    main: Accounting = population["accounting"] if population else old[0].accounting
    totals: dict[Accounting, int] = {main: epsilon_pico}
    if additional_pico is not None:
        totals[other(main)] = require_pico(additional_pico, name="additional epsilon")
    if set(totals) != {pool.accounting for pool in old}:
        raise InvalidRequest("a new generation states a total for every currency the old one has.")
    return totals


def _next(pool: PoolRow, epsilon_pico: int) -> tuple[Change, int]:
    generation = pool.generation + 1
    stem = pool.pool_id.rsplit(":", 1)[0]
    return pool_change(
        f"{stem}:{generation}",
        kind=pool.kind,
        subject=pool.subject,
        owner=pool.owner,
        dataset=pool.dataset,
        accounting=pool.accounting,
        delta_exponent=pool.delta_exponent,
        generation=generation,
        epsilon_pico=epsilon_pico,
        limit_pico=pool.limit_pico,
    )


def _next_partitions(
    tx: Transaction, old: Sequence[PoolRow], totals: Mapping[Accounting, int]
) -> list[tuple[Change, int]]:
    found = tx.pools_about(old[0].subject)
    lanes = [p for p in found if p.kind == "partition" and p.generation == old[0].generation]
    parents = {pool.accounting: pool for pool in old}
    fresh = []
    for lane in lanes:
        parent = parents[lane.accounting]
        generation = parent.generation + 1
        fresh.append(
            lane_change(
                parent,
                lane.dataset or "",
                lane.partition or "",
                generation=generation,
                epsilon_pico=totals[lane.accounting],
            )
        )
    return fresh


def _sum(pool: PoolRow, total: int) -> str:
    told = f"{UNIT[pool.accounting]} {format_amount(total)}"
    if pool.accounting == "epsilon":
        return told
    epsilon = format_amount(epsilon_from_rho(total, pool.delta_exponent))
    return f"{told} (epsilon {epsilon} at delta {format_delta(pool.delta_exponent)})"
