"""How much room pools have left, with partitions that compose in parallel.

A population's figure is what is charged on the whole, plus for every registered claim the sum of
the `at_most` largest partition totals: a unit is in at most that many partitions, so it meets at
most the largest of them. Charges on a partition that was not registered count on the whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from include.budget.policy import Room
from include.budget.store.rows import PoolRow

AtMost = Mapping[str, int]
"""Partitions one unit may be in, by claim id (`claim_id`)."""


def claim_id(population: str, dataset: str) -> str:
    """Name the claim that a dataset's partitions are disjoint for a population's units.

    Privacy: ledger only.
    """
    return f"{population}@{dataset}"


def partition_name(column: str, value: str) -> str:
    """Name a partition by its rule, for example "year=1994".

    Args:
        column: The column that selects it.
        value: Its value; blanks around it do not count.

    Returns:
        The name under which it is charged.

    Privacy: ledger only.
    """
    return f"{column}={value.strip()}"


def rooms(
    pools: Sequence[PoolRow], at_most: AtMost, *, dataset: str, partition: str | None
) -> list[Room]:
    """List what each pool that a charge touches can still hold, dataset pools first.

    Args:
        pools: All pools a charge on the dataset may touch.
        at_most: The registered claims.
        dataset: The dataset charged.
        partition: The partition the release is confined to, if any.

    Returns:
        One room for each pool to charge: a partition's own pool where one is registered.

    Privacy: ledger only.
    """
    parents = [pool for pool in pools if pool.kind == "dataset"]
    found = [_population_room(p, _lanes(p, pools), at_most, dataset, partition) for p in parents]
    return found + [_room(p, p.cap_pico - p.used_pico) for p in pools if p.kind == "user"]


def due_pools(
    pools: Mapping[str, Mapping[str, Any]],
    populations: Collection[str],
    *,
    dataset: str,
    requester: str,
    partition: str | None,
) -> set[str]:
    """List the pools that a granted charge holds from, on the rows of a replayed journal.

    Args:
        pools: Rows by pool id.
        populations: The populations the dataset draws on.
        dataset: The dataset charged.
        requester: For whom.
        partition: The partition the release is confined to, if any.

    Returns:
        Their ids, as `rooms` lists them; none where a request would be refused or denied.

    Privacy: ledger only.
    """
    current = {key: row for key, row in pools.items() if row["status"] != "retired"}
    lanes = {
        (row["owner"], row["accounting"], row["generation"]): key
        for key, row in current.items()
        if (row["kind"], row["dataset"], row["partition"]) == ("partition", dataset, partition)
    }
    of_data = {
        lanes.get((row["owner"], row["accounting"], row["generation"]), key)
        for key, row in current.items()
        if row["kind"] == "dataset" and row["owner"] in populations
    }
    own = ("user", requester, dataset)
    of_user = {
        key for key, row in current.items() if (row["kind"], row["owner"], row["dataset"]) == own
    }
    return of_data | of_user if of_data and of_user else set()


def figure(parent: PoolRow, pools: Sequence[PoolRow], at_most: AtMost, *, spent: bool) -> int:
    """Add up what counts against a population's cap.

    Args:
        parent: The population's pool.
        pools: Pools among which its partitions are.
        at_most: The registered claims.
        spent: Count only what is spent, not what is held.

    Returns:
        The figure in units of 1e-12 of the pool's currency.

    Privacy: ledger only.
    """

    def amount(pool: PoolRow) -> int:
        return pool.spent_pico if spent else pool.used_pico

    lanes = _lanes(parent, pools)
    return amount(parent) + sum(
        sum(sorted(map(amount, of_claim), reverse=True)[: at_most[claim]])
        for claim, of_claim in lanes.items()
    )


def _population_room(
    parent: PoolRow,
    lanes: dict[str, list[PoolRow]],
    at_most: AtMost,
    dataset: str,
    partition: str | None,
) -> Room:
    claim = claim_id(parent.owner, dataset)
    own = next((lane for lane in lanes.get(claim, ()) if lane.partition == partition), None)
    used = parent.used_pico
    for name, of_claim in lanes.items():
        # In its own claim a lane stands beside the largest others: it takes the last seat.
        seats = at_most[name] - (1 if own and name == claim else 0)
        totals = sorted((lane.used_pico for lane in of_claim if lane is not own), reverse=True)
        used += sum(totals[:seats])
    if own is None:
        return _room(parent, parent.cap_pico - used)
    return _room(own, parent.cap_pico - used - own.used_pico)


def _lanes(parent: PoolRow, pools: Sequence[PoolRow]) -> dict[str, list[PoolRow]]:
    lanes: dict[str, list[PoolRow]] = {}
    for pool in pools:
        same = (pool.owner, pool.accounting, pool.generation)
        if pool.kind == "partition" and same == (
            parent.owner,
            parent.accounting,
            parent.generation,
        ):
            lanes.setdefault(claim_id(pool.owner, pool.dataset or ""), []).append(pool)
    return lanes


def _room(pool: PoolRow, available_pico: int) -> Room:
    return Room(pool.pool_id, pool.label, pool.accounting, pool.delta_exponent, available_pico)
