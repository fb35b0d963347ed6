"""Claims that a dataset's partitions are disjoint by privacy unit, so that they run in parallel."""

from __future__ import annotations

from collections.abc import Sequence

from include.budget.errors import DeclarationMismatch, InvalidRequest, UnknownName
from include.budget.journal import AVAILABLE, ISSUED, Change, Draft, move
from include.budget.models import require_text
from include.budget.partitions import claim_id
from include.budget.pools import lane_change, population_subject, required_pools
from include.budget.store.transaction import Transaction


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
    pools = required_pools(tx, population_subject(population))
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
    lanes_opened = [lane_change(pool, dataset, value) for pool in pools for value in values]
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
