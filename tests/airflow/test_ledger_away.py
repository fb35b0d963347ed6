"""The ledger's database is gone for a while at each stage: the task fails closed, then goes on."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.rig import STAGES, Rig, Run, forget_runs
from tests.airflow.server import PASSWORD, Server, ServerRig
from tests.airflow.test_bad_input import FAILURE
from tests.compose.machines import postgres

pytestmark = pytest.mark.slow


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
