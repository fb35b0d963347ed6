"""What would be found only after the budget is spent is refused before it is."""

from __future__ import annotations

import re

import pytest

from include.config.errors import ConfigError
from include.stages.budget_eval import budget_eval
from include.stages.load import load
from include.stages.planning import run_of_file
from include.stages.publish import publish
from include.stages.quality_check import quality_check
from include.stages.synthesize import synthesize
from tests.clinic import RELEASE
from tests.stages.test_stages import edit, release


def untouched(place) -> bool:
    return all(pool.spent_pico == pool.held_pico == 0 for pool in place.reader.pools())


@pytest.mark.parametrize("uri", ["protected", "work/x", "keys", "checkpoints", "a/../protected"])
def test_no_package_goes_where_readers_must_not_look(place, make_run, uri):
    run = make_run()
    snapshot = load(run, place)
    edit(place, "uri: releases", f"uri: {uri}")
    told = r"publish\.uri: '.*' lies in the .*; name a folder"
    for stage in (
        lambda: load(make_run(), place),
        lambda: budget_eval(make_run(), place, snapshot),
    ):
        with pytest.raises(ConfigError, match=told):
            stage()
    with pytest.raises(ConfigError, match=r"^releases/wards\.yaml: publish\.uri: "):
        run_of_file(place.settings.config_dir / "releases" / "wards.yaml", place.settings)
    assert untouched(place)


def test_a_destination_edited_after_the_payment_is_refused_as_well(place, make_run):
    run = make_run()
    budget_eval(run, place, load(run, place))
    synthesize(run, place)
    quality_check(run, place)
    edit(place, "uri: releases", "uri: protected/x")
    with pytest.raises(ConfigError, match=r"publish\.uri: '.*' lies in the protected store"):
        publish(make_run(), place)
    assert not (place.settings.protected_dir / "x").exists()


def test_only_an_earlier_release_of_the_same_name_is_replaced(place, make_run):
    _, first = release(make_run(), place)
    spent = [pool.spent_pico for pool in place.reader.pools()]
    for wrong, changes in {
        "is not in the ledger": {"supersedes": "nope"},
        "is a release of wards": {"supersedes": first.release_id, "release": "other"},
    }.items():
        run = make_run(period="2002-12-31", run_id="run-2")
        run = make_run(
            period="2002-12-31", run_id="run-2", release=run.release.model_copy(update=changes)
        )
        snapshot = load(run, place)
        with pytest.raises(ConfigError, match=f"supersedes: .* {wrong}"):
            budget_eval(run, place, snapshot)
    assert [pool.spent_pico for pool in place.reader.pools()] == spent
    path = place.settings.config_dir / "releases" / "wards.yaml"
    path.write_text(RELEASE + f"supersedes: {first.release_id}\n")
    run = make_run(period="2002-12-31", run_id="run-2")
    assert budget_eval(run, place, load(run, place)).state == "reserved"


def test_a_delta_that_is_not_the_registered_one_is_named(place, make_run):
    budgets = place.settings.config_dir / "budgets.yaml"
    budgets.write_text(budgets.read_text().replace("1e-9", "1e-6"))
    told = (
        r"^budgets\.yaml: populations\.patients\.delta: 1e-6 differs from 1e-9, which the ledger "
    )
    run = make_run()
    snapshot = load(run, place)
    with pytest.raises(ConfigError, match=told):
        budget_eval(run, place, snapshot)
    assert untouched(place)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('{epsilon: "3"', '{epsilon: "5"', "populations.patients.epsilon: 5 differs from 3,"),
        (
            'per_operation_limit: "2"',
            'per_operation_limit: "1"',
            "populations.patients.per_operation_limit: 1 differs from 2,",
        ),
        (
            ', per_operation_limit: "2"',
            "",
            "populations.patients.per_operation_limit: no limit differs from 2,",
        ),
        (
            'delta: "1e-9"',
            'delta: "1e-9", accounting: epsilon',
            "populations.patients.accounting: epsilon differs from zcdp,",
        ),
        ('{epsilon: "2"', '{epsilon: "9"', "users.team.datasets.clinic.epsilon: 9 differs from 2,"),
        (
            'per_request: "1"',
            'per_request: "0.5"',
            "users.team.datasets.clinic.per_request: 0.5 differs from 1,",
        ),
    ],
)
def test_a_budget_that_is_not_the_registered_one_is_refused_before_it_counts(
    place, make_run, old, new, told
):
    path = place.settings.config_dir / "budgets.yaml"
    assert old in path.read_text()
    snapshot = load(make_run(), place)
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ConfigError, match=f"^budgets.yaml: {told} which the .*; restore it"):
        budget_eval(make_run(), place, snapshot)
    assert untouched(place)


def test_a_pool_that_is_declared_and_not_registered_says_so(place, make_run):
    path = place.settings.config_dir / "budgets.yaml"
    team = '  team: {datasets: {clinic: {epsilon: "2"'
    path.write_text(path.read_text().replace(team, f"{team}}}}}}}\n{team.replace('team', 'new')}"))
    release = place.settings.config_dir / "releases" / "wards.yaml"
    release.write_text(RELEASE.replace("requester: team", "requester: new"))
    run = make_run(scheduled=True)
    told = r"users\.new\.datasets\.clinic: is not registered in the ledger; run .*register"
    with pytest.raises(ConfigError, match=told):
        budget_eval(run, place, load(run, place))
    assert untouched(place)


def test_a_decided_charge_does_not_mind_what_budgets_say_later(place, make_run):
    charge = budget_eval(make_run(), place, load(make_run(), place))
    path = place.settings.config_dir / "budgets.yaml"
    path.write_text(path.read_text().replace('{epsilon: "3"', '{epsilon: "5"'))
    assert budget_eval(make_run(), place, charge.snapshot_id).charge_id == charge.charge_id


def test_a_release_in_two_files_is_named_and_a_draft_elsewhere_is_not(place, tmp_path):
    folder = place.settings.config_dir / "releases"
    (folder / "copy.yaml").write_text(RELEASE)
    told = "releases/wards.yaml: release: 'wards' is also declared in releases/copy.yaml; rename"
    with pytest.raises(ConfigError, match=re.escape(told)):
        run_of_file(folder / "wards.yaml", place.settings)
    draft = tmp_path / "draft.yaml"
    draft.write_text(RELEASE)
    assert run_of_file(draft, place.settings).release.release == "wards"
