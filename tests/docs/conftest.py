"""The demo's world without Airflow: its declarations, its survey, one release by the stages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

Shell = Callable[[str], "subprocess.CompletedProcess[str]"]
PYTHON = f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'
LINKED = ("plugins", "tools", "dags", "docs", "Makefile")


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that looks like the project's after the demo has released one wave."""
    root = tmp_path_factory.mktemp("docs") / "cusyn"
    (root / ".venv" / "bin").mkdir(parents=True)
    for name in ("python", "python3"):
        (root / ".venv" / "bin" / name).write_text(PYTHON)
        (root / ".venv" / "bin" / name).chmod(0o755)
    for name in LINKED:
        (root / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "include", root / "include", ignore=shutil.ignore_patterns("*.pyc"))
    with environment(root):
        _release(root)
    return root


@pytest.fixture(scope="session")
def shell(installation: Path) -> Shell:
    """Run a script of a document there, as a reader would; it stops at the first fault."""

    def run(script: str) -> subprocess.CompletedProcess[str]:
        places = {"PATH": f"{installation}/.venv/bin:{os.environ['PATH']}"}
        with environment(installation):
            return subprocess.run(
                ["bash", "-euo", "pipefail", "-c", script],
                cwd=installation,
                env={**os.environ, **places, "PYTHONPATH": str(installation)},
                capture_output=True,
                text=True,
                check=False,
            )

    return run


@contextmanager
def environment(root: Path) -> Iterator[None]:
    """Point every setting at the installation, for a while."""
    from tools import embedded

    wanted = embedded.environment(root / "var") | {"CUSYN_PROJECT_ROOT": str(root)}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _release(root: Path) -> None:
    """Release one wave by hand of the stages, in the order of the pipeline."""
    from include.budget.migrations import migrate
    from include.budget.store import connect
    from include.cli.commands import register_all
    from include.config.loader import load_checked
    from include.settings import load_settings
    from include.stages.budget_eval import budget_eval
    from include.stages.ledger import open_ledger
    from include.stages.load import load
    from include.stages.publish import publish
    from include.stages.quality_check import quality_check
    from include.stages.run import ReleaseRun, Workplace
    from include.stages.synthesize import synthesize
    from include.stages.validate import validate
    from tools.demo import fetch_survey

    fetch_survey(root)
    settings = load_settings()
    (root / "var" / "airflow").mkdir(parents=True)
    migrate(connect(settings.ledger_url, create=True))
    ledger = open_ledger(settings, settings.ledger_url)
    register_all(ledger, settings, actor="docs")
    config = settings.config_dir
    checked = load_checked(config / "releases" / "happiness_by_wave.yaml", config)
    assert checked.release.partition is not None
    partition = checked.release.partition.model_copy(update={"value": "1994"})
    run = ReleaseRun(
        release=checked.release.model_copy(update={"partition": partition}),
        dataset=checked.dataset,
        budgets=checked.budgets,
        period="1994-12-31",
        actor="local",
        scheduled=False,
        dag_id="release__happiness_by_wave",
        run_id="docs",
        lineage=dict.fromkeys(
            (
                "airflow_version",
                "product_version",
                "code_revision",
                "config_digest",
                "lock_digest",
            ),
            "",
        ),
    )
    place = Workplace(settings, ledger)
    snapshot = load(run, place)
    validate(run, place, snapshot)
    assert budget_eval(run, place, snapshot).state == "reserved"
    synthesize(run, place)
    quality_check(run, place)
    publish(run, place)
