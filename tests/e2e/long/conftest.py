"""One long-lived Airflow for the slow suites that strike it and look at it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import pytest

from tests.airflow.rig import Rig
from tests.airflow.server import PASSWORD, Server, ServerRig
from tests.compose.machines import postgres
from tests.e2e.client import Client
from tests.e2e.house import House, standing, until
from tests.e2e.long.acts import made_run
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


@pytest.fixture(scope="package", params=["sqlite", "postgresql"])
def house(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    """Airflow on SQLite with the ledger in its file, then on PostgreSQL with a writer's login."""
    root = tmp_path_factory.mktemp("long")
    (root / "brake").mkdir()
    more: dict[str, str | None] = {
        "BRAKE": str(root / "brake"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dag_folder(root)),
        "AIRFLOW__CORE__PARALLELISM": "3",
        # A frozen worker is given up after a minute instead of five.
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    }
    with ExitStack() as stack:
        patch, make_rig = stack.enter_context(pytest.MonkeyPatch.context()), None
        if request.param == "postgresql":
            airflows = stack.enter_context(postgres(PASSWORD))
            server = Server(stack.enter_context(postgres(PASSWORD)))
            more |= on_postgresql(airflows)
            make_rig = partial(ServerRig, server=server)
        made = stack.enter_context(standing(root, patch, declare, more, make_rig))
        yield made
        made.rig.verify()


def on_postgresql(port: int) -> dict[str, str | None]:
    """Return the settings of an Airflow whose own database is in PostgreSQL."""
    place = f"postgres:{PASSWORD}@127.0.0.1:{port}/airflow"
    return {
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{place}",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS": None,
        # The ledger has a server of its own, which the tests stop and start.
        "AIRFLOW__DATABASE__EXTERNAL_DB_MANAGERS": None,
    }


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
    only = made_run(alice, RELEASE)
    assert alice.wait(RELEASE, only, 400) == "success"
    return only
