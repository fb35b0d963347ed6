"""The locking reads, in the one order every writer keeps: charge, pools by id, head.

Two writers that lock in the same order cannot block each other for ever.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Select,
    Table,
    Text,
    and_,
    bindparam,
    cast,
    func,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB

from include.budget.store.prepared import Prepared
from include.budget.store.rows import CHARGE_WITH_HASHES
from include.budget.store.tables import (
    CHARGE,
    CLAIM,
    DATASET_POPULATION,
    HEAD,
    OCCUPIES,
    POOL,
    POSTING,
)


class Reading:
    """One query in two forms: to read, and to lock the rows of one table while reading.

    Args:
        query: A SQLAlchemy query.
        table: The table whose rows are locked.

    Privacy: ledger only.
    """

    def __init__(self, query: Select[Any], table: Table) -> None:
        self.plain = Prepared(query)
        self.locking = Prepared(query.with_for_update(of=table))


class PoolReading(Reading):
    """Pools, with a third form: to lock them and check that they still stand as they were read.

    Args:
        query: A query of pools.

    Privacy: ledger only.
    """

    def __init__(self, query: Select[Any]) -> None:
        super().__init__(query, POOL)
        self.standing = Prepared(_standing(query.with_for_update(of=POOL)))


def _standing(locking: Select[Any]) -> Select[Any]:
    """Lock the pools found, and stop unless they are those told and have the room told.

    `told` is JSON: for each pool its status, its limit and the amount taken out of what is free.
    """
    pools = locking.subquery()
    free = pools.c.cap_pico - pools.c.held_pico - pools.c.spent_pico
    told = cast(bindparam("told", type_=Text), JSONB)[pools.c.pool_id]
    stands = and_(
        told["status"].astext == pools.c.status,
        told["limit"].astext.is_not_distinct_from(cast(pools.c.limit_pico, Text)),
        cast(told["taken"].astext, BigInteger) <= free,
    )
    every = and_(func.count() == bindparam("pools"), func.bool_and(stands))
    return select(func.dp_expected(every, ""))


_POOLS = select(POOL).order_by(POOL.c.pool_id)
_CLAIM_OF_LANE = (POOL.c.kind == "partition") & (
    CLAIM.c.claim == POOL.c.owner + "@" + POOL.c.dataset
)

CHARGE_OF_ID = Reading(
    CHARGE_WITH_HASHES.where(CHARGE.c.charge_id == bindparam("charge_id")), CHARGE
)

CHARGE_TAKEN = Prepared(
    select(CHARGE.c.charge_id).where(CHARGE.c.charge_id == bindparam("charge_id")).with_for_update()
)

POOLS_OF_CHARGE = PoolReading(
    _POOLS.where(
        POOL.c.pool_id.in_(
            select(POSTING.c.pool_id)
            .join(CHARGE, CHARGE.c.decided_seq == POSTING.c.seq)
            .where(CHARGE.c.charge_id == bindparam("charge_id"))
        )
    )
)

POOLS_OF_DATASET = PoolReading(
    select(POOL, CLAIM.c.claim, CLAIM.c.at_most)
    .select_from(POOL.outerjoin(CLAIM, _CLAIM_OF_LANE))
    .where(
        POOL.c.status != "retired",
        or_(
            (POOL.c.kind != "user")
            & POOL.c.owner.in_(
                select(DATASET_POPULATION.c.population).where(
                    DATASET_POPULATION.c.dataset == bindparam("dataset")
                )
            ),
            (POOL.c.kind == "user")
            & (POOL.c.owner == bindparam("requester"))
            & (POOL.c.dataset == bindparam("dataset")),
        ),
    )
    .order_by(POOL.c.pool_id)
)

_POOLS_LOCKED = _POOLS.with_for_update(of=POOL)
POOLS_OF_SUBJECT = Prepared(_POOLS_LOCKED.where(POOL.c.subject == bindparam("subject")))
EVERY_POOL = Prepared(_POOLS_LOCKED)

HEAD_LOCKED = Prepared(select(HEAD.c.seq, HEAD.c.hash).with_for_update())

SAME_QUESTION = Prepared(
    CHARGE_WITH_HASHES.where(
        or_(
            CHARGE.c.key == bindparam("key"),
            (CHARGE.c.release == bindparam("release"))
            & (CHARGE.c.period == bindparam("period"))
            & OCCUPIES,
        )
    )
)
