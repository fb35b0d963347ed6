"""Raw snapshots go when the rule says so and no charge still needs them."""

from __future__ import annotations

import os

import pytest

from include.data.errors import SnapshotError
from include.errors import CuSynError
from include.settings import load_settings
from include.stages.budget_eval import budget_eval
from include.stages.load import load
from include.stages.publish import publish
from include.stages.quality_check import quality_check
from include.stages.retention import prune_snapshots
from include.stages.store import snapshot_store
from include.stages.synthesize import synthesize
from include.stages.validate import validate


def age(place, snapshot_id: str) -> None:
    ref = snapshot_store(place.settings).open(snapshot_id)
    os.utime(ref.path.parent / "meta.json", (0, 0))


def test_a_snapshot_goes_only_when_its_charge_is_measured(place, make_run):
    run = make_run()
    snapshot_id = load(run, place)
    assert prune_snapshots(place, 30) == []
    budget_eval(run, place, snapshot_id)
    age(place, snapshot_id)
    assert prune_snapshots(place, 30) == []  # reserved: still to be measured on it
    synthesize(run, place)
    assert prune_snapshots(place, 30) == [snapshot_id]
    with pytest.raises(SnapshotError, match="deleted"):
        snapshot_store(place.settings).open(snapshot_id)
    assert prune_snapshots(place, 30) == []


def test_a_cleared_run_returns_its_release_after_the_raw_data_are_gone(place, make_run):
    def through(run):
        snapshot_id = load(run, place)
        checks = validate(run, place, snapshot_id)
        charge = budget_eval(run, place, snapshot_id)
        synthesize(run, place)
        quality_check(run, place)
        return snapshot_id, checks, charge.charge_id, publish(run, place).release_id

    snapshot_id, checks, *first = through(make_run())
    assert checks
    age(place, snapshot_id)
    assert prune_snapshots(place, 30) == [snapshot_id]
    spent = [pool.spent_pico for pool in place.reader.pools()]
    again_id, none, *second = through(make_run(attempt=2))
    assert (again_id, none, second) == (snapshot_id, [], first)
    assert [pool.spent_pico for pool in place.reader.pools()] == spent


def test_the_same_content_for_another_period_comes_back_under_its_id(place, make_run):
    run = make_run()
    snapshot_id = load(run, place)
    age(place, snapshot_id)
    assert prune_snapshots(place, 30) == [snapshot_id]
    later = make_run(run_id="run-2", period="2002-12-31")
    assert load(later, place) == snapshot_id
    assert validate(later, place, snapshot_id)


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "0", "1e99"])
def test_a_rule_that_is_no_number_of_days_is_refused(monkeypatch, text):
    monkeypatch.setenv("CUSYN_SNAPSHOT_DAYS", text)
    with pytest.raises(CuSynError, match="CUSYN_SNAPSHOT_DAYS is not a number of days"):
        load_settings()
    monkeypatch.setenv("CUSYN_SNAPSHOT_DAYS", "90")
    assert load_settings().snapshot_days == 90
