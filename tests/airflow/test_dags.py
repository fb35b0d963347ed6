"""DAG integrity: what Airflow sees when it parses the project's folder."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.airflow import world
from tests.airflow.rig import STAGES, Rig
from tools import embedded

HEAVY = [
    "pandas",
    "numpy",
    "opendp",
    "mbi",
    "jax",
    "great_expectations",
    "pyarrow",
    "matplotlib",
    "scipy",
    "networkx",
    "numba",
]

PARSE = """
import json, os, sys, time
from airflow.dag_processing.dagbag import DagBag
import airflow.sdk
before = set(sys.modules)
folder = os.environ["AIRFLOW__CORE__DAGS_FOLDER"]
first = DagBag(dag_folder=folder)
loaded = sorted({name.split(".")[0] for name in sys.modules})
started = time.process_time()
bag = DagBag(dag_folder=folder)
took = time.process_time() - started
print("RESULT" + json.dumps({
    "dags": sorted(bag.dags), "errors": bag.import_errors, "took": took, "loaded": loaded}))
"""


@pytest.fixture(scope="module")
def project(airflow_db: Path) -> dict[str, Any]:
    """The DAGs of the project as it is shipped."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(dag_folder=embedded.ROOT / "dags")
    assert not bag.import_errors
    return dict(bag.dags)


def test_the_shipped_dags_are_there(project: dict[str, Any]) -> None:
    mine = {"release__happiness_by_wave", "manual_release", "withdraw_release"}
    assert mine | {"ledger_audit", "snapshot_retention"} <= set(project)
    assert not any("configuration-error" in dag.tags for dag in project.values())


@pytest.mark.parametrize("dag_id", ["release__happiness_by_wave", "manual_release"])
def test_six_stages_follow_each_other(project: dict[str, Any], dag_id: str) -> None:
    dag = project[dag_id]
    assert [task.task_id for task in dag.topological_sort()] == list(STAGES)
    for before, after in itertools.pairwise(STAGES):
        assert dag.get_task(before).downstream_task_ids == {after}
    kinds = [type(dag.get_task(stage)).__name__ for stage in STAGES]
    assert kinds == [
        "LoadOperator",
        "ValidateOperator",
        "BudgetEvalOperator",
        "SynthesizeOperator",
        "QualityCheckOperator",
        "PublishOperator",
    ]
    assert all(task.doc_md or type(task).__doc__ for task in dag.tasks)


@pytest.mark.parametrize("dag_id", ["release__happiness_by_wave", "manual_release"])
def test_every_dag_runs_late_and_again(project: dict[str, Any], dag_id: str) -> None:
    dag = project[dag_id]
    assert dag.catchup is False
    assert dag.doc_md
    for task in dag.tasks:
        assert task.retries == 2 and task.retry_delay == timedelta(seconds=30)
        assert task.depends_on_past is False


def test_the_release_dag_is_scheduled_by_its_dates_one_at_a_time(project: dict[str, Any]) -> None:
    dag = project["release__happiness_by_wave"]
    assert dag.max_active_runs == 1
    assert type(dag.timetable).__name__ == "ReleaseDatesTimetable"
    assert dag.timetable.dates[0] == "1994-12-31"


def test_the_publish_task_tells_its_asset(project: dict[str, Any]) -> None:
    (asset,) = project["release__happiness_by_wave"].get_task("publish").outlets
    assert asset.uri == "cusyn://releases/happiness_by_wave"


def test_the_form_is_bounded(project: dict[str, Any]) -> None:
    params = project["manual_release"].params
    schema = {name: params.get_param(name).schema for name in params}
    assert schema["dataset"]["enum"] == ["gss_happiness"]
    assert schema["requester"]["enum"] == ["labour_team"]
    for amount in ("epsilon", "accept_at_least"):  # its bounds are told by `load`, in one sentence
        assert schema[amount] == {"type": "string"}
        assert "A decimal above 0" in params.get_param(amount).description


def test_fifty_releases_parse_in_a_second_without_heavy_imports(rig: Rig, airflow_db: Path) -> None:
    for number in range(49):
        rig.release_file(f"r{number:02d}")
    done = subprocess.run(
        [sys.executable, "-c", PARSE],
        env=os.environ | {"CUSYN_CONFIG_DIR": str(rig.config)},
        capture_output=True,
        text=True,
        check=True,
    )
    result = json.loads(done.stdout.rpartition("RESULT")[2])
    assert not result["errors"]
    assert len([name for name in result["dags"] if name.startswith("release__")]) == 50
    assert result["took"] < 1.0
    assert not [name for name in HEAVY if name in result["loaded"]]


def test_a_broken_file_stands_in_its_place_and_hides_nothing(rig: Rig) -> None:
    rig.release_file("fine")
    (rig.config / "releases" / "torn.yaml").write_text("release: torn\ninterest: [[a, b]\n")
    rig.release_file("misspelt", interest=[["animl", "indoors"]])
    dags = rig.parse()
    assert {"release__fine", "release__pets_by_year", "manual_release"} <= set(dags)
    for name, told in (
        ("torn", "releases/torn.yaml"),
        ("misspelt", "releases/misspelt.yaml: interest: unknown column 'animl'; did you mean"),
    ):
        dag = dags[f"release__{name}"]
        (task,) = dag.tasks
        assert "configuration-error" in dag.tags
        assert told in dag.description and told in dag.doc_md and told in task.sentence
        assert "\n" not in task.sentence


def test_a_broken_budgets_file_leaves_every_page_with_the_reason(rig: Rig) -> None:
    (rig.config / "budgets.yaml").write_text("populations: {keepers: {epsilon: 10.5}}\n")
    dags = rig.parse()
    assert "manual_release" in dags
    assert "budgets.yaml" in dags["release__pets_by_year"].description


def test_two_files_that_declare_one_release_do_not_hide_each_other(rig: Rig) -> None:
    told = world.merged(world.RELEASE, {"publish": {"uri": str(rig.releases)}})
    world.write_yaml(rig.config / "releases" / "copy.yaml", told)
    dags = rig.parse()
    assert len(dags["release__pets_by_year"].tasks) == len(STAGES)
    assert "configuration-error" in dags["release__copy"].tags
    assert "pets_by_year.yaml" in dags["release__copy"].description
