"""Scratch places for every test: no test can reach a real ledger, key or snapshot.

The variables are set when pytest starts, before anything imports Airflow, which reads them once.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

import pytest

from tools import embedded

SCRATCH = Path(tempfile.mkdtemp(prefix="cusyn-tests-"))
atexit.register(shutil.rmtree, SCRATCH, ignore_errors=True)
embedded.enter(SCRATCH)


@pytest.fixture(scope="session")
def scratch_var() -> Path:
    """The folder that stands for `var/` in this test session."""
    return SCRATCH


@pytest.fixture(scope="session")
def airflow_db(scratch_var: Path) -> Path:
    """A migrated scratch metadata database with the ledger's tables; returns its file."""
    embedded.migrate()
    return scratch_var / "airflow" / "airflow.db"
