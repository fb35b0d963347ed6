"""A step that reads without locks and writes everything in one trip, on PostgreSQL.

While a step holds the head of the journal everybody waits. A client that asks, thinks and answers
under that lock makes them wait for its own turn on a busy machine; a server that has the whole
transaction at hand does not. So the step reads first, decides, and sends entry, changes and commit
together. Each change names what its row must still hold, a step that rests on pools names the last
declaration it has seen, and the database guards the caps: nothing is written unless all of it
still holds, and then the step is taken again under the lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import psycopg
from sqlalchemy import BigInteger, Engine, Text, bindparam, cast, column, func, select

from include.budget.errors import LedgerError, LedgerRefused
from include.budget.journal import FORMAT, NUMBER, QUOTED_NUMBER, Draft
from include.budget.models import Charge
from include.budget.store import locks
from include.budget.store.engine import Collision, Taken, told
from include.budget.store.prepared import Call, OnPostgres, Prepared, Row, on_postgres
from include.budget.store.transaction import (
    Clock,
    Link,
    Question,
    Transaction,
    applied,
    changed,
    question_of,
    transaction,
    utc_now,
)


@dataclass
class Memory:
    """The charge that a process has written last, as it left it.

    It spares a read where the next step follows in the same process, and is believed only as far as
    the database agrees: state, fence and rounds are compared when the next step is written, and no
    other column changes without one of them.

    Privacy: ledger only.
    """

    charge: Row | None = None


class Optimistic(Transaction):
    """One step: reads that stand for themselves, then one `append`, which commits.

    Args:
        session: A connection outside any transaction.
        now: The time of the step.
        memory: What the process has written last.

    Privacy: ledger only.
    """

    def __init__(self, session: OnPostgres, now: datetime, memory: Memory) -> None:
        super().__init__(session, now)
        self._server = session
        self._memory = memory
        self._declared: int | None = None
        self.written = False

    def under_lock(self) -> None:
        """Give the step up: it rests on figures that others may change meanwhile.

        Raises:
            Collision: Always.
        """
        raise Collision("this step needs its figures locked.")

    def question(
        self, dataset: str, requester: str, key: str, release: str, period: str
    ) -> Question:
        """Read the pools; of a key or period that is taken the database knows."""
        (pools,) = self._ask(locks.POOLS_OF_DATASET(dataset=dataset, requester=requester))
        self._rest_on(pools)
        return question_of(pools, [])

    def charge(self, charge_id: str) -> Charge:
        """Recall a charge, or read it.

        Raises:
            UnknownName: There is none of that id.
        """
        known = self._memory.charge
        if known is None or known["charge_id"] != charge_id:
            return super().charge(charge_id)
        return self._only([known], charge_id)

    def append(self, draft: Draft) -> Link:
        """Write the draft, apply its changes and commit, all in one trip.

        Raises:
            Collision: What the step rests on has changed; nothing was written.
        """
        entry = _APPEND(
            kind=draft.kind,
            charge_id=draft.charge_id,
            draft=draft.body(self.at),
            placeholder=QUOTED_NUMBER,
            format=FORMAT,
            declared=self._declared,
        )
        row = self._server.settle(entry, map(applied, draft.changes))
        self.written, link = True, Link(row["seq"], row["hash"])
        self._remember(draft, link)
        return link

    def _ask(self, *calls: Call) -> list[list[Row]]:
        return self._session.ask(*calls)

    def _rest_on(self, pools: Sequence[Row]) -> None:
        self._declared = next((row["declared"] for row in pools), None)

    def _remember(self, draft: Draft, link: Link) -> None:
        known = self._charge_row
        for change in draft.changes:
            if known is None or (change.table, change.key) != ("charge", known["charge_id"]):
                continue
            known = known | dict(changed(change, link.seq).values)
            if change.values.get("sealed_seq") == NUMBER:
                known["sealed_hash"] = link.hash
            self._memory.charge = known


# Every parameter says its type: no function of the same name and other types is a better match.
_APPENDED = func.dp_append(
    *(
        cast(bindparam(name), Text)
        for name in ("kind", "charge_id", "draft", "placeholder", "format")
    ),
    cast(bindparam("declared"), BigInteger),
).table_valued(column("seq"), column("hash"))
_APPEND = Prepared(select(_APPENDED.c.seq, _APPENDED.c.hash))


@contextmanager
def step(
    engine: Engine, clock: Clock = utc_now, *, locking: bool, memory: Memory | None = None
) -> Iterator[Transaction]:
    """Run one step of a charge's life.

    Without the lock a step can only say yes, by writing: a refusal and the answer to a repeated
    question are given under it, on figures that stand.

    Args:
        engine: From `connect`.
        clock: Source of the time written into entries.
        locking: Take the head before reading; SQLite always does, it has one writer at a time.
        memory: What the process has written last; emptied by a step under the lock.

    Yields:
        The transaction; at the end of the block it is on disk or has left no trace.

    Raises:
        LedgerUnavailable, LedgerRefused, Collision: As for `transaction`.

    Privacy: ledger only.
    """
    memory = memory or Memory()
    if locking or engine.dialect.name != "postgresql":
        memory.charge = None
        try:
            with transaction(engine, clock) as locked:
                yield locked
        except Taken as fault:
            raise LedgerRefused(str(fault)) from None
        return
    with told(), on_postgres(engine, locking=False) as opened:
        unlocked = Optimistic(opened, clock(), memory)
        try:
            yield unlocked
        except (psycopg.IntegrityError, LedgerError):
            if unlocked.written:
                raise
        if not unlocked.written:
            raise Collision("this step must be taken under the lock.")
