"""Connections and transactions: one short transaction per operation, every fault one sentence."""

from __future__ import annotations

import os
import select
import sqlite3
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event, exc
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import QueuePool

from include.budget.errors import InvalidRequest, LedgerError, LedgerRefused, LedgerUnavailable

BUSY_SECONDS = 60
"""How long a writer waits for another on SQLite; the default of 5 s kills busy installations."""

_MAKE_IT = (
    "run `make demo` or `make up` first, or `airflow db migrate` with the ledger's db_manager "
    "configured"
)
_PACKETS: weakref.WeakKeyDictionary[Engine, Engine] = weakref.WeakKeyDictionary()
_SETTINGS = (
    "SELECT set_config('default_transaction_isolation', 'read committed', false), "
    "set_config('client_encoding', 'UTF8', false), "
    f"set_config('lock_timeout', '{BUSY_SECONDS}s', false), "
    f"set_config('idle_in_transaction_session_timeout', '{BUSY_SECONDS}s', false)"
)
_UNIQUE_VIOLATION = "23505"
_LOCK_TIMEOUT = "55P03"
_UNDEFINED_TABLE = "42P01"
_NO_PRIVILEGE = "42501"
_TRY_AGAIN = {"40001", "40P01", "26000"}  # the victim, or who lost its statements, may repeat


class Collision(LedgerError):
    """Another writer got there first; the caller reads again and answers from what it finds.

    Privacy: ledger only.
    """


class Taken(Collision):
    """A unique id, key or name is taken; under the lock nobody took it in between.

    Privacy: ledger only.
    """


def connect(url: str | URL, *, create: bool = False) -> Engine:
    """Make an engine for the ledger's database; nothing is opened yet.

    Args:
        url: SQLAlchemy URL of a SQLite file or a PostgreSQL database (any driver; psycopg is used).
        create: Let SQLite create a missing file (migrations only).

    Returns:
        An engine on which every transaction is short and every writer waits its turn.

    Raises:
        LedgerUnavailable: The URL is none, or names another kind of database.

    Privacy: ledger only.
    """
    try:
        parsed = make_url(url)
    except exc.ArgumentError:
        raise LedgerUnavailable(
            "the ledger's URL is not one: write it as in sqlite:////path/to/ledger.db or "
            "postgresql+psycopg://user:password@host/database."
        ) from None
    kind = parsed.get_backend_name()
    if kind == "sqlite":
        return _forkable(_sqlite(parsed.set(drivername="sqlite"), create))
    if kind == "postgresql":
        return _postgresql(parsed.set(drivername="postgresql+psycopg"))
    raise LedgerUnavailable(
        f"the ledger cannot live in {kind}: use PostgreSQL, or SQLite on one machine."
    )


def _postgresql(url: URL) -> Engine:
    engine = _forkable(create_engine(url, pool_size=2))
    # A step brings its own BEGIN and COMMIT: a pool that adds others would double its trips.
    packets = create_engine(
        url, pool_size=2, isolation_level="AUTOCOMMIT", pool_reset_on_return=None
    )
    _PACKETS[engine] = _forkable(packets)

    @event.listens_for(packets, "connect")
    def _settle(connection: Any, _record: Any) -> None:
        connection.autocommit = True
        connection.execute(_SETTINGS)

    @event.listens_for(packets, "checkout")
    def _alive(connection: Any, record: Any, _proxy: Any) -> None:
        # After a restart of the server the answer of a round that was measured would be lost.
        if record.info and _ended(connection):
            raise exc.DisconnectionError

    maker = os.getpid()

    @event.listens_for(engine, "engine_disposed")
    def _both(_engine: Engine) -> None:
        packets.dispose(close=os.getpid() == maker)

    return engine


def _ended(connection: Any) -> bool:
    """Tell whether the server has said something to a connection that asked nothing: its end."""
    if connection.closed:
        return True
    ready = select.poll()
    ready.register(connection.fileno(), select.POLLIN)
    return bool(ready.poll(0))


def packets_of(engine: Engine) -> Engine:
    """Return the engine beside a PostgreSQL engine that begins and commits nothing by itself.

    Privacy: ledger only.
    """
    return _PACKETS[engine]


def _forkable(engine: Engine) -> Engine:
    """Let a forked process open connections of its own: neither database shares one."""
    seen = weakref.ref(engine)

    def forget() -> None:
        inherited = seen()
        if inherited is not None:
            inherited.dispose(close=False)

    os.register_at_fork(after_in_child=forget)
    return engine


def _inherits(engine: Engine) -> Callable[[], bool]:
    """Close the connections of SQLite before a fork; tell a child whether one was in use.

    SQLite notes the locks of a process in its memory. A child would copy the note but not the
    locks: whoever closes the file next takes itself for the last one and removes the log that the
    child writes to.
    """
    seen, in_use, inherited = weakref.ref(engine), False, False
    lent: set[Any] = set()  # the pool's own count starts anew when it is disposed of

    @event.listens_for(engine, "checkout")
    def _lend(_connection: Any, record: Any, _proxy: Any) -> None:
        lent.add(record)

    @event.listens_for(engine, "checkin")
    def _take_back(_connection: Any, record: Any) -> None:
        lent.discard(record)

    def before() -> None:
        nonlocal in_use
        ours = seen()
        if ours is not None:
            in_use = bool(lent)
            ours.pool.dispose()  # and not the engine's: what is in use comes back to this one

    def in_child() -> None:
        nonlocal inherited
        inherited = inherited or in_use

    os.register_at_fork(before=before, after_in_child=in_child)
    return lambda: inherited


