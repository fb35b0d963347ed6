"""What people and schedules repeat, on a real Airflow over REST: nothing is charged twice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from tests.airflow import world
from tests.airflow.rig import STAGES
from tests.e2e.client import Client
from tests.e2e.house import House, until
from tests.e2e.long.acts import (
    WAIT,
    charge_of,
    charges_of,
    clear,
    insist,
    made_run,
    mark,
    nothing_spent,
    page,
    run,
    shows,
    task,
)
from tests.e2e.long.places import RELEASE
from tests.e2e.long.struck import Struck

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_a_clear_emits_a_second_event_of_the_same_release(
    house: House, alice: Client, released: str
) -> None:
    """Whoever listens to the asset recognises the release by its id (docs/steward-guide.md)."""

    def events() -> list[dict[str, Any]]:
        found = alice.get("/assets/events?limit=100")["asset_events"]
        return [one for one in found if one["source_run_id"] == released]

    before, charge = len(events()), charge_of(house, released)
    with nothing_spent(house):
        assert clear(alice, RELEASE, released) == "success"
    assert len(events()) == before + 1 >= 2
    assert {one["extra"]["release_id"] for one in events()} == {charge.release_id}
    shows(house, charge.charge_id, "published", charge.release_id)


@pytest.mark.parametrize("stage", STAGES)
def test_a_cleared_task_gives_the_earlier_answer(
    house: House, alice: Client, released: str, stage: str
) -> None:
    tried = task(alice, RELEASE, released, stage)["try_number"]
    with nothing_spent(house):
        assert clear(alice, RELEASE, released, stage) == "success"
    assert task(alice, RELEASE, released, stage)["try_number"] == tried + 1
    shows(house, charge_of(house, released).charge_id, "published")


def test_clears_after_the_source_has_changed_give_the_earlier_answer(
    house: House, alice: Client, released: str
) -> None:
    """The charge pays for measuring one table only; another one is another period's."""
    charge = charge_of(house, released)
    world.write_source(house.rig.source, world.rows(shift=1))
    try:
        with nothing_spent(house):
            for tasks in ((), ("load",), ("synthesize", "publish")):
                assert clear(alice, RELEASE, released, *tasks) == "success"
    finally:
        world.write_source(house.rig.source, world.rows())
    tried = task(alice, RELEASE, released, "load")["try_number"]
    told = alice.log(RELEASE, released, "load", tried)
    assert tried >= 3 and any(f"as {charge.snapshot_id}" in str(line) for line in told)
    shows(house, charge.charge_id, "published", charge.snapshot_id)


@pytest.mark.parametrize("stage", STAGES)
def test_each_tasks_link_leads_to_its_charge(
    house: House, alice: Client, released: str, stage: str
) -> None:
    charge = charge_of(house, released)
    path = f"/dags/{RELEASE}/dagRuns/{released}/taskInstances/{stage}/links"
    link = alice.get(path)["extra_links"]["Budget charge"]
    nothing_asked_yet = stage in ("load", "validate")
    place = "" if nothing_asked_yet else f"charges/{charge.charge_id}"
    assert link == f"/privacy-budget/{place}"
    for user in ("alice", "viewer"):
        assert page(house, link, house.client(user).token)[0] == 200
    assert page(house, link)[0] == 401
    assert page(house, link, "forged")[0] in (401, 403)


def test_a_finished_runs_note_quotes_the_decision_and_leads_to_the_charge(
    house: House, alice: Client, released: str
) -> None:
    charge = charge_of(house, released)
    note = alice.get(f"/dags/{RELEASE}/dagRuns/{released}")["note"]
    assert note.startswith("Budget: scheduler asked epsilon 1 for vets")
    (link,) = re.findall(r"\]\((/privacy-budget/charges/\w+)\)", note)
    assert charge.charge_id in link
    assert page(house, link, house.client("viewer").token)[0] == 200


def test_two_runs_for_one_period_at_the_same_time_pay_once(house: House, alice: Client) -> None:
    form = {"dataset": "pets", "requester": "vets", "period": "twice"}
    form |= {"partition_column": "year", "partition_value": "2021"}
    answers: list[Any] = []

    def ask() -> None:
        answers.append(house.client().trigger("manual_release", conf=form))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [status for status, _ in answers] == [200, 200]
    runs = [answer["dag_run_id"] for _, answer in answers]
    assert {alice.wait("manual_release", run_id, WAIT) for run_id in runs} == {"success"}
    (charge,) = charges_of(house, "manual_pets")
    assert house.rig.kinds(charge.charge_id).count("open") == 1
    shows(house, charge.charge_id, "published")


def test_a_date_that_has_a_run_cannot_be_triggered_again(
    house: House, alice: Client, released: str
) -> None:
    with nothing_spent(house):
        status, _ = alice.trigger(RELEASE, logical_date="2022-12-31T00:00:00Z")
        assert status == 409
        again, state = run(alice, RELEASE, conf={"period": "2022-12-31"})
        assert state == "success"
    charge = charge_of(house, released)
    shows(house, charge.charge_id, "published")
    told = [line["event"] for line in alice.log(RELEASE, again, "budget_eval")]
    assert any(f"already has charge {charge.charge_id} (published)" in str(one) for one in told)


