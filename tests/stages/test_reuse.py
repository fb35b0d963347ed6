"""A second release of the same snapshot draws on the first one, where the dataset says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from include.errors import CuSynError
from include.stages.budget_eval import budget_eval
from include.stages.desk import Desk
from include.stages.load import load
from include.stages.sealed import sealed_transcript
from include.stages.synthesize import synthesize
from tests.clinic import RELEASE

from .test_stages import opened


@pytest.fixture(params=["off", "dataset"])
def policy(request, settings):
    """The clinic under one of the two policies; to be asked for before it is registered."""
    file = settings.config_dir / "datasets" / "clinic.yaml"
    file.write_text(file.read_text() + f"reuse: {request.param}\n")
    return request.param


def another(make_run):
    run = make_run(run_id="run-2", period="2002-12-31")
    return replace(run, release=run.release.model_copy(update={"release": "again"}))


def made(run, place):
    charge = budget_eval(run, place, load(run, place))
    synthesize(run, place)
    charge = place.reader.charge(charge.charge_id)
    desk = Desk(place.desk(charge.charge_id))
    return charge, sealed_transcript(charge, desk), desk


def test_only_the_declared_policy_draws_on_earlier_answers(policy, place, make_run):
    first, transcript, _ = made(make_run(), place)
    second, later, desk = made(another(make_run), place)
    assert second.snapshot_id == first.snapshot_id
    assert later.earlier == ((transcript.digest,) if policy == "dataset" else ())
    assert second.amounts_pico == first.amounts_pico  # what is measured anew is paid in full
    before = desk.table.read_bytes()
    desk.table.unlink()
    synthesize(another(make_run), place)  # the same table again, from the same transcripts
    assert desk.table.read_bytes() == before


@pytest.mark.parametrize("policy", ["dataset"], indirect=True)
def test_a_resumed_measurement_draws_on_what_was_sealed_before_it_was_opened(
    policy, place, make_run
):
    _, transcript, _ = made(make_run(), place)
    charge = opened(place, lambda **changes: replace(another(make_run), **changes), rounds=1)
    third = replace(another(make_run), period="2003-12-31", run_id="run-3")
    made(third, place)  # sealed after the interrupted one was opened
    synthesize(replace(another(make_run), attempt=2), place)
    found = place.reader.charge(charge.charge_id)
    resumed = sealed_transcript(found, Desk(place.desk(charge.charge_id)))
    assert resumed.earlier == (transcript.digest,)


@pytest.mark.parametrize("policy", ["dataset"], indirect=True)
def test_a_withheld_release_is_not_drawn_on(policy, place, make_run):
    first, _, _ = made(make_run(), place)
    place.ledger.withhold(first.charge_id, "the steward said no")
    _, later, _ = made(another(make_run), place)
    assert later.earlier == ()


def test_a_weighted_workload_reaches_the_plan(place, make_run):
    path = place.settings.config_dir / "releases" / "wards.yaml"
    weighted = "workload: [[ward, stay], {columns: [stay, smoker], weight: 3}]"
    path.write_text(RELEASE + weighted + "\n")
    charge, _, _ = made(make_run(), place)
    assert charge.plan["task"]["workload"] == [
        {"columns": ["ward", "stay"], "weight": 1.0},
        {"columns": ["stay", "smoker"], "weight": 3.0},
    ]


@pytest.mark.parametrize("policy", ["dataset"], indirect=True)
def test_a_lost_earlier_transcript_is_told_of_before_anything_is_spent(policy, place, make_run):
    first, transcript, desk = made(make_run(), place)
    lost = desk.transcript(transcript.digest)
    kept = lost.read_bytes()
    lost.unlink()
    run = another(make_run)
    charge = budget_eval(run, place, load(run, place))
    with pytest.raises(CuSynError, match=f"{first.charge_id}: its sealed transcript .* is missing"):
        synthesize(run, place)
    assert place.reader.charge(charge.charge_id).state == "reserved"
    lost.write_bytes(kept)
    synthesize(run, place)
    assert place.reader.charge(charge.charge_id).state == "sealed"
