"""`airflow db clean` forgets Airflow's history and none of the ledger's."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.airflow.rig import Rig, forget_runs

pytestmark = pytest.mark.slow


@pytest.fixture
def together(
    airflow_db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Rig, Path]]:
    """A rig whose ledger lies in a metadata database, as in the embedded default."""
    forget_runs()
    database = tmp_path / "airflow.db"
    with sqlite3.connect(airflow_db) as source, sqlite3.connect(database) as target:
        source.backup(target)
    rig = Rig(tmp_path, monkeypatch, database)
    rig.register()
    yield rig, database
    rig.verify()


def ledger_rows(database: Path) -> dict[str, list[tuple[object, ...]]]:
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'dp\\_%' ESCAPE '\\'"
    with sqlite3.connect(database) as connection:
        names = [name for (name,) in connection.execute(query)]
        return {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}


def test_a_cleaned_database_keeps_the_whole_ledger(together: tuple[Rig, Path]) -> None:
    rig, database = together
    release = rig.release().xcom("publish")
    before = ledger_rows(database)
    assert before["dp_entry"] and before["dp_charge"]
    command = ["db", "clean", "--clean-before-timestamp", "2100-01-01", "--skip-archive", "--yes"]
    done = subprocess.run(
        [sys.executable, "-m", "airflow", *command],
        env=os.environ | {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{database}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert ledger_rows(database) == before
    rig.verify()
    assert rig.release(None, conf={"period": "2020-12-31"}).xcom("publish") == release
    assert len(rig.charges()) == 1
