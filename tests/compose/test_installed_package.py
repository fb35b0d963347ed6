"""`pip install .` into an existing Airflow: everything importable is one installable tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.compose.composefile import ROOT

pytestmark = pytest.mark.slow

# Runs with the installed tree alone on its path: no PYTHONPATH into the repository.
USE = """
import sys
from include.budget.migrations import migrate
from include.budget.store.engine import connect
from cusyn_airflow.db_manager import LedgerDBManager
import include.publishing, include.quality
migrate(connect("sqlite:///" + sys.argv[1], create=True))
print(LedgerDBManager.alembic_file)
"""


def tracked(*folders: str) -> set[str]:
    listing = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(listing.stdout.split())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the files of the repository, as `pip install .` builds it."""
    source = tmp_path_factory.mktemp("source")
    for name in tracked("pyproject.toml", "requirements.in", "README.md", "include", "plugins"):
        if (ROOT / name).exists():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    (source / "README.md").touch()
    command = [sys.executable, "-m", "uv", "build", "--quiet", "--wheel", "--out-dir"]
    subprocess.run([*command, str(source / "dist"), str(source)], check=True)
    return next((source / "dist").glob("*.whl"))


def test_no_file_of_the_product_is_left_out(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    wanted = tracked("include") | {
        name.removeprefix("plugins/") for name in tracked("plugins/cusyn_airflow")
    }
    assert len(wanted) > 60
    assert wanted - packed == set()


def test_the_installed_tree_works_alone(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    done = subprocess.run(
        [sys.executable, "-c", USE, str(tmp_path / "ledger.db")],
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(site),
            "AIRFLOW_HOME": str(tmp_path / "airflow"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1].startswith(str(site))