@pytest.mark.parametrize("name", ["pets_months", "pets_cron"])
def test_unpausing_after_a_year_of_missed_months_pays_once(
    house: House, alice: Client, name: str
) -> None:
    dag_id = f"release__{name}"
    alice.unpause(dag_id)
    only = made_run(alice, dag_id)
    assert alice.wait(dag_id, only, WAIT) == "success"
    alice.call("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": True})
    alice.unpause(dag_id)
    time.sleep(15)  # some turns of the scheduler
    path = f"/dags/{dag_id}/dagRuns"
    assert [one["dag_run_id"] for one in alice.get(path)["dag_runs"]] == [only]
    (charge,) = charges_of(house, name)
    assert charge.actor == "scheduler"
    shows(house, charge.charge_id, "published", "by scheduler")


def test_a_colour_set_by_hand_publishes_nothing(house: House, alice: Client) -> None:
    """Synthesize is marked a success before its turn: whoever comes later asks the ledger."""
    struck = Struck(house, alice, "pets_marked", "load.1")
    struck.wait_running("load", 1)
    files = house.rig.package_bytes()
    mark(alice, struck.dag_id, struck.run_id, "synthesize")
    struck.brake("load.1").unlink()
    assert alice.wait(struck.dag_id, struck.run_id, WAIT) == "failed"
    assert struck.task("quality_check")["state"] == "failed"
    shows(house, struck.charge.charge_id, "reserved")

    mark(alice, struck.dag_id, struck.run_id, "quality_check")
    assert clear(alice, struck.dag_id, struck.run_id, "publish") == "failed"
    shows(house, struck.charge.charge_id, "reserved")
    assert house.rig.package_bytes() == files and "open" not in struck.kinds

    late = ("synthesize", "quality_check", "publish")
    assert clear(alice, struck.dag_id, struck.run_id, *late) == "success"
    struck.ended()


def test_a_backfill_with_reprocessing_gives_the_earlier_answer(
    house: House, alice: Client, released: str
) -> None:
    """It runs the same run again; on SQLite Airflow itself may refuse to make it."""
    day = "2022-12-31T00:00:00Z"
    asked = {"dag_id": RELEASE, "from_date": day, "to_date": day, "reprocess_behavior": "completed"}
    tried = task(alice, RELEASE, released, "publish")["try_number"]
    with nothing_spent(house):
        status, made = alice.call("POST", "/api/v2/backfills", asked)
        if house.on_sqlite and status in (500, 503):  # docs/known-limitations.md
            return
        assert status == 200, made
        path = f"/backfills/{made['id']}"
        until(lambda: bool(alice.get(path)["completed_at"]), "the backfill did not end", WAIT)
        assert alice.wait(RELEASE, released, WAIT) == "success"
    assert task(alice, RELEASE, released, "publish")["try_number"] == tried + 1
    shows(house, charge_of(house, released).charge_id, "published")


def test_a_deleted_run_triggered_again_gives_the_earlier_answer(
    house: House, alice: Client, released: str
) -> None:
    past = "2020-12-31T00:00:00Z"
    run_id, state = run(alice, RELEASE, logical_date=past)
    charge = charge_of(house, run_id)
    assert state == "success"
    with nothing_spent(house):
        insist(alice, "DELETE", f"/api/v2/dags/{RELEASE}/dagRuns/{run_id}")
        again, state = run(alice, RELEASE, logical_date=past)
        assert state == "success" and again != run_id
    shows(house, charge.charge_id, "published", charge.release_id)


def test_a_deleted_run_is_made_again_by_the_schedule_and_replays(
    house: House, alice: Client, released: str
) -> None:
    """Airflow has forgotten the run, so the date is due again; the ledger has not."""
    runs, charge = f"/dags/{RELEASE}/dagRuns", charge_of(house, released)
    with nothing_spent(house):
        for one in alice.get(runs)["dag_runs"]:
            insist(alice, "DELETE", f"/api/v2{runs}/{one['dag_run_id']}")
        until(lambda: bool(alice.get(runs)["dag_runs"]), "the schedule made no run")
        (again,) = alice.get(runs)["dag_runs"]
        assert again["run_type"] == "scheduled"
        assert alice.wait(RELEASE, again["dag_run_id"], WAIT) == "success"
    shows(house, charge.charge_id, "published", charge.release_id)


def test_a_cleaned_airflow_keeps_the_whole_ledger(house: House, alice: Client) -> None:
    """`airflow db clean` while Airflow runs: its history is gone, the ledger's is not."""
    charge = charges_of(house, "pets_by_year")[0]
    command = ["db", "clean", "--clean-before-timestamp", "2100-01-01", "--skip-archive", "--yes"]
    # Of all time, so not of the DAGs and the processes at work: those would have to start again.
    command += ["--tables", "dag_run,task_instance,task_instance_history,xcom,log,asset_event"]
    with nothing_spent(house):
        for _ in range(5):
            done = subprocess.run(
                [sys.executable, "-m", "airflow", *command],
                env=os.environ | house.airflow.environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if "database is locked" not in done.stdout + done.stderr:
                break
        assert done.returncode == 0, done.stderr[-2000:]
        assert not alice.get("/dags/manual_release/dagRuns")["dag_runs"]
        _, state = run(alice, RELEASE, conf={"period": charge.period})
        assert state == "success"
    shows(house, charge.charge_id, "published", charge.release_id)
