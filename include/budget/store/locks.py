"""What a step reads, and the one lock of the ledger: the head of the journal.

Whoever writes must hold the head at last. Holding it first makes it the only lock: nobody waits
twice, and two writers cannot block each other for ever.
"""

from __future__ import annotations

from sqlalchemy import bindparam, or_, select

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

_DECLARED = select(HEAD.c.declared).scalar_subquery().label("declared")
"""The last entry that belongs to no charge: only such an entry changes pools, limits, datasets."""

_POOLS = select(POOL).order_by(POOL.c.pool_id)
_CLAIM_OF_LANE = (POOL.c.kind == "partition") & (
    CLAIM.c.claim == POOL.c.owner + "@" + POOL.c.dataset
)

CHARGE_OF_ID = Prepared(CHARGE_WITH_HASHES.where(CHARGE.c.charge_id == bindparam("charge_id")))

POOLS_OF_CHARGE = Prepared(
    _POOLS.add_columns(_DECLARED).where(
        POOL.c.pool_id.in_(
            select(POSTING.c.pool_id)
            .join(CHARGE, CHARGE.c.decided_seq == POSTING.c.seq)
            .where(CHARGE.c.charge_id == bindparam("charge_id"))
        )
    )
)

POOLS_OF_DATASET = Prepared(
    select(POOL, CLAIM.c.claim, CLAIM.c.at_most, _DECLARED)
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

POOLS_OF_SUBJECT = Prepared(_POOLS.where(POOL.c.subject == bindparam("subject")))
EVERY_POOL = Prepared(_POOLS)

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
