"""A step that reads without locks and writes everything in one trip, on PostgreSQL.

While a step holds the head of the journal everybody waits. A client that asks, thinks and answers
under that lock makes them wait for its own turn on a busy machine; a server that has the whole
transaction at hand does not. So the step reads first, decides, and sends entry, changes and commit
together. Each change names what its row must still hold, a step that rests on pools names the last
declaration it has seen, and the database guards the caps: nothing is written unless all of it
still holds, and then the step is taken again under the lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import psycopg
from sqlalchemy import BigInteger, Engine, Text, bindparam, column, func, select

from include.budget.journal import FORMAT, QUOTED_NUMBER, Draft
from include.budget.store import locks
from include.budget.store.engine import Collision, told
from include.budget.store.prepared import Call, OnPostgres, Prepared, Row, on_postgres
from include.budget.store.transaction import (
    Clock,
    Link,
    Transaction,
    applied,
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
        self._declared: int | None = None

    def under_locks(self) -> None:
        """Give the step up: it rests on figures that others may change meanwhile.

        Raises:
            Collision: Always.
        """
        raise Collision("this step needs its figures locked.")

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
        return Link(row["seq"], row["hash"])

    def _ask(self, *calls: Call, declared: bool = False) -> list[list[Row]]:
        """Read; what was declared last is read first, so that nothing newer goes unnoticed."""
        if not declared:
            return self._session.ask(*calls)
        (last,), *answers = self._session.ask(locks.LAST_DECLARATION(), *calls)
        self._declared = last["seq"]
        return answers


_APPENDED = func.dp_append(
    bindparam("kind", type_=Text),
    bindparam("charge_id", type_=Text),
    bindparam("draft", type_=Text),
    bindparam("placeholder", type_=Text),
    bindparam("format", type_=Text),
    bindparam("declared", type_=BigInteger),
).table_valued(column("seq"), column("hash"))
_APPEND = Prepared(select(_APPENDED.c.seq, _APPENDED.c.hash))


@contextmanager
def step(engine: Engine, clock: Clock = utc_now, *, locking: bool) -> Iterator[Transaction]:
    """Run one step of a charge's life.

    Args:
        engine: From `connect`.
        clock: Source of the time written into entries.
        locking: Take the head before reading; SQLite always does, it has one writer at a time.

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
        try:
            yield Optimistic(opened, clock())
        except psycopg.IntegrityError:  # under the lock the step can tell why
            raise Collision("a guard of the ledger's database refused: ask again.") from None
