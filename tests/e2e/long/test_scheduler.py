"""Rows of the ledger's table of Airflow events that need a real scheduler, over REST."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from tests.airflow.rig import STAGES
from tests.e2e.client import Client
from tests.e2e.house import House, until
from tests.e2e.long.places import RELEASE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
WAIT = 600  # seconds for a run on a busy machine


def charges_of(house: House, release: str) -> list[Any]:
    return [charge for charge in house.rig.charges() if charge.release == release]


@contextmanager
def nothing_spent(house: House) -> Iterator[None]:
    """Nothing is charged or journalled for a charge, and no published byte changes."""

    def seen() -> Any:
        charges = house.rig.charges()
        journal = [house.rig.kinds(charge.charge_id) for charge in charges]
        return house.rig.spent(), journal, house.rig.package_bytes()

    before = seen()
    yield
    assert seen() == before
    house.rig.verify()


def run(client: Client, dag_id: str, **body: Any) -> tuple[str, str]:
    status, answer = client.trigger(dag_id, **body)
    assert status == 200, answer
    return answer["dag_run_id"], client.wait(dag_id, answer["dag_run_id"], WAIT)


def task(client: Client, dag_id: str, run_id: str, name: str) -> dict[str, Any]:
    return dict(client.get(f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{name}"))


def insist(client: Client, method: str, path: str, body: Any = None) -> Any:
    """Call until it succeeds: on SQLite Airflow answers 500 while its scheduler is writing."""
    for _ in range(10):
        status, answer = client.call(method, path, body)
        if status < 500:
            break
        time.sleep(2)
    assert status in (200, 204), (status, answer)
    return answer


def clear(client: Client, dag_id: str, run_id: str) -> None:
    path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/clear"
    insist(client, "POST", path, {"dry_run": False})


def test_a_clear_emits_a_second_event_of_the_same_release(
    house: House, alice: Client, released: str
) -> None:
    """Whoever listens to the asset recognises the release by its id (docs/steward-guide.md)."""

    def events() -> list[dict[str, Any]]:
        found = alice.get("/assets/events?limit=100")["asset_events"]
        return [one for one in found if one["source_run_id"] == released]

    before = len(events())
    with nothing_spent(house):
        clear(alice, RELEASE, released)
        assert alice.wait(RELEASE, released, WAIT) == "success"
    (charge,) = [one for one in charges_of(house, "pets_by_year") if one.run_id == released]
    assert len(events()) == before + 1 >= 2
    assert {one["extra"]["release_id"] for one in events()} == {charge.release_id}


@pytest.mark.parametrize("stage", STAGES)
def test_each_tasks_link_leads_to_its_charge(
    house: House, alice: Client, released: str, stage: str
) -> None:
    (charge,) = [one for one in charges_of(house, "pets_by_year") if one.run_id == released]
    path = f"/dags/{RELEASE}/dagRuns/{released}/taskInstances/{stage}/links"
    link = alice.get(path)["extra_links"]["Budget charge"]
    nothing_asked_yet = stage in ("load", "validate")
    place = "" if nothing_asked_yet else f"charges/{charge.charge_id}"
    assert link == f"/privacy-budget/{place}"
    for user in ("alice", "viewer"):
        assert page(house, link, house.client(user).token)[0] == 200
    assert page(house, link)[0] == 401
    assert page(house, link, "forged")[0] in (401, 403)


def page(house: House, path: str, token: str = "") -> tuple[int, str]:
    import urllib.error
    import urllib.request

    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(house.airflow.url + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


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
    assert charge.state == "published"
    assert house.rig.kinds(charge.charge_id).count("open") == 1


def test_a_date_that_has_a_run_cannot_be_triggered_again(
    house: House, alice: Client, released: str
) -> None:
    with nothing_spent(house):
        status, _ = alice.trigger(RELEASE, logical_date="2022-12-31T00:00:00Z")
        assert status == 409
        _, state = run(alice, RELEASE, conf={"period": "2022-12-31"})
        assert state == "success"


@pytest.mark.parametrize("name", ["pets_months", "pets_cron"])
def test_unpausing_after_a_year_of_missed_months_pays_once(
    house: House, alice: Client, name: str
) -> None:
    dag_id = f"release__{name}"
    alice.unpause(dag_id)
    path = f"/dags/{dag_id}/dagRuns"
    until(lambda: bool(alice.get(path)["dag_runs"]), "the schedule made no run")
    (only,) = alice.get(path)["dag_runs"]
    assert alice.wait(dag_id, only["dag_run_id"], WAIT) == "success"
    alice.call("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": True})
    alice.unpause(dag_id)
    time.sleep(15)  # some turns of the scheduler
    assert [one["dag_run_id"] for one in alice.get(path)["dag_runs"]] == [only["dag_run_id"]]
    (charge,) = charges_of(house, name)
    assert (charge.state, charge.actor) == ("published", "scheduler")


class Struck:
    """A run whose measurement stands still after its first round, and its worker's processes."""

    def __init__(self, house: House, alice: Client, name: str) -> None:
        self.house, self.alice, self.name = house, alice, name
        self.dag_id = f"release__{name}"
        self.brake = house.rig.root / "brake" / self.dag_id
        self.brake.touch()
        alice.unpause(self.dag_id)
        status, answer = alice.trigger(self.dag_id, conf={"period": "p1"})
        assert status == 200, answer
        self.run_id = answer["dag_run_id"]
        until(self._measuring, f"{name} does not measure", WAIT)
        self.spent = house.rig.spent()

    def _measuring(self) -> bool:
        found = charges_of(self.house, self.name)
        return bool(found) and self.house.rig.kinds(found[0].charge_id).count("begin_round") >= 2

    @property
    def charge(self) -> Any:
        (charge,) = charges_of(self.house, self.name)
        return charge

    def task(self) -> dict[str, Any]:
        return task(self.alice, self.dag_id, self.run_id, "synthesize")

    def processes(self) -> tuple[psutil.Process, psutil.Process]:
        """Return the worker and, below it, the process that does the task's work."""
        child = psutil.Process(self.task()["pid"])
        return child.parent(), child

    def ended(self, tries: int | None = None) -> None:
        """The run ends well, paid for once and by what was spent before the blow.

        Args:
            tries: how often the measurement must have been tried, where that is certain.
        """
        state = self.alice.wait(self.dag_id, self.run_id, WAIT)
        assert state == "success", self.alice.states(self.dag_id, self.run_id)
        tried = self.task()["try_number"]
        assert self.charge.state == "published" and tried == (tries or tried)
        entries = self.house.rig.reader().entries(self.charge.charge_id)
        begun = [entry.facts["round"] for entry in entries if entry.kind == "begin_round"]
        kinds = [entry.kind for entry in entries]
        assert len(begun) == len(set(begun))  # no round is drawn twice
        assert kinds.count("open") == kinds.count("seal") == kinds.count("publish") == 1
        assert kinds.count("resume") == tried - 1
        self.house.rig.verify()


