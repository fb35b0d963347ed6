from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.airflow.rig import Rig, forget_runs, new_ledger
from tests.airflow.worker import end_workers


@pytest.fixture(scope="session")
def empty_ledger(airflow_db: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_ledger(tmp_path_factory.mktemp("ledger") / "ledger.db")


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_ledger: Path) -> Iterator[Rig]:
    """A declared and registered installation with a ledger of its own."""
    forget_runs()
    ledger = tmp_path / "ledger.db"
    shutil.copy(empty_ledger, ledger)
    made = Rig(tmp_path, monkeypatch, ledger)
    made.register()
    yield made
    end_workers()
    made.verify()
