"""Statements compiled once and run on the driver itself.

A charge takes a handful of statements while others wait for the head of the journal. Building them
anew each time, and asking the server one by one, would make everybody wait ten times longer.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from sqlalchemy import (
    ColumnElement,
    Engine,
    FromClause,
    Table,
    Text,
    and_,
    bindparam,
    exists,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.engine import Dialect
from sqlalchemy.pool import PoolProxiedConnection
from sqlalchemy.sql import ClauseElement

from include.budget.store.engine import Collision, packets_of
from include.budget.store.tables import HEAD
from include.budget.store.wire import Statement, Wire

Row = dict[str, Any]
_LAST = select(HEAD.c.seq).scalar_subquery()
_BY_POSITION: Mapping[str, Dialect] = {
    "sqlite": sqlite.dialect(),
    "postgresql": PGDialect(paramstyle="numeric_dollar"),  # type: ignore[no-untyped-call]
}


class Call(NamedTuple):
    """A statement with its parameters. Privacy: ledger only."""

    statement: Prepared
    given: Mapping[str, Any]


class Prepared:
    """A statement with named parameters, compiled once for each database.

    Args:
        statement: A SQLAlchemy Core statement; columns are text and whole numbers only, so that
            the driver's values are taken as they come.

    Privacy: ledger only.
    """

    def __init__(self, statement: ClauseElement, **other: ClauseElement) -> None:
        self._statement = statement
        self._other = other  # another text for some database, by its name
        self._compiled: dict[str, tuple[str, Sequence[str], Mapping[str, Any]]] = {}
        selected = getattr(statement, "selected_columns", ())
        self.names = tuple(column.name for column in selected)  # the driver's own are slow to ask

    def __call__(self, **given: Any) -> Call:
        """Give the statement its parameters."""
        return Call(self, given)

    def for_driver(self, dialect: Dialect, given: Mapping[str, Any]) -> tuple[str, Sequence[Any]]:
        """Return text and parameters by position, the way both databases take them."""
        if dialect.name not in self._compiled:
            statement = self._other.get(dialect.name, self._statement)
            made: Any = statement.compile(dialect=_BY_POSITION[dialect.name])
            known = {name: value for name, value in made.params.items() if value is not None}
            self._compiled[dialect.name] = (str(made), made.positiontup, known)
        text, names, fixed = self._compiled[dialect.name]
        values = {**fixed, **given} if fixed else given
        return text, [values[name] for name in names]


@lru_cache(maxsize=256)
def inserting(table: Table, columns: tuple[str, ...], numbered: tuple[str, ...] = ()) -> Prepared:
    """Prepare the insertion of one row; `numbered` columns get the number of the last entry.

    Privacy: ledger only.
    """
    values: dict[str, Any] = {name: bindparam(name) for name in columns}
    return Prepared(insert(table).values(values | dict.fromkeys(numbered, _LAST)))


@lru_cache(maxsize=256)
def changing(
    table: Table,
    columns: tuple[str, ...],
    was: tuple[str, ...],
    numbered: tuple[str, ...] = (),
) -> Prepared:
    """Prepare a compare-and-set of one row: `at` its key, `was_*` what it must hold, `new_*`.

    SQLite counts the rows that matched. On PostgreSQL nobody waits for that count: there the
    statement raises when no such row stands, and the commit behind it is never reached. It asks
    before it looks for the row: a condition on the key itself is never asked of an empty table.

    Privacy: ledger only.
    """
    key = next(iter(table.primary_key.columns))
    values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in columns}
    values |= dict.fromkeys(numbered, _LAST)
    counted = update(table).where(_holds(table, was)).values(values)
    stands = exists().where(_holds(table.alias("before"), was))
    at = bindparam("at", type_=Text)
    asked = select(func.dp_expected(stands, at, type_=Text)).scalar_subquery()
    raising = update(table).where(key == at, asked == at).values(values)
    return Prepared(counted, postgresql=raising)


def _holds(table: FromClause, was: tuple[str, ...]) -> ColumnElement[bool]:
    key = next(iter(table.primary_key))
    same = (table.c[name].is_not_distinct_from(bindparam(f"was_{name}")) for name in was)
    return and_(key == bindparam("at"), *same)


class Session(Protocol):
    """One connection inside one write transaction.

    Privacy: ledger only.
    """

    def ask(self, *calls: Call) -> list[list[Row]]:
        """Run queries in this order, in one round trip where the driver can; return their rows."""

    def tell(self, *calls: Call) -> None:
        """Run changes in this order, each of one row; they travel with whatever comes next."""

    def commit(self) -> None:
        """Commit, and come back when it is on disk."""

    def roll_back(self) -> None:
        """Leave no trace."""


class OnSqlite:
    """A session on SQLite, which has one writer at a time.

    Args:
        driver: The driver's connection, in autocommit mode.
        dialect: Its dialect.

    Privacy: ledger only.
    """

    def __init__(self, driver: sqlite3.Connection, dialect: Dialect) -> None:
        self._driver = driver
        self._dialect = dialect
        self._begun = False

    def ask(self, *calls: Call) -> list[list[Row]]:
        """Run queries in this order."""
        return [_named(call, self._execute(call).fetchall()) for call in calls]

    def tell(self, *calls: Call) -> None:
        """Run changes at once.

        Raises:
            Collision: A row no longer held what it must.
        """
        for call in calls:
            if self._execute(call).rowcount != 1:
                raise Collision("a row changed in between: ask again.")

    def commit(self) -> None:
        """Commit; SQLite comes back when it is on disk."""
        if self._begun:
            self._driver.execute("COMMIT")

    def roll_back(self) -> None:
        """Leave no trace."""
        if self._begun:
            self._driver.execute("ROLLBACK")

    def _execute(self, call: Call) -> sqlite3.Cursor:
        if not self._begun:
            self._driver.execute("BEGIN IMMEDIATE")
            self._begun = True
        text, values = call.statement.for_driver(self._dialect, call.given)
        return self._driver.execute(text, values)


class OnPostgres:
    """A session on PostgreSQL: one trip to lock and read, one to write and commit.

    Args:
        wire: The connection.
        dialect: Its dialect.
        locking: Begin before the first read, so that what was read and locked stays so. Without
            it reads stand for themselves, and `settle` writes all at once.

    Privacy: ledger only.
    """

    def __init__(self, wire: Wire, dialect: Dialect, *, locking: bool) -> None:
        self._wire = wire
        self._dialect = dialect
        self._locking = locking
        self._begun = False
        self._pending: list[Call] = []

    def ask(self, *calls: Call) -> list[list[Row]]:
        """Run queries in this order, in one round trip; return their rows."""
        before = self._opening() if self._locking else []
        answers = self._wire.send([*before, *map(self._statement, calls)])[len(before) :]
        return [_named(call, rows) for call, rows in zip(calls, answers, strict=True)]

    def tell(self, *calls: Call) -> None:
        """Run changes in this order, each of one row; they travel with whatever comes next."""
        self._pending += calls

    def settle(self, answered: Call, after: Iterable[Call]) -> Row:
        """Run one transaction from its first statement to its last in one trip.

        Nobody waits for this client while it holds a lock: the server has the whole transaction
        before it begins.

        Args:
            answered: The first statement, whose one row is returned.
            after: Changes.

        Returns:
            That row, when all of it is on disk.
        """
        calls = map(self._statement, (answered, *after))
        return _named(answered, self._wire.send(calls, [_FLUSH])[0])[0]

    def commit(self) -> None:
        """Commit, and come back when it is on disk.

        The commit itself does not wait for the disk: it releases the locks first, and the message
        after it, committed in the ordinary way, does the waiting. Nobody is answered before that,
        whoever builds on it is on disk later still, and many writers share one flush.
        """
        if self._locking:
            self._wire.send([*self._opening(), ("COMMIT", ())], [_FLUSH])

    def roll_back(self) -> None:
        """Leave no trace; raises on a broken connection, which must not go back to the pool."""
        if self._begun or self._wire.connection.closed:
            self._wire.send([("ROLLBACK", ())])

    def _opening(self) -> list[Statement]:
        begin = () if self._begun else _BEGIN
        pending, self._pending = self._pending, []
        self._begun = True
        return [*begin, *map(self._statement, pending)]

    def _statement(self, call: Call) -> Statement:
        return call.statement.for_driver(self._dialect, call.given)


_BEGIN: tuple[Statement, ...] = (("BEGIN", ()), ("SET LOCAL synchronous_commit = off", ()))
_FLUSH: Statement = (
    "SELECT set_config('synchronous_commit', 'on', true), "
    "pg_logical_emit_message(true, 'dp_ledger', '')",
    (),
)


def _named(call: Call, rows: Iterable[Sequence[Any]]) -> list[Row]:
    return [dict(zip(call.statement.names, row, strict=True)) for row in rows]


@contextmanager
def session(engine: Engine) -> Iterator[Session]:
    """Open one write transaction on the driver; it commits at the end of the block.

    Args:
        engine: From `connect`.

    Yields:
        The session.

    Privacy: ledger only.
    """
    if engine.dialect.name == "postgresql":
        with on_postgres(engine, locking=True) as opened:
            yield opened
        return
    pooled = engine.raw_connection()
    with _ending(pooled, OnSqlite(cast(Any, pooled.driver_connection), engine.dialect)) as one:
        yield one


@contextmanager
def on_postgres(engine: Engine, *, locking: bool) -> Iterator[OnPostgres]:
    """Open a session on PostgreSQL; what it holds is committed at the end of the block.

    Args:
        engine: From `connect`.
        locking: As for `OnPostgres`.

    Yields:
        The session.

    Privacy: ledger only.
    """
    pooled = packets_of(engine).raw_connection()
    wire = Wire(cast(Any, pooled.driver_connection), pooled.info.setdefault("statements", {}))
    with _ending(pooled, OnPostgres(wire, engine.dialect, locking=locking)) as opened:
        yield opened


_AnySession = TypeVar("_AnySession", bound=Session)


@contextmanager
def _ending(pooled: PoolProxiedConnection, opened: _AnySession) -> Iterator[_AnySession]:
    """Commit, or leave no trace; a connection that cannot do that is given to nobody else."""
    try:
        yield opened
        opened.commit()
    except BaseException:
        try:
            opened.roll_back()
        except Exception:
            pooled.invalidate()
        raise
    finally:
        pooled.close()