@contextmanager
def only_its_own(struck: Struck) -> Iterator[None]:
    """No pool moves."""
    yield
    assert struck.house.rig.spent() == struck.spent


def test_a_worker_that_is_killed_is_tried_again_and_pays_no_more(
    house: House, alice: Client
) -> None:
    struck = Struck(house, alice, "pets_killed")
    with only_its_own(struck):
        _, child = struck.processes()
        child.kill()
        struck.brake.unlink()
        struck.ended(tries=2)


@pytest.mark.parametrize("whom", ["task", "worker"])
def test_a_sigterm_inside_measure_gives_nothing_back(
    house: House, alice: Client, whom: str
) -> None:
    """The signal a machine sends that goes down; Airflow's task process takes it and works on."""
    struck = Struck(house, alice, f"pets_stopped_{whom}")
    with only_its_own(struck):
        worker, child = struck.processes()
        (child if whom == "task" else worker).terminate()
        time.sleep(2)
        struck.brake.unlink()
        struck.ended()


def test_a_timeout_inside_measure_gives_nothing_back(house: House, alice: Client) -> None:
    struck = Struck(house, alice, "pets_timeout")
    with only_its_own(struck):
        until(lambda: struck.task()["state"] != "running", "no timeout came", 120)
        struck.brake.unlink()
        struck.ended()
        assert struck.task()["try_number"] >= 2
    told = alice.log(struck.dag_id, struck.run_id, "synthesize")
    assert any("Timeout" in str(line) for line in told)


def test_a_run_marked_failed_while_it_measures_gives_nothing_back(
    house: House, alice: Client
) -> None:
    """The button in the UI ends the worker; a clear goes on with what was measured."""
    struck = Struck(house, alice, "pets_failed")
    with only_its_own(struck):
        _, child = struck.processes()
        path = f"/api/v2/dags/{struck.dag_id}/dagRuns/{struck.run_id}"
        insist(alice, "PATCH", path, {"state": "failed"})
        until(lambda: not child.is_running(), "the task lives on", 120)
        assert struck.charge.state == "opened"
        struck.brake.unlink()
        clear(alice, struck.dag_id, struck.run_id)
        struck.ended(tries=2)


def test_a_frozen_worker_that_comes_back_changes_nothing(house: House, alice: Client) -> None:
    """Its heartbeat is missed, another try does the work, then the old process lives on."""
    struck = Struck(house, alice, "pets_frozen")
    worker, child = struck.processes()
    worker.suspend()
    child.suspend()
    struck.brake.unlink()
    try:
        struck.ended(tries=2)
        assert house.rig.spent() == struck.spent
    finally:
        with nothing_spent(house):
            child.resume()
            time.sleep(20)  # long enough to measure on and to ask for the seal
            worker.resume()
            until(lambda: not child.is_running(), "the old process does not end", 120)


def test_a_deleted_run_is_made_again_by_the_schedule_and_replays(
    house: House, alice: Client, released: str
) -> None:
    """Airflow has forgotten the run, so the date is due again; the ledger has not."""
    runs = f"/dags/{RELEASE}/dagRuns"
    with nothing_spent(house):
        for one in alice.get(runs)["dag_runs"]:
            insist(alice, "DELETE", f"/api/v2{runs}/{one['dag_run_id']}")
        until(lambda: bool(alice.get(runs)["dag_runs"]), "the schedule made no run")
        (again,) = alice.get(runs)["dag_runs"]
        assert again["run_type"] == "scheduled"
        assert alice.wait(RELEASE, again["dag_run_id"], WAIT) == "success"


def test_nothing_of_a_test_is_left_frozen() -> None:
    """The house is taken down after this; a stopped process would keep it up."""
    mine = psutil.Process(os.getpid()).children(recursive=True)
    assert not [one for one in mine if one.status() == psutil.STATUS_STOPPED]
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
