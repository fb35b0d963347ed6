"""A ledger in a PostgreSQL server of its own, which stops and starts; tasks are its writer."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import URL, Engine

from tests.airflow.rig import Rig
from tests.compose.machines import control, data_folder

PASSWORD = "away"


class Server:
    """A PostgreSQL server with a ledger in it and a login for tasks.

    Args:
        port: where it listens on 127.0.0.1; its superuser's password is PASSWORD.
    """

    def __init__(self, port: int) -> None:
        self.port, self.data = port, data_folder(port, PASSWORD)
        self.url = self._url("postgres").render_as_string(hide_password=False)
        self._make_ledger()

    def _url(self, user: str) -> URL:
        where = {"host": "127.0.0.1", "port": self.port, "database": "airflow"}
        return URL.create("postgresql+psycopg", username=user, password=PASSWORD, **where)

    def _make_ledger(self) -> None:
        from include.budget.migrations import migrate
        from include.budget.roles import create_roles
        from include.budget.store import connect

        engine = connect(self.url)
        migrate(engine)
        create_roles(engine, own=True)
        create_roles(engine)
        engine.dispose()
        told = f"host=127.0.0.1 port={self.port} user=postgres password={PASSWORD} dbname=airflow"
        with psycopg.connect(told, autocommit=True) as connection:
            connection.execute(f"CREATE ROLE task LOGIN PASSWORD '{PASSWORD}'")
            connection.execute("GRANT dp_ledger_writer TO task")

    def connection(self) -> str:
        """The tasks' connection, as the writer."""
        told = {"conn_type": "postgres", "host": "127.0.0.1", "port": self.port}
        return json.dumps(told | {"login": "task", "password": PASSWORD, "schema": "airflow"})

    @cached_property
    def engine(self) -> Engine:
        """The ledger's database, as its superuser."""
        from include.budget.store import connect

        return connect(self.url)

    def leave(self) -> None:
        """Stop the server."""
        self.engine.dispose()
        control(self.data, "-m", "fast", "stop")

    def come_back(self) -> None:
        """Start it again, with its earlier options."""
        control(self.data, "-l", str(self.data.parent / "log"), "restart")


class ServerRig(Rig):
    """An installation whose ledger lies in PostgreSQL.

    Args:
        root: the folder of the installation.
        patch: sets this process's variables to its places.
        server: holds the ledger.
    """

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, server: Server) -> None:
        self.server = server
        super().__init__(root, patch, root / "none.db")

    def environment(self) -> dict[str, str]:
        """Return the variables, the ledger's superuser among them: for the steward's commands."""
        ledger = {
            "CUSYN_LEDGER_URL": self.server.url,
            "AIRFLOW_CONN_PRIVACY_LEDGER": self.server.connection(),
        }
        return super().environment() | ledger

    def airflow_environment(self) -> dict[str, str]:
        """Return the variables without any login but the tasks'."""
        return self.environment() | {"CUSYN_LEDGER_URL": f"sqlite:///{self.ledger_file}"}

    def reader(self) -> Any:
        """Open the ledger's reader."""
        from include.budget.reader import LedgerReader

        return LedgerReader(self.server.engine)

    def ledger(self) -> Any:
        """Open the ledger's writer."""
        from include.budget.ledger import Ledger

        return Ledger(self.server.engine)

    def verify(self) -> Any:
        """Replay the journal against the balances; returns the report, found clean."""
        from include.budget.verify import verify

        report = verify(self.server.engine)
        assert report.ok, report.problems
        return report
