"""The six stages, called in order and again: what each returns, refuses and leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from include.budget.errors import IdempotencyConflict
from include.errors import CuSynError
from include.publishing.verify import sound, verify_package
from include.quality.report import read_report
from include.stages.approval import NotApproved, approve, is_decided, reject
from include.stages.budget_eval import PeriodMissing, ReservationVoid, budget_eval
from include.stages.declared import NotAsRegistered
from include.stages.desk import Desk
from include.stages.ledger import last_verification, verify_ledger
from include.stages.load import load
from include.stages.publish import publish
from include.stages.quality_check import Withheld, quality_check
from include.stages.run import NotAllowed, NothingPaid
from include.stages.synthesize import BeingMeasured, DeclarationChanged, Forfeited, synthesize
from include.stages.validate import validate
from include.stages.words import decision_words, room_left, withdrawn_words
from include.synthesis.plan import USABLE_TV
from tests.clinic import RELEASE, write_source


def edit(place, old: str, new: str) -> None:
    path = place.settings.config_dir / "releases" / "wards.yaml"
    assert old in RELEASE
    path.write_text(RELEASE.replace(old, new))


def release(run, place):
    """Go through all six stages."""
    snapshot_id = load(run, place)
    validate(run, place, snapshot_id)
    charge = budget_eval(run, place, snapshot_id)
    synthesize(run, place)
    quality_check(run, place)
    return charge, publish(run, place)


def test_a_release_is_paid_published_witnessed_and_verifies(place, make_run):
    charge, published = release(make_run(), place)
    assert charge.granted_pico == 10**12
    found = place.reader.charge(charge.charge_id)
    assert (found.state, found.release_id) == ("published", published.release_id)
    package = Path(published.uri)
    assert sound(verify_package(package))
    seen = list(place.settings.checkpoints_dir.glob("checkpoint-*.json"))
    assert len(seen) == 3  # when its first round began, when it was sealed, when it was published
    assert verify_ledger(place).ok
    assert last_verification(place.settings)["ok"] is True


def test_a_second_run_of_the_period_returns_the_same_release_and_charges_nothing(place, make_run):
    _, first = release(make_run(), place)
    spent = [pool.spent_pico for pool in place.reader.pools()]
    write_source(Path(make_run().dataset.source.path), ward="south")  # the source has changed
    charge, second = release(make_run(run_id="run-2"), place)
    assert charge.replayed
    assert (second.release_id, second.uri) == (first.release_id, first.uri)
    assert [pool.spent_pico for pool in place.reader.pools()] == spent
    assert "nothing more is charged" in decision_words(charge, "")
    assert second.words == (
        f"release {first.release_id} was published before and lies at {first.uri} "
        f"(charge {charge.charge_id}); nothing more is charged."
    )


def test_the_log_line_of_a_grant_says_who_what_and_what_is_left(place, make_run):
    run = make_run()
    charge = budget_eval(run, place, load(run, place))
    line = decision_words(charge, room_left(charge, place.reader))
    assert "anna asked epsilon 1 for team" in line
    assert "granted 1 in full" in line
    assert "of 3 for patients" in line
    assert "of 2 for team" in line


def test_a_request_above_the_user_limit_is_negotiated_down(place, make_run):
    edit(place, 'epsilon: "1"', 'epsilon: "1.5"')
    run = make_run()
    charge = budget_eval(run, place, load(run, place))
    assert charge.granted_pico == 10**12
    assert charge.binding == "per_request_limit"
    assert "granted 1, bound by per_request_limit" in decision_words(charge, "")


def test_a_denied_request_is_recorded_and_nothing_after_it_runs(place, make_run):
    edit(place, 'epsilon: "1"', 'epsilon: "2.5"')
    run = make_run()
    charge = budget_eval(run, place, load(run, place))
    assert charge.denied
    assert "nothing was charged" in decision_words(charge, "")
    with pytest.raises(NothingPaid, match="no budget is reserved"):
        synthesize(run, place)


def test_an_actor_nobody_allowed_is_refused_before_the_source_is_read(place, make_run):
    with pytest.raises(NotAllowed, match=r"airflow_users: \{bob: \[team\]\}"):
        load(make_run(actor="bob"), place)
    assert not place.settings.protected_dir.exists()
    load(make_run(actor="scheduler", scheduled=True), place)


def test_a_run_that_has_its_charge_is_run_again_in_nobodys_name(place, make_run):
    """A backfill reprocesses a scheduled run as one of type backfill, with no user."""
    charge, published = release(make_run(actor="scheduler", scheduled=True), place)
    again, second = release(make_run(actor="unknown"), place)
    assert again.charge_id == charge.charge_id and second.release_id == published.release_id
    with pytest.raises(NotAllowed):
        load(make_run(actor="unknown", run_id="run-2"), place)
    with pytest.raises(NotAllowed):
        budget_eval(make_run(actor="unknown", run_id="run-2"), place, None)


def test_a_run_without_a_period_is_told_what_to_fill_in(place, make_run):
    with pytest.raises(PeriodMissing, match="field 'period'"):
        budget_eval(make_run(period=""), place, None)


def test_the_same_run_with_another_declaration_is_refused(place, make_run):
    run = make_run()
    snapshot_id = load(run, place)
    budget_eval(run, place, snapshot_id)
    edit(place, "interest: [[ward, smoker]]", "interest: [[ward, stay]]")
    with pytest.raises(DeclarationChanged, match="has changed since charge"):
        synthesize(make_run(), place)
    with pytest.raises(IdempotencyConflict):
        budget_eval(make_run(), place, snapshot_id)


def test_an_opened_charge_of_a_living_run_is_left_alone(place, make_run):
    charge = opened(place, make_run)
    with pytest.raises(BeingMeasured, match="wait for it"):
        synthesize(make_run(run_id="run-2", is_alive=lambda dag_id, run_id: True), place)
    assert place.reader.charge(charge.charge_id).state == "opened"


def test_an_opened_charge_of_a_dead_run_is_resumed_for_nothing(place, make_run):
    charge = opened(place, make_run)
    made = synthesize(make_run(run_id="run-2", is_alive=lambda dag_id, run_id: False), place)
    found = place.reader.charge(charge.charge_id)
    assert (found.state, found.fence) == ("sealed", 2)
    assert found.transcript_digest == made.transcript_digest
    assert found.amounts_pico == place.reader.charge(charge.charge_id).amounts_pico


def test_a_retry_without_the_answers_forfeits_for_good(place, make_run):
    charge = opened(place, make_run, rounds=1)
    for answer in (place.settings.work_dir / charge.charge_id / "rounds").iterdir():
        answer.write_text("{}")
    with pytest.raises(Forfeited, match="the budget stays spent"):
        synthesize(make_run(attempt=2), place)
    assert place.reader.charge(charge.charge_id).state == "forfeited"


def opened(place, make_run, rounds: int = 0):
    """Leave a charge as a process that died inside its measurement leaves it."""
    from include.stages.desk import Desk
    from include.stages.store import protect
    from include.stages.synthesize import JournalledRounds, _plan
    from include.stages.task import schema_of
    from include.synthesis import synthesizer

    class Dies(Exception):
        pass

    class Dying(JournalledRounds):
        def begin(self, round, events):
            if round > rounds:
                raise Dies
            super().begin(round, events)

    run = make_run()
    charge = budget_eval(run, place, load(run, place))
    plan = _plan(run, charge)
    right = place.ledger.open(
        charge.charge_id,
        plan=plan.to_dict(),
        cost=plan.cost,
        events=[event.to_dict() for event in plan.events],
        attempt="1",
    )
    table = protect(place.settings, charge.snapshot_id, schema_of(run), run.dataset)
    desk = Desk(place.desk(charge.charge_id))
    with pytest.raises(Dies):
        synthesizer("mwem_pgm").measure(table, plan, Dying(place.ledger, right, desk))
    return charge


def test_a_failed_gate_withholds_and_stays_spent(place, make_run):
    edit(place, "rows: 200", "rows: 200\ngate: {max_interest_bound95_tv: 0.0001}")
    run = make_run()
    charge = budget_eval(run, place, load(run, place))
    synthesize(run, place)
    with pytest.raises(Withheld, match="what was spent stays spent"):
        quality_check(run, place)
    assert place.reader.charge(charge.charge_id).state == "withheld"
    with pytest.raises(CuSynError, match="withheld"):
        publish(run, place)
    assert not (place.settings.project_root / "releases").exists()


def test_the_manifest_names_the_sealed_entry(place, make_run):
    charge, published = release(make_run(), place)
    manifest = json.loads((Path(published.uri) / "datapackage.json").read_text())
    found = place.reader.charge(charge.charge_id)
    lineage = manifest["dp"]["lineage"]
    assert (lineage["entry_seq"], lineage["entry_hash"]) == (found.sealed_seq, found.sealed_hash)


def test_a_process_that_lost_its_right_never_replaces_the_sealed_transcript(place, make_run):
    charge = opened(place, make_run)
    made = synthesize(make_run(attempt=2), place)
    desk = place.settings.work_dir / charge.charge_id
    (desk / f"transcript-{'0' * 64}.json").write_text("what a zombie left")
    assert synthesize(make_run(attempt=3), place).transcript_digest == made.transcript_digest


def test_publishing_waits_for_a_second_person(place, make_run):
    edit(place, "rows: 200", "rows: 200\napproval: required")
    run = make_run()
    budget_eval(run, place, load(run, place))
    synthesize(run, place)
    quality_check(run, place)
    with pytest.raises(NotApproved, match="none is recorded"):
        publish(run, place)
    for name in ("anna", "Anna", " ANNA "):
        with pytest.raises(NotApproved, match="cannot approve it"):
            approve(run, place, name)
    assert not is_decided(run, place)
    approve(run, place, "berta")
    assert is_decided(run, place)
    assert publish(run, place).release_id


def test_a_rejection_withholds_for_good(place, make_run):
    run = make_run()
    charge = budget_eval(run, place, load(run, place))
    synthesize(run, place)
    quality_check(run, place)
    reject(run, place, "berta")
    found = place.reader.charge(charge.charge_id)
    assert (found.state, found.note) == ("withheld", "berta rejected its publication")
    with pytest.raises(CuSynError, match="withheld"):
        publish(run, place)


def test_an_expired_reservation_asks_for_a_new_run(place, make_run):
    run = make_run()
    charge = budget_eval(run, place, load(run, place))
    place.ledger.void(charge.charge_id, "nobody opened it in time")
    with pytest.raises(ReservationVoid, match="trigger a new run"):
        budget_eval(run, place, charge.snapshot_id)
    again = budget_eval(make_run(run_id="run-2"), place, charge.snapshot_id)
    assert again.state == "reserved"


def test_a_release_that_replaces_another_says_so_to_both_their_readers(place, make_run):
    _, old = release(make_run(), place)
    edit(place, "rows: 200", f"rows: 200\nsupersedes: {old.release_id}")
    _, new = release(make_run(run_id="run-2", period="2002-12-31"), place)
    manifest = json.loads((Path(new.uri) / "datapackage.json").read_text())
    assert manifest["dp"]["lineage"]["supersedes"] == old.release_id
    notices = [path.read_text() for path in Path(old.uri).parent.parent.rglob("*.json")]
    assert any(f"Replaced by {new.release_id}" in notice for notice in notices)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("max_rows: 1}", "id_column: who, max_rows: 2}"),
        ("populations: [patients]", "populations: [patients, nurses]"),
        ("[north, south, east]", "[north, south, east, west]"),
    ],
)
@pytest.mark.parametrize("step", ["before BudgetEval", "before measuring", "before a resume"])
def test_a_file_that_differs_from_its_registration_is_never_run(place, make_run, old, new, step):
    budgets = place.settings.config_dir / "budgets.yaml"
    nurses = '\n  nurses: {epsilon: "3", delta: "1e-9"}\nusers:'
    budgets.write_text(budgets.read_text().replace("\nusers:", nurses))
    run = make_run()
    snapshot_id = load(run, place)
    if step == "before a resume":
        opened(place, make_run, rounds=1)
    elif step == "before measuring":
        budget_eval(run, place, snapshot_id)
    spent = [pool.spent_pico for pool in place.reader.pools()]
    file = place.settings.config_dir / "datasets" / "clinic.yaml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises((NotAsRegistered, DeclarationChanged)):
        if step == "before BudgetEval":
            budget_eval(make_run(), place, snapshot_id)
        else:
            synthesize(make_run(attempt=2), place)
    assert [pool.spent_pico for pool in place.reader.pools()] == spent


def test_an_approval_asked_for_cannot_be_edited_away(place, make_run):
    edit(place, "rows: 200", "rows: 200\napproval: required")
    run = make_run()
    budget_eval(run, place, load(run, place))
    synthesize(run, place)
    quality_check(run, place)
    edit(place, "rows: 200", "rows: 200")
    with pytest.raises(NotApproved):
        publish(make_run(), place)


def test_a_withdrawn_period_asked_again_is_told_so(place, make_run):
    charge, published = release(make_run(), place)
    assert withdrawn_words(place.reader.charge(charge.charge_id), place.reader) == ""
    place.ledger.withdraw(published.release_id, "a column was mislabelled", "anna")
    again, second = release(make_run(run_id="run-2"), place)
    told = withdrawn_words(again, place.reader)
    assert told.startswith("withdrawn on 20") and told.endswith(": a column was mislabelled")
    line = decision_words(again, room_left(again, place.reader), told)
    assert f"({again.state}, then {told}); nothing more is charged." in line
    assert second.release_id == published.release_id
    assert second.words == (
        f"release {published.release_id} was published before and {told}; it lies at "
        f"{published.uri} (charge {charge.charge_id}); nothing more is charged, and nothing is "
        "published again under this period: ask under a new one."
    )


def test_the_quality_line_calls_a_swamped_query_unusable(place, make_run):
    edit(place, 'epsilon: "1"\naccept_at_least: "0.5"', 'epsilon: "0.3"\naccept_at_least: "0.3"')
    run = make_run()
    charge, _ = release(run, place)
    line = quality_check(run, place).words
    assert "share of rows that noise moves to a wrong cell, at most, in 95 of 100 releases" in line
    (only,) = read_report(Desk(place.desk(charge.charge_id)).report_json).fidelity.interest
    assert only.typical_tv > USABLE_TV  # two hundred people, by the budget of this release
    assert f"ward x smoker {only.bound95_tv:.1%} (swamped by noise: NOT usable)." in line
