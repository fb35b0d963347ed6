"""What people do to runs over REST, on LocalExecutor and PostgreSQL, tasks logged in as the writer.

The same stack as in `test_as_processes.py`; the ledger gives the answers it gives on SQLite.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest

from tests.airflow.rig import STAGES
from tests.compose.stack import Stack, running
from tests.compose.test_as_processes import DAG, charges, clear, pools, release, run_of, tries
from tests.e2e.house import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
WAVE, BY_HAND, AWAY = "1994-12-31", "1998-12-31", "2000-12-31"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running(tmp_path_factory.mktemp("stack")) as it:
        registered = it.command_line("steward", "register")
        assert registered.returncode == 0, registered.stderr
        yield it
        verified = it.command_line("auditor", "verify")
        assert verified.returncode == 0, verified.stdout + verified.stderr


@pytest.fixture(scope="module")
def released(stack: Stack) -> dict[str, Any]:
    """The charge of a published release."""
    assert release(stack, WAVE) == "success", stack.logs()[-4000:]
    # Unpausing made the schedule's newest wave due; it shall not come between later looks.
    assert stack.wait_for_run(DAG, "scheduled__2006-12-31T00:00:00+00:00", 900) == "success"
    return charges(stack)[WAVE]


def pause(stack: Stack, paused: bool) -> None:
    stack.api("PATCH", f"/api/v2/dags/{DAG}", {"is_paused": paused}, stack.token())


def run_path(run_id: str) -> str:
    return f"/api/v2/dags/{DAG}/dagRuns/{quote(run_id)}"


def states(stack: Stack, run_id: str) -> dict[str, str]:
    found = stack.api("GET", f"{run_path(run_id)}/taskInstances", token=stack.token())
    return {one["task_id"]: one["state"] for one in found["task_instances"]}


def clear_tasks(stack: Stack, run_id: str, *tasks: str) -> str:
    """Clear some tasks of a run, as a person does in the UI; returns how the run ends."""
    body = {"dag_run_id": run_id, "task_ids": list(tasks), "only_failed": False, "dry_run": False}
    stack.api("POST", f"/api/v2/dags/{DAG}/clearTaskInstances", body, stack.token())
    return stack.wait_for_run(DAG, run_id, 900)


def mark(stack: Stack, run_id: str, task: str, state: str = "success") -> None:
    path = f"{run_path(run_id)}/taskInstances/{task}"
    stack.api("PATCH", path, {"new_state": state}, stack.token())


def packages(stack: Stack) -> dict[str, str]:
    """Every object of the store and its digest."""
    listing = stack.store().list_objects_v2(Bucket=stack.bucket).get("Contents", [])
    return {entry["Key"]: entry["ETag"] for entry in listing}


@contextmanager
def nothing_changes(stack: Stack) -> Iterator[None]:
    before = pools(stack), charges(stack), packages(stack)
    yield
    assert (pools(stack), charges(stack), packages(stack)) == before


def test_tasks_do_their_work_as_the_writer(stack: Stack, released: dict[str, Any]) -> None:
    environment = stack.services["scheduler"].environment
    assert '"login": "dp_ledger_writer"' in environment["AIRFLOW_CONN_PRIVACY_LEDGER"]
    assert environment["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"
    assert released["state"] == "published"


@pytest.mark.parametrize("task", STAGES)
def test_a_cleared_task_gives_the_earlier_answer(
    stack: Stack, released: dict[str, Any], task: str
) -> None:
    run_id, before = run_of(stack, WAVE), tries(stack, WAVE, task)
    with nothing_changes(stack):
        assert clear_tasks(stack, run_id, task) == "success"
    assert tries(stack, WAVE, task) == before + 1


def test_a_cleared_run_gives_the_earlier_answer(stack: Stack, released: dict[str, Any]) -> None:
    with nothing_changes(stack):
        assert clear(stack, WAVE) == "success"


def test_a_backfill_with_reprocessing_gives_the_earlier_answer(
    stack: Stack, released: dict[str, Any]
) -> None:
    """It runs the same run again, and no date outside its range."""
    run_id, before = run_of(stack, WAVE), tries(stack, WAVE, "publish")
    day = f"{WAVE}T00:00:00Z"
    asked = {"dag_id": DAG, "from_date": day, "to_date": day, "reprocess_behavior": "completed"}
    with nothing_changes(stack):
        made = stack.api("POST", "/api/v2/backfills", asked, stack.token())
        path = f"/api/v2/backfills/{made['id']}"
        until(
            lambda: bool(stack.api("GET", path, token=stack.token())["completed_at"]),
            "the backfill did not end",
            900,
        )
        assert stack.wait_for_run(DAG, run_id, 900) == "success"
    assert run_of(stack, WAVE) == run_id
    assert tries(stack, WAVE, "publish") == before + 1


def test_a_deleted_run_asked_for_again_gives_the_earlier_answer(
    stack: Stack, released: dict[str, Any]
) -> None:
    import urllib.request

    with nothing_changes(stack):
        address = f"http://127.0.0.1:{stack.ports['ui']}{run_path(run_of(stack, WAVE))}"
        asked = urllib.request.Request(address, method="DELETE")
        asked.add_header("Authorization", f"Bearer {stack.token()}")
        with urllib.request.urlopen(asked, timeout=60) as answer:
            assert answer.status == 204
        assert release(stack, WAVE) == "success"


def test_a_database_that_goes_away_amid_a_measurement_costs_nothing_more(
    stack: Stack, released: dict[str, Any]
) -> None:
    """PostgreSQL holds Airflow's rows and the ledger: with it gone, all of it stands still."""
    asked = {"logical_date": f"{AWAY}T00:00:00Z", "conf": {}}
    run_id = stack.api("POST", f"/api/v2/dags/{DAG}/dagRuns", asked, stack.token())["dag_run_id"]
    with stack.login("dp_ledger_auditor") as connection:
        until(lambda: _state(connection, AWAY) == "opened", "it is not being measured", 900)
    with stack.without_database():
        time.sleep(8)
        assert stack.page("/privacy-budget/", "any")[0] in (401, 403, 500, 503)
    assert stack.wait_for_run(DAG, run_id, 900) == "success", stack.logs()[-4000:]
    charge = charges(stack)[AWAY]
    assert charge["state"] == "published"
    with stack.login("dp_ledger_auditor") as connection:
        kinds = [kind for (kind,) in connection.execute(JOURNAL, [charge["charge_id"]])]
    assert [kinds.count(kind) for kind in ("reserve", "open", "seal", "publish")] == [1, 1, 1, 1]
    status, text = stack.page(f"/privacy-budget/charges/{charge['charge_id']}", stack.token())
    assert status == 200 and '<span class="state published">' in text


