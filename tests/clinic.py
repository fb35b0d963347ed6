"""A made-up dataset, its declarations and a scratch ledger: the stages without Airflow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from include.budget.migrations import migrate
from include.budget.store import connect
from include.config.loader import load_checked
from include.settings import Settings, load_settings
from include.stages.ledger import open_ledger
from include.stages.register import register
from include.stages.run import ReleaseRun, Workplace

DATASET = """
dataset: clinic
populations: [patients]
privacy_unit: {what: person, max_rows: 1}
source: {path: SOURCE}
expected_rows: 400
partition_columns: [year]
columns:
  ward: {type: category, values: [north, south, east]}
  stay: {type: integer, min: 0, max: 9, bins: [0, 3, 6], outside: clamp, nullable: true}
  smoker: {type: boolean}
"""
BUDGETS = """
populations:
  patients: {epsilon: "3", delta: "1e-9", per_operation_limit: "2"}
users:
  team: {datasets: {clinic: {epsilon: "2", per_request: "1"}}}
airflow_users: {anna: [team]}
"""
RELEASE = """
release: wards
dataset: clinic
requester: team
schedule: {dates: [2001-12-31, 2002-12-31, 2003-12-31]}
partition: {column: year, value: "2001"}
mechanism: mwem_pgm
epsilon: "1"
accept_at_least: "0.5"
interest: [[ward, smoker]]
options: {rounds: 1}
rows: 200
publish: {uri: releases}
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Places of this test alone, with the clinic's declarations and its source."""
    config = tmp_path / "config"
    for name in ("datasets", "releases"):
        (config / name).mkdir(parents=True)
    source = tmp_path / "clinic.parquet"
    write_source(source)
    (config / "datasets" / "clinic.yaml").write_text(DATASET.replace("SOURCE", str(source)))
    (config / "budgets.yaml").write_text(BUDGETS)
    (config / "releases" / "wards.yaml").write_text(RELEASE)
    return replace(
        load_settings(),
        project_root=tmp_path,
        config_dir=config,
        var_dir=tmp_path / "var",
        protected_dir=tmp_path / "protected",
        work_dir=tmp_path / "work",
        keys_dir=tmp_path / "keys",
        checkpoints_dir=tmp_path / "checkpoints",
        releases_uri=str(tmp_path / "releases"),
        ledger_url=f"sqlite:///{tmp_path / 'ledger.db'}",
    )


def write_source(path: Path, *, ward: str = "north") -> None:
    """Write four hundred made-up patients of two years."""
    pd.DataFrame(
        {
            "ward": [ward, "south", "east", "south"] * 100,
            "stay": [1.0, 4.0, None, 9.0] * 100,
            "smoker": [True, False, False, True] * 100,
            "year": [2001, 2002] * 200,
        }
    ).to_parquet(path)


@pytest.fixture
def place(settings: Settings) -> Workplace:
    """A workplace with a migrated scratch ledger in which the clinic is registered."""
    engine = connect(settings.ledger_url, create=True)
    migrate(engine)
    ledger = open_ledger(settings, settings.ledger_url)
    checked = load_checked(settings.config_dir / "releases" / "wards.yaml", settings.config_dir)
    register(ledger, checked.budgets, [checked.dataset], actor="test")
    return Workplace(settings, ledger)


@pytest.fixture
def make_run(settings: Settings) -> Callable[..., ReleaseRun]:
    """Make a run of the release as the files stand now."""

    def make(**changes: object) -> ReleaseRun:
        path = settings.config_dir / "releases" / "wards.yaml"
        checked = load_checked(path, settings.config_dir)
        run = ReleaseRun(
            release=checked.release,
            dataset=checked.dataset,
            budgets=checked.budgets,
            period="2001-12-31",
            actor="anna",
            scheduled=False,
            dag_id="release__wards",
            run_id="run-1",
        )
        return replace(run, **changes)

    return make