def _sqlite(url: URL, create: bool) -> Engine:
    waits = {"timeout": BUSY_SECONDS, "check_same_thread": False}
    engine = create_engine(url, poolclass=QueuePool, pool_size=2, connect_args=waits)
    inherits = _inherits(engine)

    @event.listens_for(engine, "do_connect")
    def _find(_dialect: Any, _record: Any, _args: Any, _params: Any) -> None:
        if inherits():
            raise LedgerUnavailable(
                "this process was forked while another thread used the ledger database: start it "
                "anew, nothing was charged."
            )
        # sqlite3 would quietly make an empty file of a mistyped path.
        if not create and url.database and not Path(url.database).exists():
            raise LedgerUnavailable(
                f"the ledger database {url.database} does not exist: {_MAKE_IT}, or correct the "
                "ledger's URL."
            )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the begin below is ours, not the driver's
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA synchronous = FULL")  # acknowledged means on disk

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("ledger_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Run one short write transaction; it commits at the end of the block or leaves no trace.

    Args:
        engine: From `connect`.

    Yields:
        The connection, inside the transaction.

    Raises:
        LedgerUnavailable: The database is missing, locked, unreachable or not migrated.
        LedgerRefused: A guard of the database stopped the write.
        Collision: A unique key was taken by a writer in between, or two writers blocked each other.

    Privacy: ledger only.
    """
    writer = engine.execution_options(ledger_write=True)
    with told(), writer.begin() as connection:
        yield connection


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Run one read transaction on one consistent state of the ledger.

    Args:
        engine: From `connect`.

    Yields:
        The connection, inside the transaction.

    Raises:
        LedgerUnavailable: The database is missing, locked, unreachable or not migrated.

    Privacy: ledger only.
    """
    with told(), engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection = connection.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
        with connection.begin():
            yield connection


def statements(path: Path) -> list[str]:
    """Split a file of SQL at lines that hold `;;` alone. Privacy: ledger only."""
    parts = path.read_text(encoding="utf-8").split("\n;;\n")
    return [part for part in parts if part.strip()]


def run_script(engine: Engine, path: Path) -> None:
    """Run a file of SQL in one transaction.

    Args:
        engine: From `connect`.
        path: The file; statements end with a line of `;;`.

    Raises:
        LedgerRefused: The login lacks a right.
        LedgerUnavailable: The database cannot be used.

    Privacy: ledger only.
    """
    with writing(engine) as connection:
        bare = connection.execution_options(no_parameters=True)  # a % is not a parameter
        for statement in statements(path):
            bare.exec_driver_sql(statement)


@contextmanager
def told() -> Iterator[None]:
    """Turn the driver's errors into the ledger's: one sentence, no SQL, no values.

    Raises:
        LedgerUnavailable, LedgerRefused, Collision: As the fault is.

    Privacy: ledger only.
    """
    try:
        yield
    except exc.DBAPIError as fault:
        raise _sentence(fault.orig or fault) from None
    except (sqlite3.Error, psycopg.Error) as fault:
        raise _sentence(fault) from None
    except UnicodeEncodeError:
        raise InvalidRequest("a text holds half a character: write it whole.") from None
    except exc.TimeoutError:
        raise LedgerUnavailable(
            "the ledger database gave no connection in time: try again, or raise its limit."
        ) from None


def _sentence(fault: BaseException) -> LedgerError:
    state = getattr(fault, "sqlstate", None)
    text = str(fault)
    if state == _UNIQUE_VIOLATION or "UNIQUE constraint failed" in text:
        return Taken("an id, key or name of this step is in the ledger already: choose another.")
    if state in _TRY_AGAIN:
        return Collision("another writer got there first: ask again.")
    if state == _UNDEFINED_TABLE or "no such table" in text:
        return LedgerUnavailable(f"the database has no ledger tables: {_MAKE_IT}.")
    if state == _NO_PRIVILEGE:
        return LedgerRefused(
            "this database role may not do that: connect as the ledger's writer for charges, as "
            "its admin for registrations."
        )
    if state == _LOCK_TIMEOUT or "locked" in text or "busy" in text:
        return LedgerUnavailable(
            f"the ledger database stayed locked for {BUSY_SECONDS} s: find the program that holds "
            "it, then try again; nothing was charged."
        )
    if isinstance(fault, sqlite3.IntegrityError | psycopg.IntegrityError):
        return LedgerRefused(f"a guard of the ledger's database refused the write: {_guard(text)}.")
    return LedgerUnavailable(
        f"the ledger database cannot be used ({type(fault).__name__}): check that it runs, "
        "its URL and its disk, and that `airflow db migrate` has been run, then retry the same "
        "task: a step whose answer was lost stands, and is charged once."
    )


def _guard(text: str) -> str:
    """Keep the first line of the database's refusal; guards name rules, never values."""
    return text.splitlines()[0].strip().rstrip(".") if text else "no reason given"
