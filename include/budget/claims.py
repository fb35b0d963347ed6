"""Claims that a dataset's partitions are disjoint by privacy unit, so that they run in parallel."""

from __future__ import annotations

from collections.abc import Sequence

from include.budget.errors import DeclarationMismatch, InvalidRequest, UnknownName
from include.budget.journal import AVAILABLE, ISSUED, Change, Draft, move
from include.budget.models import LONGEST_REASON, require_text, same_person
from include.budget.partitions import claim_id, partition_name
from include.budget.pools import lane_change, population_subject, required_pools
from include.budget.store.transaction import Transaction


def register_partitions(
    tx: Transaction,
    population: str,
    dataset: str,
    *,
    column: str,
    values: Sequence[str],
    at_most: int = 1,
    actor: str,
    authorised_by: str,
    reason: str,
) -> None:
    """Register that a dataset's partitions are disjoint by privacy unit, so they may run parallel.

    Only where every row is another unit: a unit's one row has one value, and that is the rule on
    the unit's own rows which keeps it out of all other partitions. Where a unit has several rows
    no release can see in how many partitions they lie, so those charges are added up.

    Args:
        tx: The transaction.
        population: Whose units.
        dataset: The partitioned dataset.
        column: The column whose value says which partition a row is in.
        values: Every partition's value.
        at_most: Partitions one unit may be in; above 1 where a unit may change its value between
            snapshots.
        actor: Who claims it.
        authorised_by: Who allows it; somebody else.
        reason: Why the values are disjoint by unit, and stay so.

    Raises:
        DeclarationMismatch: Another claim is registered for them.
        InvalidRequest: A value is named twice, one person authorises himself, or units have ids.
        UnknownName: The dataset does not draw on the population.

    Source: parallel composition; McSherry 2009, Theorem 4, generalised to `at_most` partitions.

    Privacy: ledger only.
    """
    require_text(column, name="column")
    require_text(reason, name="reason", longest=LONGEST_REASON)
    names = [partition_name(column, require_text(value, name="partition")) for value in values]
    if not names or len(set(map(_plain, names))) != len(names) or not 1 <= at_most <= len(names):
        raise InvalidRequest(
            f"partitions of {dataset}: list each value once (1994 and 1994.0 are one), and let a "
            "unit be in 1 to all of them."
        )
    if same_person(actor, authorised_by):
        raise InvalidRequest("a claim of disjoint partitions needs two people: name another.")
    claim = claim_id(population, dataset)
    row = {"population": population, "dataset": dataset, "rule": column, "at_most": at_most}
    pools = required_pools(tx, population_subject(population))
    known = tx.row("claim", claim)
    if known is not None:
        found = tx.rows("pool", kind="partition", owner=population, dataset=dataset)
        lanes = {lane["partition"] for lane in found}
        if {**known} == {"claim": claim, **row} and set(names) == lanes:
            return
        raise DeclarationMismatch(
            f"partitions of {dataset} for {population} are registered by column {known['rule']} "
            f"with at most {known['at_most']} a unit: a claim is made once and stays as it is."
        )
    links = tx.rows("dataset_population", dataset=dataset, population=population)
    if not links:
        raise UnknownName(f"dataset {dataset} does not draw on {population}: register it first.")
    if (links[0]["id_column"], links[0]["max_rows"]) != (None, 1):
        raise InvalidRequest(
            f"partitions of {dataset}: a unit of {population} may have several rows there, which "
            "may lie in any number of partitions: their charges are added up, claim nothing."
        )
    lanes_opened = [lane_change(pool, dataset, name) for pool in pools for name in names]
    tx.append(
        Draft(
            kind="register_partitions",
            actor=require_text(actor, name="actor"),
            words=f"{actor}, authorised by {authorised_by}, registered {len(names)} partitions of "
            f"{dataset} as disjoint for {population} by column {column}: a unit is in at most "
            f"{at_most}, so they compose in parallel: {reason}.",
            changes=[Change("claim", claim, row), *(change for change, _ in lanes_opened)],
            postings=move({change.key: cap for change, cap in lanes_opened}, ISSUED, AVAILABLE),
            facts={"authorised_by": authorised_by, "reason": reason},
        )
    )


def _plain(name: str) -> str:
    """Write a partition's name as `select` reads values: 1994.0 is 1994."""
    while name.endswith(".0"):
        name = name.removesuffix(".0")
    return name
