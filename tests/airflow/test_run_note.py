"""A finished run's note says what was decided and leads to the charge."""

from __future__ import annotations

from typing import Any

from tests.airflow.rig import Rig, Run


def note(run: Run, write: str | None = None) -> Any:
    """Return a run's note, or write one as a person does in the UI."""
    from airflow.utils.session import create_session

    with create_session() as session:
        found = run._orm(session)
        if write is not None:
            found.note = write
        return found.note


def test_the_note_of_a_run_holds_the_decision_and_leads_to_the_charge(rig: Rig) -> None:
    run = rig.release()
    charge = rig.charge()
    told = note(run)
    assert told.startswith("Budget: alice asked epsilon 1 for vets, release pets_by_year")
    assert f"charge {charge.charge_id} is reserved" in told
    assert told.endswith(f"(/privacy-budget/charges/{charge.charge_id})")
    run.clear().finish()
    assert f"already has charge {charge.charge_id} (published)" in note(run)


def test_a_refusal_is_noted_too(rig: Rig) -> None:
    rig.declare(release={"epsilon": "3", "accept_at_least": "3"})
    run = rig.release()
    assert run.states()["budget_eval"] == "skipped"
    assert "denied by per_operation_limit" in note(run)
    assert f"/charges/{rig.charge().charge_id})" in note(run)


def test_a_run_that_never_asked_has_no_note(rig: Rig) -> None:
    rig.source.unlink()
    run = rig.release()
    assert run.state == "failed" and note(run) is None


def test_what_a_person_wrote_stays(rig: Rig) -> None:
    run = rig.trigger().finish(until="budget_eval")
    note(run, "asked for by the board")
    run.finish()
    assert run.state == "success" and note(run) == "asked for by the board"
