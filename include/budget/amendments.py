"""What an administrator changes later, each change a journal entry with who and why.

A cap is never raised: a new generation of the pool opens beside what the old one has used, and its
entry states the sum that now protects the same people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from include.accounting.accountant import Accounting
from include.accounting.amounts import format_amount, format_delta
from include.accounting.zcdp import epsilon_from_rho
from include.budget.errors import DeclarationMismatch, InvalidRequest, PoolFrozen, UnknownName
from include.budget.journal import AVAILABLE, ISSUED, Change, Draft, move
from include.budget.models import require_pico, require_text
from include.budget.partitions import claim_id, figure
from include.budget.policy import UNIT
from include.budget.registration import (
    current_pools,
    limit_change,
    other,
    pool_change,
    population_subject,
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
    pools = _current(tx, subject)
    changes = [limit_change(tx, subject, limit_pico, actor, require_text(reason, name="reason"))]
    changes += [
        Change("pool", p.pool_id, {"limit_pico": limit_pico}, was={"status": p.status})
        for p in pools
    ]
    tx.append(
        Draft(
            kind="change_limit",
            actor=require_text(actor, name="actor"),
            words=f"{actor} changed the limit of {subject} from {_shown(pools[0].limit_pico)} to "
            f"{_shown(limit_pico)}: {reason}.",
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
    if require_text(actor, name="actor") == require_text(authorised_by, name="authorised_by"):
        raise InvalidRequest("a new generation of a budget needs two people: name another.")
    old = _current(tx, subject)
    if any(pool.status == "frozen" for pool in old):
        raise PoolFrozen(f"{subject} is frozen: reconcile the ledger before opening a generation.")
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


def register_partitions(
    tx: Transaction,
    population: str,
    dataset: str,
    *,
    rule: str,
    partitions: Sequence[str],
    at_most: int,
    actor: str,
    authorised_by: str,
) -> None:
    """Register that a dataset's partitions are disjoint by privacy unit, so they may run parallel.

    Args:
        tx: The transaction.
        population: Whose units.
        dataset: The partitioned dataset.
        rule: The data-independent rule, in words, for example "year of interview".
        partitions: Every partition's value.
        at_most: Partitions one unit may be in; truncation must enforce it on the unit's own rows.
        actor: Who claims it.
        authorised_by: Who allows it; somebody else.

    Raises:
        DeclarationMismatch: Another claim is registered for them.
        InvalidRequest, UnknownName: As named.

    Source: parallel composition; McSherry 2009, Theorem 4, generalised to `at_most` partitions.

    Privacy: ledger only.
    """
    values = [require_text(value, name="partition") for value in partitions]
    if not values or len(set(values)) != len(values) or not 1 <= at_most <= len(values):
        raise InvalidRequest(
            f"partitions of {dataset}: list each once, and let a unit be in 1 to all of them."
        )
    if actor == authorised_by:
        raise InvalidRequest("a claim of disjoint partitions needs two people: name another.")
    claim = claim_id(population, dataset)
    row = {"population": population, "dataset": dataset, "rule": rule, "at_most": at_most}
    pools = _current(tx, population_subject(population))
    known = tx.row("claim", claim)
    if known is not None:
        found = tx.rows("pool", kind="partition", owner=population, dataset=dataset)
        lanes = {lane["partition"] for lane in found}
        if {**known} == {"claim": claim, **row} and set(values) == lanes:
            return
        raise DeclarationMismatch(
            f"partitions of {dataset} for {population}: registered with the rule "
            f"{known['rule']!r}, declared with {rule!r}: restore the declaration."
        )
    if not tx.rows("dataset_population", dataset=dataset, population=population):
        raise UnknownName(f"dataset {dataset} does not draw on {population}: register it first.")
    lanes_opened = [_lane(pool, dataset, value) for pool in pools for value in values]
    tx.append(
        Draft(
            kind="register_partitions",
            actor=require_text(actor, name="actor"),
            words=f"{actor}, authorised by {authorised_by}, registered {len(values)} partitions of "
            f"{dataset} as disjoint for {population} by {rule}: a unit is in at most {at_most}, "
            "so they compose in parallel.",
            changes=[Change("claim", claim, row), *(change for change, _ in lanes_opened)],
            postings=move({change.key: cap for change, cap in lanes_opened}, ISSUED, AVAILABLE),
            facts={"authorised_by": authorised_by},
        )
    )


def amend_dataset(
    tx: Transaction,
    name: str,
    *,
    schema_digest: str | None = None,
    populations: Mapping[str, Mapping[str, Any]] | None = None,
    actor: str,
    reason: str,
) -> None:
    """Change a dataset's schema or add populations it draws on; none is ever taken away.

    Args:
        tx: The transaction.
        name: A registered dataset.
        schema_digest: Digest of the new schema.
        populations: Populations to add, each with `id_column` and `max_rows`.
        actor: Who changes it.
        reason: Why.

    Raises:
        UnknownName: The dataset or a population is not registered.

    Privacy: ledger only.
    """
    known = tx.row("dataset", name)
    if known is None:
        raise UnknownName(f"dataset {name} is not registered: register it first.")
    changes = []
    if schema_digest is not None:
        was = {"schema_digest": known["schema_digest"]}
        changes.append(Change("dataset", name, {"schema_digest": schema_digest}, was=was))
    for population, facts in sorted((populations or {}).items()):
        if tx.row("population", population) is None:
            raise UnknownName(f"population {population} is not registered: register it first.")
        link = {
            "dataset": name,
            "population": population,
            "id_column": facts.get("id_column"),
            "max_rows": facts.get("max_rows", 1),
        }
        changes.append(Change("dataset_population", f"{name}/{population}", link))
    tx.append(
        Draft(
            kind="amend_dataset",
            actor=require_text(actor, name="actor"),
            words=f"{actor} amended dataset {name}: {require_text(reason, name='reason')}.",
            changes=changes,
        )
    )


def _current(tx: Transaction, subject: str) -> list[PoolRow]:
    pools = current_pools(tx.pools_about(subject))
    if not pools:
        raise UnknownName(f"{subject} has no budget pool: register it first.")
    return pools


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
            _lane(
                parent,
                lane.dataset or "",
                lane.partition or "",
                generation=generation,
                epsilon_pico=totals[lane.accounting],
            )
        )
    return fresh


def _lane(
    parent: PoolRow,
    dataset: str,
    value: str,
    *,
    generation: int | None = None,
    epsilon_pico: int | None = None,
) -> tuple[Change, int]:
    number = generation or parent.generation
    return pool_change(
        f"partition:{parent.owner}:{parent.accounting}:{number}:{dataset}:{value}",
        kind="partition",
        subject=parent.subject,
        owner=parent.owner,
        dataset=dataset,
        partition=value,
        accounting=parent.accounting,
        delta_exponent=parent.delta_exponent,
        generation=number,
        epsilon_pico=epsilon_pico or parent.epsilon_pico,
        limit_pico=None,
    )


def _sum(pool: PoolRow, total: int) -> str:
    told = f"{UNIT[pool.accounting]} {format_amount(total)}"
    if pool.accounting == "epsilon":
        return told
    epsilon = format_amount(epsilon_from_rho(total, pool.delta_exponent))
    return f"{told} (epsilon {epsilon} at delta {format_delta(pool.delta_exponent)})"


def _shown(limit_pico: int | None) -> str:
    return "none" if limit_pico is None else format_amount(limit_pico)
