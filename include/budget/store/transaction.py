"""One write transaction: lock in the fixed order (charge, pools by id, head), then append once.

Changing a row and writing the journal are one act here, so no caller can do the one without the
other. The database posts the entry's amounts to the balances itself (see migrations/sql).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine, Select, Table, func, insert, or_, select, update

from include.budget.errors import UnknownName
from include.budget.journal import Change, Draft, entry_hash
from include.budget.models import Charge
from include.budget.store.engine import Collision, writing
from include.budget.store.rows import CHARGE_WITH_HASHES, PoolRow, charge_of, pool_of
from include.budget.store.tables import (
    CHARGE,
    CHECKPOINT,
    DATASET_POPULATION,
    ENTRY,
    HEAD,
    POOL,
    PROJECTIONS,
    RELEASE,
)

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Read the machine's clock in UTC. Privacy: ledger only."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """Write a time the way the ledger stores it: UTC, microseconds, sorts as text.

    Privacy: ledger only.
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Link(NamedTuple):
    """Where an entry stands in the chain. Privacy: ledger only."""

    seq: int
    hash: str


class Transaction:
    """The operations of one short write transaction.

    Args:
        connection: Inside a transaction.
        now: The time all of it happens at.

    Privacy: ledger only.
    """

    def __init__(self, connection: Connection, now: datetime) -> None:
        self.connection = connection
        self.now = now
        self.at = stamp(now)
        self._head: Link | None = None

    def charge(self, charge_id: str) -> Charge:
        """Lock a charge and read it.

        Raises:
            UnknownName: There is none of that id.
        """
        query = CHARGE_WITH_HASHES.where(CHARGE.c.charge_id == charge_id)
        row = self.connection.execute(query.with_for_update(of=CHARGE)).mappings().first()
        if row is None:
            raise UnknownName(f"charge {charge_id} is not in the ledger: check its id.")
        return charge_of(row)

    def same_question(self, key: str, release: str, period: str) -> list[Charge]:
        """Find the charge of a key and the one that occupies a period (often the same one)."""
        occupies = CHARGE.c.state.not_in(("denied", "void"))
        query = CHARGE_WITH_HASHES.where(
            or_(
                CHARGE.c.key == key,
                (CHARGE.c.release == release) & (CHARGE.c.period == period) & occupies,
            )
        )
        return [charge_of(row) for row in self.connection.execute(query).mappings()]

    def pools_of(self, dataset: str, requester: str) -> list[PoolRow]:
        """Lock every pool, in the order of ids, that a charge on this dataset may touch."""
        populations = select(DATASET_POPULATION.c.population).where(
            DATASET_POPULATION.c.dataset == dataset
        )
        return self._pools(
            select(POOL).where(
                POOL.c.status != "retired",
                or_(
                    POOL.c.kind.in_(("dataset", "partition")) & POOL.c.owner.in_(populations),
                    (POOL.c.kind == "user")
                    & (POOL.c.owner == requester)
                    & (POOL.c.dataset == dataset),
                ),
            )
        )

    def pools(self, pool_ids: Sequence[str]) -> list[PoolRow]:
        """Lock named pools in the order of their ids."""
        return self._pools(select(POOL).where(POOL.c.pool_id.in_(pool_ids)))

    def pools_about(self, subjects: Sequence[str]) -> list[PoolRow]:
        """Lock every generation of the pools of some subjects, in the order of their ids."""
        return self._pools(select(POOL).where(POOL.c.subject.in_(subjects)))

    def every_pool(self) -> list[PoolRow]:
        """Lock every pool in the order of ids."""
        return self._pools(select(POOL))

    def _pools(self, query: Select[tuple[object, ...]]) -> list[PoolRow]:
        locked = query.order_by(POOL.c.pool_id).with_for_update()
        return [pool_of(row) for row in self.connection.execute(locked).mappings()]

    def row(self, table: str, key: str) -> dict[str, Any] | None:
        """Read one row of a projection by its key."""
        source = PROJECTIONS[table]
        query = select(source).where(next(iter(source.primary_key.columns)) == key)
        found = self.connection.execute(query).mappings().first()
        return None if found is None else {str(name): value for name, value in found.items()}

    def rows(self, table: str, **equal: str) -> list[dict[str, Any]]:
        """Read the rows of a projection whose columns equal the given values, in key order."""
        source = PROJECTIONS[table]
        query = select(source).where(*(source.c[name] == value for name, value in equal.items()))
        ordered = query.order_by(next(iter(source.primary_key.columns)))
        return [
            {str(name): value for name, value in found.items()}
            for found in self.connection.execute(ordered).mappings()
        ]

    def bodies(self, charge_id: str, kind: str) -> list[dict[str, Any]]:
        """Read the bodies of a charge's entries of one kind, oldest first."""
        query = select(ENTRY.c.body).where(ENTRY.c.charge_id == charge_id, ENTRY.c.kind == kind)
        return [json.loads(body) for body in self.connection.scalars(query.order_by(ENTRY.c.seq))]

    def bodies_of_kind(self, kind: str) -> list[dict[str, Any]]:
        """Read the bodies of all entries of one kind, oldest first (rare kinds only)."""
        query = select(ENTRY.c.body).where(ENTRY.c.kind == kind).order_by(ENTRY.c.seq)
        return [json.loads(body) for body in self.connection.scalars(query)]

    def hash_at(self, seq: int) -> str | None:
        """Read the hash of an entry; None beyond the end of the journal."""
        return self.connection.scalar(select(ENTRY.c.hash).where(ENTRY.c.seq == seq))

    def due(self, at: str) -> list[str]:
        """Name the reservations that nobody opened in time."""
        query = select(CHARGE.c.charge_id).where(
            CHARGE.c.state == "reserved", CHARGE.c.expires_at <= at
        )
        return list(self.connection.scalars(query.order_by(CHARGE.c.charge_id)))

    def turn(self) -> Link:
        """Lock the head of the journal: the next entry is ours.

        Returns:
            The entry that the next one follows.
        """
        if self._head is None:
            query = select(HEAD.c.seq, HEAD.c.hash).with_for_update()
            self._head = Link(*self.connection.execute(query).one())
        return self._head

    def ledger_id(self) -> str:
        """Read the random id of this ledger."""
        return str(self.connection.scalar(select(HEAD.c.ledger_id)))

    def counts(self) -> dict[str, int]:
        """Count charges and releases."""
        query = select(
            select(func.count()).select_from(CHARGE).scalar_subquery(),
            select(func.count()).select_from(RELEASE).scalar_subquery(),
        )
        charges, releases = self.connection.execute(query).one()
        return {"charges": charges, "releases": releases}

    def checkpoint_at(self, seq: int) -> dict[str, str] | None:
        """Read the checkpoint of an entry, if one was made."""
        query = select(CHECKPOINT.c.body, CHECKPOINT.c.key_id, CHECKPOINT.c.signature)
        row = self.connection.execute(query.where(CHECKPOINT.c.seq == seq)).mappings().first()
        return None if row is None else {str(name): str(value) for name, value in row.items()}

    def keep_checkpoint(self, seq: int, made: Mapping[str, str]) -> None:
        """Store a signed checkpoint; it vouches for the journal and is not part of it."""
        self.connection.execute(insert(CHECKPOINT), {"seq": seq, **made})

    def append(self, draft: Draft) -> Link:
        """Apply the draft's changes, then write it; the entry posts its own amounts.

        Args:
            draft: What happened.

        Returns:
            The entry's place in the chain.

        Raises:
            Collision: A row no longer held what the step starts from.
        """
        head = self.turn()
        for change in draft.changes:
            self._apply(change)
        seq = head.seq + 1
        body = draft.body(seq, self.at)
        entry = Link(seq, entry_hash(seq, head.hash, body))
        self.connection.execute(
            insert(ENTRY),
            {
                "seq": seq,
                "kind": draft.kind,
                "charge_id": draft.charge_id,
                "prev_hash": head.hash,
                "hash": entry.hash,
                "body": body,
            },
        )
        self._head = entry
        return entry

    def _apply(self, change: Change) -> None:
        table: Table = PROJECTIONS[change.table]
        key = next(iter(table.primary_key.columns))
        if change.was is None:
            self.connection.execute(
                insert(table), {key.name: change.key, **change.values, **change.aside}
            )
            return
        # Compare and set: the row lock comes first, this is the second fence.
        holds = [table.c[name] == value for name, value in change.was.items()]
        statement = update(table).where(key == change.key, *holds).values(**change.values)
        if self.connection.execute(statement).rowcount != 1:
            raise Collision(f"{change.table} {change.key} changed in between: ask again.")


@contextmanager
def transaction(engine: Engine, clock: Clock = utc_now) -> Iterator[Transaction]:
    """Run one write transaction of the ledger.

    Args:
        engine: From `connect`.
        clock: Source of the time written into entries.

    Yields:
        The transaction; it commits at the end of the block.

    Raises:
        LedgerError: As `writing`.

    Privacy: ledger only.
    """
    with writing(engine) as connection:
        yield Transaction(connection, clock())