JOURNAL = "SELECT kind FROM dp_entry WHERE charge_id = %s ORDER BY seq"


def _state(connection: Any, period: str) -> str | None:
    found = connection.execute("SELECT state FROM dp_charge WHERE period = %s", [period])
    return next((state for (state,) in found), None)


def test_a_second_run_of_the_period_gives_the_earlier_answer(
    stack: Stack, released: dict[str, Any]
) -> None:
    asked = {"logical_date": None, "conf": {"period": WAVE}}
    with nothing_changes(stack):
        path = f"/api/v2/dags/{DAG}/dagRuns"
        run = stack.api("POST", path, asked, stack.token())
        assert stack.wait_for_run(DAG, run["dag_run_id"], 900) == "success"


def test_a_colour_set_by_hand_publishes_nothing(stack: Stack, released: dict[str, Any]) -> None:
    """Marked before its turn, so that the measurement has not run."""
    pause(stack, True)
    before = packages(stack)
    asked = {"logical_date": f"{BY_HAND}T00:00:00Z", "conf": {}}
    run_id = stack.api("POST", f"/api/v2/dags/{DAG}/dagRuns", asked, stack.token())["dag_run_id"]
    mark(stack, run_id, "synthesize")
    pause(stack, False)
    assert stack.wait_for_run(DAG, run_id, 900) == "failed"
    assert states(stack, run_id)["quality_check"] == "failed"
    assert charges(stack)[BY_HAND]["state"] == "reserved"

    mark(stack, run_id, "quality_check")
    assert clear_tasks(stack, run_id, "publish") == "failed"
    assert charges(stack)[BY_HAND]["state"] == "reserved" and packages(stack) == before

    held = {pool["pool_id"]: pool["held_pico"] for pool in pools(stack)}
    assert all(held.values())
    assert clear_tasks(stack, run_id, "synthesize", "quality_check", "publish") == "success"
    assert charges(stack)[BY_HAND]["state"] == "published"
    assert not any(pool["held_pico"] for pool in pools(stack))
