"""Statements compiled once and run on the driver itself.

A charge takes a handful of statements while others wait for the head of the journal. Building them
anew each time, and asking the server one by one, would make everybody wait ten times longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Engine, Table, Text, and_, bindparam, func, insert, update
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import ClauseElement

from include.budget.store.engine import Collision

Row = dict[str, Any]


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
        self._compiled: dict[str, tuple[str, Sequence[str] | None, Mapping[str, Any]]] = {}

    def __call__(self, **given: Any) -> Call:
        """Give the statement its parameters."""
        return Call(self, given)

    def for_driver(self, dialect: Dialect, given: Mapping[str, Any]) -> tuple[str, Any]:
        """Return text and parameters the way the driver takes them."""
        if dialect.name not in self._compiled:
            statement = self._other.get(dialect.name, self._statement)
            made: Any = statement.compile(dialect=dialect)
            names = made.positiontup if made.positional else None
            self._compiled[dialect.name] = (str(made), names, dict(made.params))
        text, names, fixed = self._compiled[dialect.name]
        values = {**fixed, **given}
        return text, values if names is None else tuple(values[name] for name in names)


@lru_cache(maxsize=256)
def inserting(table: Table, columns: tuple[str, ...]) -> Prepared:
    """Prepare the insertion of one row. Privacy: ledger only."""
    return Prepared(insert(table).values({name: bindparam(name) for name in columns}))


@lru_cache(maxsize=256)
def changing(table: Table, columns: tuple[str, ...], was: tuple[str, ...]) -> Prepared:
    """Prepare a compare-and-set of one row: `at` its key, `was_*` what it must hold, `new_*`.

    SQLite counts the rows that matched. On PostgreSQL nobody waits for that count: there the row
    itself raises when it does not hold what it must, and the commit behind it is never reached.

    Privacy: ledger only.
    """
    key = next(iter(table.primary_key.columns))
    holds = [table.c[name].is_not_distinct_from(bindparam(f"was_{name}")) for name in was]
    values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in columns}
    counted = update(table).where(key == bindparam("at"), *holds).values(values)
    first = was[0]
    kept = values.get(first, table.c[first])
    values = values | {first: func.dp_expected(and_(*holds), kept, type_=Text)}
    raising = update(table).where(key == bindparam("at")).values(values)
    return Prepared(counted, postgresql=raising)


class Session:
    """One driver connection inside one write transaction.

    On PostgreSQL the statements of a step travel together (pipeline mode): one trip to lock and
    read, one to write and commit. Nobody waits for a lock longer than that takes.

    Args:
        driver: The driver's connection (psycopg or sqlite3), in autocommit mode.
        dialect: Its dialect.

    Privacy: ledger only.
    """

    def __init__(self, driver: Any, dialect: Dialect) -> None:
        self._driver = driver
        self._dialect = dialect
        self._begun = False
        self._pending: list[Call] = []

    def ask(self, *calls: Call) -> list[list[Row]]:
        """Run queries in this order, in one round trip where the driver can; return their rows."""
        with self._together():
            self._send_pending()
            asked = [self._execute(call) for call in calls]
        return [_rows(cursor) for cursor in asked]

    def tell(self, *calls: Call) -> None:
        """Run changes in this order, each of one row; they travel with whatever comes next."""
        self._pending += calls

    def commit(self) -> None:
        """Commit, and come back when it is on disk.

        On PostgreSQL the commit itself does not wait for the disk: it releases the locks first, and
        the message after it, committed in the ordinary way, does the waiting. Nobody is answered
        before that, whoever builds on it is on disk later still, and many writers share one flush.
        """
        with self._together():
            self._send_pending()
            self._driver.execute("COMMIT")
            if self._pipelined:
                self._driver.execute(_FLUSH)

    def roll_back(self) -> None:
        """Leave no trace."""
        if self._begun:
            self._driver.execute("ROLLBACK")

    @property
    def _pipelined(self) -> bool:
        return self._dialect.name == "postgresql"

    def _send_pending(self) -> None:
        if not self._begun:
            for statement in _BEGIN[self._dialect.name]:
                self._driver.execute(statement)
            self._begun = True
        pending, self._pending = self._pending, []
        for call in pending:
            changed = self._execute(call)
            if not self._pipelined and changed.rowcount != 1:
                raise Collision("a row changed in between: ask again.")

    def _execute(self, call: Call) -> Any:
        text, values = call.statement.for_driver(self._dialect, call.given)
        return self._driver.execute(text, values)

    def _together(self) -> AbstractContextManager[object]:
        if not self._pipelined:
            return nullcontext()
        pipeline: AbstractContextManager[object] = self._driver.pipeline()
        return pipeline


_BEGIN = {
    "sqlite": ("BEGIN IMMEDIATE",),
    "postgresql": ("BEGIN", "SET LOCAL synchronous_commit = off"),
}
_FLUSH = (
    "SELECT set_config('synchronous_commit', 'on', true), "
    "pg_logical_emit_message(true, 'dp_ledger', '')"
)


def _rows(cursor: Any) -> list[Row]:
    found = cursor.fetchall()
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in found]


@contextmanager
def session(engine: Engine) -> Iterator[Session]:
    """Open one write transaction on the driver; it commits at the end of the block.

    Args:
        engine: From `connect`.

    Yields:
        The session.

    Privacy: ledger only.
    """
    pooled = engine.raw_connection()
    driver: Any = pooled.driver_connection
    opened = Session(driver, engine.dialect)
    try:
        if engine.dialect.name == "postgresql":
            driver.autocommit = True  # BEGIN and COMMIT are ours, to travel with the rest
        yield opened
        opened.commit()
    except BaseException:
        try:
            opened.roll_back()
        except Exception:
            pooled.invalidate()  # the server is gone; the next caller gets a new connection
        raise
    finally:
        if pooled.is_valid and engine.dialect.name == "postgresql":
            driver.autocommit = False
        pooled.close()
