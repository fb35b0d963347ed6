"""One long-lived Airflow for the slow suites that strike it and look at it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests.airflow.rig import Rig
from tests.e2e.client import Client
from tests.e2e.house import House, standing, until
from tests.e2e.long.places import BRAKED, RELEASE, STRUCK
from tools import embedded

HERE = Path(__file__).parent


def month_ends(count: int) -> list[str]:
    """Return the last days of the past months, oldest first."""
    days, day = [], date.today().replace(day=1)
    for _ in range(count):
        day = day - timedelta(days=1)
        days.append(day.isoformat())
        day = day.replace(day=1)
    return days[::-1]


def declare(rig: Rig) -> None:
    """Write the steward's files: a calendar, two schedules missed for a year, some to strike."""
    rig.declare()
    whole = {"partition": {"column": "year", "value": "2020"}}
    rig.release_file("pets_months", schedule={"dates": month_ends(14)}, **whole)
    rig.release_file("pets_cron", schedule="@monthly", **whole)
    for name in STRUCK:
        rig.release_file(name, schedule=None, **whole)


def dag_folder(root: Path) -> Path:
    """Lay out the project's DAGs with brakes on the releases."""
    folder = root / "dags"
    folder.mkdir()
    for path in (embedded.ROOT / "dags").glob("*.py"):
        source = HERE / "braked_releases.py" if path.name == "releases.py" else path
        (folder / path.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    return folder


@pytest.fixture(scope="package")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    root = tmp_path_factory.mktemp("long")
    (root / "brake").mkdir()
    more = {
        "BRAKE": str(root / "brake"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dag_folder(root)),
        "AIRFLOW__CORE__PARALLELISM": "3",
        # A frozen worker is given up after a minute instead of five.
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    }
    with (
        pytest.MonkeyPatch.context() as patch,
        standing(root, patch, declare, more) as made,
    ):
        yield made
        made.rig.verify()


@pytest.fixture(scope="package")
def alice(house: House) -> Client:
    client = house.client()
    wanted = {RELEASE, "manual_release", "ledger_audit", *BRAKED}
    until(
        lambda: wanted <= {dag["dag_id"] for dag in client.get("/dags?limit=100")["dags"]},
        "the DAGs are not there",
    )
    client.unpause("manual_release")
    return client


@pytest.fixture(scope="package")
def released(house: House, alice: Client) -> str:
    """The run that the unpaused schedule makes for its latest past date."""
    alice.unpause(RELEASE)
    path = f"/dags/{RELEASE}/dagRuns"
    until(lambda: bool(alice.get(path)["dag_runs"]), "the schedule made no run")
    (only,) = alice.get(path)["dag_runs"]
    assert alice.wait(RELEASE, only["dag_run_id"], 400) == "success"
    return str(only["dag_run_id"])
