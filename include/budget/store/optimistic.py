"""A step that reads without locks and writes everything in one trip, on PostgreSQL.

While a step holds the head of the journal everybody waits. A client that asks, thinks and answers
under that lock makes them wait for its own turn on a busy machine; a server that has the whole
transaction at hand does not. So the step reads first, decides, and sends changes, entry and commit
together; each change names what its row must still hold, and every pool read must still be the
same one, as open, and with the room that the entry takes. Otherwise nothing is written and the step
is taken again under locks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Engine, Text, bindparam, column, func, select

from include.budget.journal import AVAILABLE, FORMAT, NUMBER, QUOTED_NUMBER, Draft
from include.budget.models import Charge
from include.budget.store import locks
from include.budget.store.engine import Collision, told
from include.budget.store.prepared import Call, OnPostgres, Prepared, on_postgres
from include.budget.store.rows import PoolRow, pool_of
from include.budget.store.transaction import (
    Clock,
    Link,
    Question,
    Transaction,
    applied,
    one_charge,
    question_of,
    transaction,
    utc_now,
)


class Optimistic(Transaction):
    """One step: reads that stand for themselves, then one `append`, which commits.

    Privacy: ledger only.
    """

    def __init__(self, session: OnPostgres, now: datetime) -> None:
        super().__init__(session, now)
        self._server = session
        self._pools: Mapping[str, PoolRow] = {}
        self._again: Call | None = None

    def under_locks(self) -> None:
        """Give the step up: it rests on figures that others may change meanwhile.

        Raises:
            Collision: Always.
        """
        raise Collision("this step needs its figures locked.")

    def question(
        self, dataset: str, requester: str, key: str, release: str, period: str
    ) -> Question:
        """Read what a request finds; the keys of charge and period are unique in the database."""
        asked = {"dataset": dataset, "requester": requester}
        pools, found = self._session.ask(
            locks.POOLS_OF_DATASET.plain(**asked),
            locks.SAME_QUESTION(key=key, release=release, period=period),
        )
        answer = question_of(pools, found)
        self._rest_on(locks.POOLS_OF_DATASET, asked, answer.pools)
        return answer

    def charge(self, charge_id: str) -> Charge:
        """Read a charge.

        Raises:
            UnknownName: There is none of that id.
        """
        (found,) = self._session.ask(locks.CHARGE_OF_ID.plain(charge_id=charge_id))
        return one_charge(found, charge_id)

    def charge_with_pools(self, charge_id: str) -> tuple[Charge, dict[str, PoolRow]]:
        """Read a charge and the pools it was decided on.

        Raises:
            UnknownName: There is none of that id.
        """
        found, rows = self._session.ask(
            locks.CHARGE_OF_ID.plain(charge_id=charge_id),
            locks.POOLS_OF_CHARGE.plain(charge_id=charge_id),
        )
        charge, pools = one_charge(found, charge_id), [pool_of(row) for row in rows]
        self._rest_on(locks.POOLS_OF_CHARGE, {"charge_id": charge_id}, pools)
        return charge, {pool.pool_id: pool for pool in pools}

    def append(self, draft: Draft) -> Link:
        """Apply the draft's changes, write it and commit, all in one trip.

        Locks are taken in the order of every writer: charge, pools by id, head.

        Raises:
            Collision: What the step rests on has changed; nothing was written.
        """
        late = [change for change in draft.changes if NUMBER in change.values.values()]
        early = [applied(change) for change in draft.changes if change not in late]
        taken = [locks.CHARGE_TAKEN(charge_id=change.key) for change in late if change.was]
        entry = _APPEND(
            kind=draft.kind,
            charge_id=draft.charge_id,
            draft=draft.body(self.at),
            placeholder=QUOTED_NUMBER,
            format=FORMAT,
        )
        row = self._server.settle(
            [*taken, *early, *self._standing(draft)], entry, map(applied, late)
        )
        return Link(row["seq"], row["hash"])

    def _rest_on(
        self, reading: locks.PoolReading, given: Mapping[str, str], pools: Iterable[PoolRow]
    ) -> None:
        self._pools = {pool.pool_id: pool for pool in pools}
        self._again = reading.standing(**given)

    def _standing(self, draft: Draft) -> list[Call]:
        if self._again is None:
            return []
        expected = {
            pool_id: {
                "status": pool.status,
                "limit": pool.limit_pico,
                "taken": taken_from(draft, pool_id),
            }
            for pool_id, pool in self._pools.items()
        }
        statement, given = self._again
        return [statement(**given, told=json.dumps(expected), pools=len(expected))]


def taken_from(draft: Draft, pool_id: str) -> int:
    """Add up what an entry takes out of a pool's available budget, units of 1e-12.

    Privacy: ledger only.
    """
    return -sum(
        posting.amount_pico
        for posting in draft.postings
        if posting.pool_id == pool_id and posting.account == AVAILABLE and posting.amount_pico < 0
    )


_APPENDED = func.dp_append(
    bindparam("kind", type_=Text),
    bindparam("charge_id", type_=Text),
    bindparam("draft", type_=Text),
    bindparam("placeholder", type_=Text),
    bindparam("format", type_=Text),
).table_valued(column("seq"), column("hash"))
_APPEND = Prepared(select(_APPENDED.c.seq, _APPENDED.c.hash))


@contextmanager
def step(engine: Engine, clock: Clock = utc_now, *, locking: bool) -> Iterator[Transaction]:
    """Run one step of a charge's life.

    Args:
        engine: From `connect`.
        clock: Source of the time written into entries.
        locking: Lock before reading; SQLite always does, it has one writer at a time.

    Yields:
        The transaction; at the end of the block it is on disk or has left no trace.

    Raises:
        LedgerUnavailable, LedgerRefused, Collision: As for `transaction`.

    Privacy: ledger only.
    """
    if locking or engine.dialect.name != "postgresql":
        with transaction(engine, clock) as locked:
            yield locked
        return
    with told(), on_postgres(engine, locking=False) as opened:
        yield Optimistic(opened, clock())
