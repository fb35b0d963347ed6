"""What strikes a worker, a run or the ledger's database, on a real Airflow over REST."""

from __future__ import annotations

import os
import time

import psutil
import pytest

from tests.airflow.rig import STAGES
from tests.airflow.server import ServerRig
from tests.e2e.client import Client
from tests.e2e.house import House, until
from tests.e2e.long.acts import WAIT, clear, insist, nothing_spent, page, shows
from tests.e2e.long.struck import Struck

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_a_worker_killed_before_the_charge_is_opened_holds_once(
    house: House, alice: Client
) -> None:
    """Twice: right after the reservation, and before the measurement."""
    struck = Struck(house, alice, "pets_early", "budget_eval.1.done", "synthesize.1")
    until(lambda: any(one.release == struck.name for one in house.rig.charges()), "no charge", WAIT)
    held, charge = house.rig.spent(), struck.charge
    shows(house, charge.charge_id, "reserved")
    struck.processes("budget_eval")[1].kill()
    struck.wait_running("synthesize", 1)
    assert struck.task("budget_eval")["try_number"] == 2
    assert struck.charge == charge and house.rig.spent() == held
    struck.processes()[1].kill()
    struck.ended(tries=None, resumed=0)
    assert struck.task()["try_number"] == 2 and struck.charge.fence == 1
    assert struck.kinds.count("reserve") == 1
    assert struck.charge.charge_id == charge.charge_id


def test_answers_that_cannot_be_read_forfeit_for_good(house: House, alice: Client) -> None:
    struck = Struck(house, alice, "pets_unreadable")
    struck.brake("synthesize.2").touch()
    with struck.only_its_own():
        _, child = struck.processes()
        child.kill()
        struck.wait_running("synthesize", 2)
        desk = house.rig.root / "var" / "work" / struck.charge.charge_id
        (answer, *_) = sorted(desk.rglob("rounds/*.json"))
        answer.write_bytes(answer.read_bytes()[:-5])
        struck.brake().unlink()
        struck.brake("synthesize.2").unlink()
        assert alice.wait(struck.dag_id, struck.run_id, WAIT) == "failed"
        assert struck.task()["try_number"] == 2  # a third try would find the same
        told = "the noisy answers of its rounds cannot be read"
        shows(house, struck.charge.charge_id, "forfeited", told)
        assert clear(alice, struck.dag_id, struck.run_id) == "failed"
        shows(house, struck.charge.charge_id, "forfeited", told)
    lines = alice.log(struck.dag_id, struck.run_id, "synthesize", 2)
    assert any("the budget stays spent" in str(line) for line in lines)


def test_a_worker_that_is_killed_is_tried_again_and_pays_no_more(
    house: House, alice: Client
) -> None:
    struck = Struck(house, alice, "pets_killed")
    with struck.only_its_own():
        _, child = struck.processes()
        child.kill()
        struck.brake().unlink()
        struck.ended(tries=2)


@pytest.mark.parametrize("whom", ["task", "worker"])
def test_a_sigterm_inside_measure_gives_nothing_back(
    house: House, alice: Client, whom: str
) -> None:
    """The signal a machine sends that goes down; Airflow's task process takes it and works on."""
    struck = Struck(house, alice, f"pets_stopped_{whom}")
    with struck.only_its_own():
        worker, child = struck.processes()
        (child if whom == "task" else worker).terminate()
        time.sleep(2)
        struck.brake().unlink()
        struck.ended()


def test_a_timeout_inside_measure_gives_nothing_back(house: House, alice: Client) -> None:
    struck = Struck(house, alice, "pets_timeout")
    with struck.only_its_own():
        until(lambda: struck.task()["state"] != "running", "no timeout came", 120)
        struck.brake().unlink()
        struck.ended()
        assert struck.task()["try_number"] >= 2
    told = alice.log(struck.dag_id, struck.run_id, "synthesize")
    assert any("Timeout" in str(line) for line in told)


def test_a_run_marked_failed_while_it_measures_gives_nothing_back(
    house: House, alice: Client
) -> None:
    """The button in the UI ends the worker; a clear goes on with what was measured."""
    struck = Struck(house, alice, "pets_failed")
    with struck.only_its_own():
        _, child = struck.processes()
        path = f"/api/v2/dags/{struck.dag_id}/dagRuns/{struck.run_id}"
        insist(alice, "PATCH", path, {"state": "failed"})
        until(lambda: not child.is_running(), "the task lives on", 120)
        assert struck.charge.state == "opened"
        struck.brake().unlink()
        assert clear(alice, struck.dag_id, struck.run_id) == "success"
        struck.ended(tries=2)


def test_a_frozen_worker_that_comes_back_changes_nothing(house: House, alice: Client) -> None:
    """Its heartbeat is missed, another try does the work, then the old process lives on."""
    struck = Struck(house, alice, "pets_frozen")
    worker, child = struck.processes()
    worker.suspend()
    child.suspend()
    struck.brake().unlink()
    try:
        struck.ended(tries=2)
        assert house.rig.spent() == struck.spent
    finally:
        with nothing_spent(house):
            child.resume()
            time.sleep(20)  # long enough to measure on and to ask for the seal
            worker.resume()
            until(lambda: not child.is_running(), "the old process does not end", 120)


def test_a_ledger_that_is_away_at_each_stage_delays_and_costs_nothing(
    house: House, alice: Client
) -> None:
    """PostgreSQL is stopped before each stage works, and once more amid the measurement."""
    if house.on_sqlite:
        pytest.skip("the ledger lies in Airflow's own file; tests/airflow/test_ledger_away.py")
    assert isinstance(house.rig, ServerRig)
    server, token = house.rig.server, house.client("viewer").token
    struck = Struck(house, alice, "pets_away", *(f"{one}.{n}" for one in STAGES for n in (1, 2)))
    struck.brake("synthesize.3").touch()

    def fail_one(stage: str, attempt: int, brake: str) -> None:
        before = house.rig.spent()
        server.leave()
        assert page(house, "/privacy-budget/", token)[0] == 503
        struck.brake(brake).unlink()
        struck.wait_running(stage, attempt + 1)
        server.come_back()
        assert house.rig.spent() == before
        lines = alice.log(struck.dag_id, struck.run_id, stage, attempt)
        assert any("the ledger database cannot be used" in str(line) for line in lines)

    for stage in STAGES:
        struck.wait_running(stage, 1)
        fail_one(stage, 1, f"{stage}.1")
        if stage == "synthesize":
            struck.brake().touch()
            struck.brake("synthesize.2").unlink()
            struck.wait_measuring()
            fail_one(stage, 2, "")
            struck.brake("synthesize.3").unlink()
        else:
            struck.brake(f"{stage}.2").unlink()
    struck.ended(resumed=1)
    assert {stage: struck.task(stage)["try_number"] for stage in STAGES} == {
        stage: 3 if stage == "synthesize" else 2 for stage in STAGES
    }
    assert house.rig.spent() == struck.spent


def test_nothing_of_a_test_is_left_frozen() -> None:
    """The house is taken down after this; a stopped process would keep it up."""
    mine = psutil.Process(os.getpid()).children(recursive=True)
    assert not [one for one in mine if one.status() == psutil.STATUS_STOPPED]
