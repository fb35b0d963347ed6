"""One full run under a real `airflow standalone`, triggered over the REST API, to a package."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.airflow import world
from tests.airflow.rig import STAGES, Rig
from tests.e2e.client import Client
from tests.e2e.house import House, standing
from tests.security import canary

pytestmark = pytest.mark.timeout(900)  # on a busy machine Airflow alone takes minutes to start

RELEASE = "release__pets_by_year"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with (
        pytest.MonkeyPatch.context() as patch,
        standing(tmp_path_factory.mktemp("house"), patch, declare) as made,
    ):
        yield made


def declare(rig: Rig) -> None:
    rig.declare(dataset={"privacy_unit": {"id_column": "keeper_id"}})
    rig.release_file("torn", interest=[["animl"]])
    world.write_source(rig.source, canary.rows())


def run(client: Client, dag_id: str, **body: object) -> tuple[str, str]:
    status, answer = client.trigger(dag_id, **body)
    assert status == 200, answer
    run_id = answer["dag_run_id"]
    return run_id, client.wait(dag_id, run_id)


@pytest.fixture(scope="module")
def alice(house: House) -> Client:
    client = house.client("alice")
    for _ in range(60):
        known = {dag["dag_id"] for dag in client.get("/dags")["dags"]}
        if {RELEASE, "manual_release", "release__torn"} <= known:
            break
        time.sleep(1)
    for dag_id in ("manual_release", "release__torn"):
        client.unpause(dag_id)
    return client


@pytest.fixture(scope="module")
def released(house: House, alice: Client) -> str:
    """The run that the unpaused schedule makes for its latest past date."""
    alice.unpause(RELEASE)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        runs = alice.get(f"/dags/{RELEASE}/dagRuns")["dag_runs"]
        if runs:
            break
        time.sleep(1)
    (only,) = runs
    assert alice.wait(RELEASE, only["dag_run_id"]) == "success", alice.states(
        RELEASE, only["dag_run_id"]
    )
    return str(only["dag_run_id"])


def test_unpausing_late_releases_the_latest_date_once(
    house: House, alice: Client, released: str
) -> None:
    (only,) = alice.get(f"/dags/{RELEASE}/dagRuns")["dag_runs"]
    assert only["run_type"] == "scheduled" and only["logical_date"].startswith("2022-12-31")
    (charge,) = house.rig.charges()
    assert (charge.state, charge.actor, charge.period) == ("published", "scheduler", "2022-12-31")


def test_a_past_date_is_triggered_by_hand_and_its_package_verifies(
    house: House, alice: Client, released: str
) -> None:
    _, state = run(alice, RELEASE, logical_date="2020-12-31T00:00:00Z")
    assert state == "success"
    charge = house.rig.charges()[-1]
    assert (charge.state, charge.actor, charge.period) == ("published", "alice", "2020-12-31")
    (manifest,) = (house.rig.releases / "pets_by_year" / "2020-12-31").rglob("datapackage.json")
    assert cli(house, "package", "verify", str(manifest.parent)) == 0
    assert cli(house, "verify", "--manifest", str(manifest)) == 0


def cli(house: House, *arguments: str) -> int:
    command = [sys.executable, "-m", "include.cli", *arguments]
    return subprocess.run(command, capture_output=True, check=False).returncode


def test_each_stage_logs_one_plain_line_and_no_noise(alice: Client, released: str) -> None:
    for stage in STAGES:
        lines = alice.log(RELEASE, released, stage)
        ours = [line for line in lines if "cusyn_airflow" in str(line.get("logger"))]
        audit = [line["event"] for line in ours if line.get("level") == "info"]
        assert len(audit) == 1, audit
        name = {"budget_eval": "BudgetEval", "quality_check": "quality-check"}.get(stage, stage)
        assert audit[0].startswith(f"{name}: "), audit
        noise = [
            (line.get("logger"), line["event"])
            for line in lines
            if (line.get("level") in ("warning", "error", "critical") and not _warns_of_noise(line))
            or str(line.get("logger", "")).split(".")[0] in LIBRARIES
        ]
        assert noise == [], (stage, noise)


def _warns_of_noise(line: dict[str, Any]) -> bool:
    """Tell the plan's own warning, said before anything is spent, from a library's."""
    return "cusyn_airflow" in str(line.get("logger")) and line["event"].startswith(
        "BudgetEval: Noise will swamp the interest query"
    )


LIBRARIES = (
    "great_expectations",
    "matplotlib",
    "opendp",
    "numba",
    "jax",
    "mbi",
    "py",
    "botocore",
    "alembic",
)


def test_the_form_releases_within_its_bounds(house: House, alice: Client, released: str) -> None:
    form = {
        "dataset": "pets",
        "requester": "vets",
        "period": "by-hand",
        "partition_column": "year",
        "partition_value": "2021",
        "interest": [["animal", "indoors"]],
    }
    before = len(house.rig.charges())
    status, answer = alice.trigger("manual_release", conf=form | {"requester": "nobody"})
    assert status == 400, answer
    for wrong in ("1e9", "-1"):
        run_id, state = run(alice, "manual_release", conf=form | {"epsilon": wrong})
        assert state == "failed"
        lines = [str(line) for line in alice.log("manual_release", run_id, "load")]
        assert any("form: epsilon: " in line for line in lines)
    assert len(house.rig.charges()) == before
    _, state = run(alice, "manual_release", conf=form)
    assert state == "success"
    assert [c.state for c in house.rig.charges()[before:]] == ["published"]


def test_a_viewer_may_not_trigger(house: House, released: str) -> None:
    viewer = house.client("viewer")
    assert viewer.trigger(RELEASE, logical_date="2021-12-31T00:00:00Z")[0] == 403
    assert viewer.trigger("manual_release")[0] == 403


def test_a_run_cannot_be_passed_off_as_scheduled(alice: Client, released: str) -> None:
    status, _ = alice.trigger(
        RELEASE, logical_date="2021-12-31T00:00:00Z", dag_run_id="scheduled__2021-12-31T00:00:00Z"
    )
    assert status in (400, 409, 422, 500)
    states = [one["run_type"] for one in alice.get(f"/dags/{RELEASE}/dagRuns")["dag_runs"]]
    assert states.count("scheduled") == 1


@pytest.mark.parametrize("user", ["bob", "local"])
def test_a_user_nobody_has_listed_is_refused_by_name(
    house: House, alice: Client, released: str, user: str
) -> None:
    before = [c.charge_id for c in house.rig.charges()]
    client = house.client(user)
    form = {"dataset": "pets", "requester": "vets", "period": user}
    run_id, state = run(client, "manual_release", conf=form)
    assert state == "failed"
    lines = [str(line) for line in client.log("manual_release", run_id, "load")]
    assert any("may not request releases for 'vets'" in line and user in line for line in lines)
    assert [c.charge_id for c in house.rig.charges()] == before


def test_a_broken_file_says_so_on_its_page_and_in_its_log(alice: Client, released: str) -> None:
    page = alice.get("/dags/release__torn/details")
    told = "releases/torn.yaml: interest: unknown column 'animl'"
    assert told in page["description"] and told in page["doc_md"]
    assert "configuration-error" in [tag["name"] for tag in page["tags"]]
    run_id, state = run(alice, "release__torn")
    assert state == "failed"
    assert any(
        told in str(line) for line in alice.log("release__torn", run_id, "configuration_error")
    )
    assert alice.get("/importErrors")["total_entries"] == 0


def test_a_cleared_run_charges_nothing_and_returns_the_release(
    house: House, alice: Client, released: str
) -> None:
    before, files = house.rig.spent(), house.rig.package_bytes()
    status, answer = alice.call(
        "POST", f"/api/v2/dags/{RELEASE}/dagRuns/{released}/clear", {"dry_run": False}
    )
    assert status == 200, answer
    assert alice.wait(RELEASE, released) == "success"
    assert house.rig.spent() == before and house.rig.package_bytes() == files


def test_no_planted_value_shows_and_the_ledger_is_clean(house: House, released: str) -> None:
    raw = (house.rig.root / "var" / "protected", house.rig.source)
    files = canary.below(house.rig.root, without=raw)
    assert any(path.suffix == ".log" for path in files)
    database = list(canary.tables(house.rig.ledger_file))
    assert canary.found_in([*canary.texts(files), *database]) == []
    logs = [(name, text) for name, text in canary.texts(files) if name.suffix == ".log"]
    assert canary.counts_in([*logs, *database]) == []
    house.rig.verify()


def test_it_stops_cleanly_on_interrupt(house: House, released: str) -> None:
    """The last test of the house: nothing of it is left running."""
    group = house.airflow.process.pid
    assert house.airflow.stop() == 0
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        os.killpg(group, signal.SIGKILL)
        raise AssertionError("processes of Airflow outlived it")
    house.rig.verify()
