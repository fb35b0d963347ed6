"""Each row of the ledger's table of Airflow events, with real DAG runs: one right answer each."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.airflow import world
from tests.airflow.rig import STAGES, Rig, Run, all_ok
from tests.airflow.worker import Worker


def paid_once(rig: Rig, run: Run) -> None:
    """One charge, published, its cost spent once, nothing held, and a package on disk."""
    charge = rig.charge()
    assert charge.state == "published"
    assert rig.kinds().count("open") == 1 and rig.kinds().count("publish") == 1
    assert {held for held, _ in rig.spent().values()} == {0}
    assert {rig.spent()[pool][1] for pool in charge.amounts_pico} == set(
        charge.amounts_pico.values()
    )
    assert run.xcom("publish")["release_id"] == charge.release_id


@contextmanager
def nothing_changes(rig: Rig) -> Iterator[None]:
    """Nothing is charged or journalled for a charge, and no published byte changes."""
    before = rig.spent(), [c.charge_id for c in rig.charges()], rig.kinds(), rig.package_bytes()
    yield
    after = rig.spent(), [c.charge_id for c in rig.charges()], rig.kinds(), rig.package_bytes()
    assert before == after


def test_clears_of_a_finished_run_return_the_release_it_has(rig: Rig) -> None:
    run = rig.release()
    assert run.state == "success"
    paid_once(rig, run)
    release = run.xcom("publish")
    with nothing_changes(rig):
        for task in STAGES:
            run.clear(task).finish()
            assert run.state == "success" and run.tries(task) == 2
        run.clear().finish()
        world.write_source(rig.source, world.rows(shift=1))
        run.clear().finish()
        assert run.state == "success" and all_ok(run)
    assert run.xcom("publish") == release
    assert run.xcom("load") == {"snapshot_id": rig.charge().snapshot_id}


def test_a_cleared_run_without_its_source_still_returns_its_release(rig: Rig) -> None:
    run = rig.release()
    with nothing_changes(rig):
        rig.source.unlink()
        run.clear().finish()
        assert run.state == "success"


def test_a_deleted_run_triggered_again_returns_the_release(rig: Rig) -> None:
    first = rig.release()
    release = first.xcom("publish")
    first.delete()
    with nothing_changes(rig):
        again = rig.release()
        assert again.state == "success" and again.run_id != first.run_id
    assert again.xcom("publish") == release


def test_a_second_run_of_the_period_returns_the_release(rig: Rig) -> None:
    release = rig.release().xcom("publish")
    with nothing_changes(rig):
        again = rig.release(None, conf={"period": "2020-12-31"})
        assert again.state == "success"
    assert again.xcom("publish") == release


def test_a_period_asked_for_with_other_parameters_is_taken(
    rig: Rig, capfd: pytest.CaptureFixture[str]
) -> None:
    first = rig.release()
    first.delete()
    rig.declare(release={"interest": [["animal", "weight"]]})
    with nothing_changes(rig):
        again = rig.release()
    assert again.states()["budget_eval"] == "failed" and again.tries("budget_eval") == 1
    assert f"already has charge {rig.charge().charge_id} (published) for period 2020-12-31" in (
        capfd.readouterr().out
    )


KILLS = {
    "before open": {"at": "open"},
    "after open": {"at": "open", "after": True},
    "with a round answered": {"at": "begin_round", "nth": 2},
    "with a round in flight": {"at": "answer_round", "nth": 2},
    "before seal": {"at": "seal"},
    "after seal": {"at": "seal", "after": True},
}


# What each of these costs is a process; the others show the same arrows of the ledger.
RARER = {"after open", "before seal", "garbled", "swapped"}


def spread(names: Iterable[str]) -> list[Any]:
    """Return parameters, the rarer ones marked slow."""
    slow = pytest.mark.slow
    return [pytest.param(name, marks=slow) if name in RARER else name for name in names]


@pytest.mark.parametrize("kill", spread(KILLS))
def test_a_worker_killed_in_synthesize_is_tried_again(rig: Rig, kill: str) -> None:
    run = rig.trigger().finish(until="budget_eval")
    held = rig.spent()
    Worker(run, "synthesize", **KILLS[kill]).wait_dead()
    if kill != "before open":
        assert rig.spent() != held and {h for h, _ in rig.spent().values()} == {0}
    spent = rig.spent()
    run.worker_died("synthesize").finish()
    assert run.state == "success" and run.tries("synthesize") == 2
    paid_once(rig, run)
    if kill != "before open":
        assert rig.spent() == spent
    resumed = kill not in ("before open", "after seal")
    assert rig.charge().fence == (2 if resumed else 1)
    assert rig.kinds().count("seal") == 1


def test_an_interrupted_round_is_burned_and_never_redrawn(rig: Rig) -> None:
    run = rig.trigger().finish(until="budget_eval")
    Worker(run, "synthesize", at="answer_round", nth=2).wait_dead()
    run.worker_died("synthesize").finish(until="synthesize")
    entries = rig.reader().entries(rig.charge().charge_id)
    begun = [entry.facts["round"] for entry in entries if entry.kind == "begin_round"]
    answered = [entry.facts["round"] for entry in entries if entry.kind == "answer_round"]
    burned = [entry.facts["burned_rounds"] for entry in entries if entry.kind == "resume"]
    assert burned == [[2]] and 2 in begun and 2 not in answered
    assert len(begun) == len(set(begun))


@pytest.mark.parametrize("damage", spread(["lost", "garbled", "swapped"]))
def test_answers_that_cannot_be_read_forfeit_for_good(
    rig: Rig, damage: str, capfd: pytest.CaptureFixture[str]
) -> None:
    run = rig.trigger().finish(until="budget_eval")
    Worker(run, "synthesize", at="begin_round", nth=3).wait_dead()
    spent = rig.spent()
    rounds = sorted((rig.root / "var" / "work").rglob("rounds/*.json"))
    assert len(rounds) == 2
    if damage == "lost":
        rounds[0].unlink()
    elif damage == "garbled":
        rounds[0].write_bytes(rounds[0].read_bytes()[:-5])
    else:
        rounds[0].write_bytes(rounds[1].read_bytes())
    run.worker_died("synthesize").finish()
    assert run.state == "failed" and run.tries("synthesize") == 2
    assert rig.charge().state == "forfeited" and rig.spent() == spent
    assert "its noisy answers cannot be read; the budget stays spent" in capfd.readouterr().out
    run.clear("synthesize").finish()
    assert run.state == "failed" and rig.charge().state == "forfeited" and rig.spent() == spent


def test_a_worker_killed_while_publishing_is_tried_again(rig: Rig) -> None:
    run = rig.trigger().finish(until="quality_check")
    spent = rig.spent()
    Worker(run, "publish", at="publish").wait_dead()
    assert rig.charge().state == "publishing"
    seen = rig.package_bytes()
    run.worker_died("publish").finish()
    assert run.state == "success" and rig.spent() == spent
    paid_once(rig, run)
    assert seen == rig.package_bytes()


def test_a_zombie_cannot_seal(rig: Rig) -> None:
    run = rig.trigger().finish(until="budget_eval")
    zombie = Worker(run, "synthesize", at="seal", sig=signal.SIGSTOP)
    zombie.wait_stopped()
    run.worker_died("synthesize").finish()
    assert run.state == "success"
    paid_once(rig, run)
    with nothing_changes(rig):
        zombie.thaw()


def test_another_run_of_the_period_waits_for_the_one_that_measures(rig: Rig) -> None:
    first = rig.trigger().finish(until="budget_eval")
    Worker(first, "synthesize", at="begin_round", nth=2).wait_dead()
    other = rig.trigger(date=None, conf={"period": "2020-12-31"}).finish(until="synthesize")
    assert other.states()["synthesize"] == "up_for_retry" and rig.charge().state == "opened"
    for _ in range(3):  # its process is gone at every try, until Airflow gives the run up
        first.mark("synthesize", "failed")
    first.finish()
    assert first.state == "failed"
    other.finish()
    assert other.state == "success"
    paid_once(rig, other)


def test_a_colour_set_by_hand_publishes_nothing(rig: Rig) -> None:
    run = rig.trigger().finish(until="budget_eval")
    run.mark("synthesize")
    run.finish()
    assert run.states()["quality_check"] == "failed" and run.tries("quality_check") == 1
    run.mark("quality_check").clear("publish").finish()
    assert run.states()["publish"] == "failed" and run.tries("publish") == 1
    assert rig.charge().state == "reserved" and not rig.package_bytes()
    run.clear("synthesize", "quality_check", "publish").finish()
    assert run.state == "success"
    paid_once(rig, run)


def test_load_marked_by_hand_is_asked_for_by_name(
    rig: Rig, capfd: pytest.CaptureFixture[str]
) -> None:
    run = rig.trigger().mark("load").finish()
    assert run.states()["validate"] == "failed" and not rig.charges()
    assert "load has named no snapshot" in capfd.readouterr().out


def test_a_refusal_is_a_normal_end(rig: Rig) -> None:
    rig.declare(release={"epsilon": "3", "accept_at_least": "3"})
    run = rig.release()
    assert run.state == "success"
    skipped = {name for name, state in run.states().items() if state == "skipped"}
    assert skipped == {"budget_eval", "synthesize", "quality_check", "publish"}
    charge = rig.charge()
    assert (charge.state, charge.binding) == ("denied", "per_operation_limit")
    assert set(rig.spent().values()) == {(0, 0)}
    run.clear().finish()
    assert run.state == "success" and rig.charge().charge_id == charge.charge_id


def test_a_denied_period_can_be_asked_for_again_with_less(rig: Rig) -> None:
    rig.declare(release={"epsilon": "3", "accept_at_least": "3"})
    denied = rig.release()
    denied.delete()
    rig.declare()
    run = rig.release()
    assert run.state == "success"
    assert [charge.state for charge in rig.charges()] == ["denied", "published"]


def test_a_failed_gate_withholds_for_good(rig: Rig) -> None:
    rig.declare(release={"gate": {"max_interest_bound95_tv": 0.000001}})
    run = rig.release()
    assert run.state == "failed" and run.tries("quality_check") == 1
    assert run.states()["publish"] == "upstream_failed"
    assert rig.charge().state == "withheld"
    spent = rig.spent()
    run.clear("quality_check").finish()
    assert run.state == "failed"
    run.mark("quality_check").clear("publish").finish()
    assert run.state == "failed" and rig.charge().state == "withheld" and rig.spent() == spent
    assert not rig.package_bytes()


def test_a_declaration_changed_between_reserve_and_open_stops(
    rig: Rig, capfd: pytest.CaptureFixture[str]
) -> None:
    run = rig.trigger().finish(until="budget_eval")
    held = rig.spent()
    rig.declare(release={"interest": [["weight", "indoors"]]})
    run.finish()
    assert run.states()["synthesize"] == "failed" and run.tries("synthesize") == 1
    assert "its declaration has changed since charge" in capfd.readouterr().out
    assert rig.charge().state == "reserved" and rig.spent() == held
    rig.declare()
    run.clear("synthesize", "quality_check", "publish").finish()
    assert run.state == "success"
    paid_once(rig, run)


def test_a_timeout_inside_measure_gives_nothing_back(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    from include.data import private

    run = rig.trigger().finish(until="budget_eval")
    dag = rig.parse()[run.dag_id]
    dag.get_task("synthesize").execution_timeout = timedelta(seconds=2)
    count, calls = private.count_many, []

    def slow(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            time.sleep(20)
        return count(*args, **kwargs)

    monkeypatch.setattr(private, "count_many", slow)
    run.finish(until="synthesize", dag=dag)
    assert run.states()["synthesize"] == "up_for_retry" and rig.charge().state == "opened"
    spent = rig.spent()
    assert {held for held, _ in spent.values()} == {0}
    run.finish()
    assert run.state == "success" and rig.spent() == spent
    paid_once(rig, run)


def test_a_retry_of_budget_eval_holds_once(rig: Rig) -> None:
    run = rig.trigger().finish(until="validate")
    Worker(run, "budget_eval", at="reserve", after=True).wait_dead()
    held = rig.spent()
    run.worker_died("budget_eval").finish(until="budget_eval")
    assert run.states()["budget_eval"] == "success" and run.tries("budget_eval") == 2
    assert rig.spent() == held and rig.charge().state == "reserved"


def test_an_expired_reservation_gives_back_and_can_be_asked_again(rig: Rig) -> None:
    run = rig.trigger().finish(until="budget_eval")
    (voided,) = rig.ledger().expire(datetime.now(UTC) + timedelta(days=8))
    assert voided.state == "void" and set(rig.spent().values()) == {(0, 0)}
    run.finish()
    assert run.state == "failed" and run.tries("synthesize") == 1
    run.delete()
    assert rig.release().state == "success"


def test_two_runs_draw_different_noise(rig: Rig) -> None:
    from include.synthesis.transcript import Transcript

    static = {"partition": {"column": "year", "value": "2020"}}
    rig.declare(release=static)
    assert rig.release("2020-12-31").state == rig.release("2021-12-31").state == "success"
    first, second = (
        Transcript.from_bytes(path.read_bytes())
        for path in sorted((rig.root / "var" / "work").rglob("transcript-*.json"))
    )
    assert rig.charges()[0].snapshot_id == rig.charges()[1].snapshot_id
    assert _answers(first) != _answers(second)


def _answers(transcript: Any) -> list[Any]:
    return [turn.to_payload()["marginals"] for turn in transcript.rounds]
