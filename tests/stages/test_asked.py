"""After the seal the files must still say what was asked: no other claim, no relabelled table."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from include.budget.migrations import migrate
from include.budget.store import connect
from include.config.loader import load_budgets, load_dataset
from include.stages.approval import approve
from include.stages.asked import DeclarationChanged
from include.stages.budget_eval import budget_eval
from include.stages.declared import NotAsRegistered
from include.stages.desk import Desk
from include.stages.ledger import open_ledger
from include.stages.load import load
from include.stages.publish import publish
from include.stages.quality_check import quality_check
from include.stages.register import register
from include.stages.run import Workplace
from include.stages.synthesize import synthesize
from include.stages.validate import validate

from .test_stages import release

POOL = 'clinic: {epsilon: "2", per_request: "1"}'
CLINIC, WARDS = "datasets/clinic.yaml", "releases/wards.yaml"
EDITS = [
    (CLINIC, "max_rows: 1}", "id_column: who, max_rows: 200}", "id_column in its file"),
    (CLINIC, "what: person", "what: household", "privacy_unit.what in its file"),
    (CLINIC, "expected_rows: 400", "expected_rows: 400\nstrict: true", "strict in its file"),
    (CLINIC, "[patients]", "[nurses]", "populations in its file"),
    (
        CLINIC,
        "[north, south, east]",
        "[south, north, east]",
        "columns in its file or in that of release wards",
    ),
    (
        CLINIC,
        "min: 0, max: 9, bins: [0, 3, 6]",
        "min: 100, max: 109, bins: [100, 103, 106]",
        "columns in its file or in that of release wards",
    ),
    (WARDS, "rows: 200", "rows: 77", "rows in its file"),
    (WARDS, "rows: 200\n", "", "rows in its file"),
    (WARDS, 'value: "2001"', 'value: "2002"', "partition in its file"),
    (WARDS, "requester: team", "requester: others", "requester in its file"),
    (WARDS, "dataset: clinic", "dataset: elsewhere", "dataset in its file"),
]
NAMED = [edit[-1].split()[0] + f"-{number}" for number, edit in enumerate(EDITS)]


@pytest.fixture
def clinic(settings, place):
    """The clinic with a second population, and a copy of it with another bound."""
    budgets = settings.config_dir / "budgets.yaml"
    told = budgets.read_text().replace(POOL, f'{POOL}, elsewhere: {{epsilon: "2"}}')
    told = told.replace("\nusers:", '\n  nurses: {epsilon: "3", delta: "1e-9"}\nusers:')
    others = f"\nusers:\n  others: {{datasets: {{{POOL}}}}}"
    budgets.write_text(told.replace("\nusers:", others))
    told = (settings.config_dir / CLINIC).read_text()
    other = told.replace("dataset: clinic", "dataset: elsewhere").replace("patients", "nurses")
    (settings.config_dir / "datasets" / "elsewhere.yaml").write_text(other)
    both = [load_dataset(name, settings.config_dir) for name in ("clinic", "elsewhere")]
    register(place.ledger, load_budgets(settings.config_dir), both, actor="test")
    return place


def sealed(place, make_run):
    run = make_run()
    snapshot_id = load(run, place)
    validate(run, place, snapshot_id)
    charge = budget_eval(run, place, snapshot_id)
    synthesize(run, place)
    return place.reader.charge(charge.charge_id)


def edited(place, file: str, old: str, new: str) -> tuple[Path, str]:
    path = place.settings.config_dir / file
    told = path.read_text()
    assert old in told
    path.write_text(told.replace(old, new))
    return path, told


def refit(run, place):
    """Run synthesize where its table is gone and has to be made again."""
    (charge,) = place.reader.charges()
    Desk(place.desk(charge.charge_id)).table.unlink(missing_ok=True)
    return synthesize(run, place)


STEPS = {
    "refit": refit,
    "quality_check": quality_check,
    "approve": lambda run, place: approve(run, place, "berta"),
    "publish": publish,
}


@pytest.mark.parametrize(("file", "old", "new", "key"), EDITS, ids=NAMED)
def test_no_step_after_the_seal_runs_on_another_declaration(clinic, make_run, file, old, new, key):
    charge = sealed(clinic, make_run)
    whose = "release wards: " if file == WARDS else "dataset clinic: "
    sentence = f"{whose}{key} changed since charge {charge.charge_id} was decided: restore it, or"
    for steps in (("refit", "quality_check"), ("approve", "publish")):
        path, told = edited(clinic, file, old, new)
        for step in steps:
            with pytest.raises(DeclarationChanged) as refusal:
                STEPS[step](make_run(), clinic)
            assert str(refusal.value).startswith(sentence), step
        path.write_text(told)
        synthesize(make_run(), clinic)
        quality_check(make_run(), clinic)
    assert clinic.reader.charge(charge.charge_id).state == "sealed"
    assert not (clinic.settings.project_root / "releases").exists()


def test_max_rows_is_named_where_only_the_bound_changed(settings, clinic, make_run):
    source = settings.project_root / "clinic.parquet"
    frame = pd.read_parquet(source)
    frame.assign(who=range(len(frame))).to_parquet(source)
    name = "by_person"
    told = (settings.config_dir / CLINIC).read_text().replace("dataset: clinic", f"dataset: {name}")
    two = told.replace("max_rows: 1}", "id_column: who, max_rows: 2}")
    path = settings.config_dir / "datasets" / f"{name}.yaml"
    path.write_text(two)
    budgets = settings.config_dir / "budgets.yaml"
    budgets.write_text(budgets.read_text().replace(POOL, f'{POOL}, {name}: {{epsilon: "2"}}'))
    declared = [load_dataset(name, settings.config_dir)]
    register(clinic.ledger, load_budgets(settings.config_dir), declared, actor="test")
    edited(clinic, WARDS, "dataset: clinic", f"dataset: {name}")
    sealed(clinic, make_run)
    path.write_text(two.replace("max_rows: 2", "max_rows: 200"))
    with pytest.raises(DeclarationChanged, match=f"dataset {name}: max_rows in its file changed"):
        quality_check(make_run(), clinic)


def test_a_restored_file_completes_the_same_charge(clinic, make_run):
    charge = sealed(clinic, make_run)
    path, told = edited(clinic, CLINIC, "what: person", "what: household")
    for step in STEPS.values():
        with pytest.raises(Exception, match=r"what|quality_check"):
            step(make_run(), clinic)
    path.write_text(told)
    spent = [pool.spent_pico for pool in clinic.reader.pools()]
    again, published = release(make_run(), clinic)
    assert again.charge_id == charge.charge_id
    assert [pool.spent_pico for pool in clinic.reader.pools()] == spent
    manifest = json.loads((Path(published.uri) / "datapackage.json").read_text())
    assert manifest["dp"]["statement"]["unit_of_privacy"] == "person"


def test_what_the_sealed_plan_holds_may_change_for_later_periods(clinic, make_run):
    sealed(clinic, make_run)
    edited(clinic, WARDS, 'epsilon: "1"', 'epsilon: "0.75"')
    edited(clinic, WARDS, "rounds: 1", "rounds: 2")
    quality_check(make_run(), clinic)
    assert publish(make_run(), clinic).release_id


def test_a_published_release_is_still_returned_under_another_declaration(clinic, make_run):
    _, first = release(make_run(), clinic)
    edited(clinic, WARDS, "rows: 200", "rows: 77")
    assert publish(make_run(), clinic).release_id == first.release_id


@pytest.fixture
def bare(settings) -> Workplace:
    """A migrated ledger in which nothing is registered."""
    migrate(connect(settings.ledger_url, create=True))
    return Workplace(settings, open_ledger(settings, settings.ledger_url))


def enter(place) -> None:
    config = place.settings.config_dir
    register(place.ledger, load_budgets(config), [load_dataset("clinic", config)], actor="test")


HOUSEHOLD = "what in its file is 'household', but the unit of population patients is 'person'"


def test_a_dataset_of_another_unit_is_not_registered_and_nothing_is_entered(bare):
    edited(bare, CLINIC, "what: person", "what: household")
    with pytest.raises(NotAsRegistered, match=HOUSEHOLD):
        enter(bare)
    assert bare.reader.units() == {}
    edited(bare, "budgets.yaml", 'delta: "1e-9"', 'delta: "1e-9", privacy_unit: household')
    enter(bare)
    assert bare.reader.units() == {"patients": "household"}


def test_a_dataset_is_held_against_the_registered_unit_and_not_only_the_declared_one(bare):
    enter(bare)
    edited(bare, CLINIC, "what: person", "what: household")
    edited(bare, "budgets.yaml", 'delta: "1e-9"', 'delta: "1e-9", privacy_unit: household')
    with pytest.raises(NotAsRegistered, match=HOUSEHOLD):
        enter(bare)


@pytest.mark.parametrize("step", ["BudgetEval", "synthesize"])
def test_a_run_of_another_unit_is_refused(place, make_run, step):
    run = make_run()
    snapshot_id = load(run, place)
    if step == "synthesize":
        budget_eval(run, place, snapshot_id)
    edited(place, CLINIC, "what: person", "what: household")
    with pytest.raises((NotAsRegistered, DeclarationChanged), match=r"privacy_unit\.what"):
        if step == "BudgetEval":
            budget_eval(make_run(), place, snapshot_id)
        else:
            synthesize(make_run(), place)
    assert all(pool.spent_pico == 0 for pool in place.reader.pools())


def test_populations_of_their_own_binding_may_be_of_other_units_but_one_is_the_datasets(bare):
    edited(
        bare,
        CLINIC,
        "populations: [patients]",
        "populations:\n  homes: {id_column: home, max_rows: 6}\n"
        "  patients: {id_column: [home, person], max_rows: 2}",
    )
    homes = 'populations:\n  homes: {epsilon: "5", delta: "1e-9", privacy_unit: household}'
    edited(bare, "budgets.yaml", "populations:", homes)
    edited(bare, CLINIC, "what: person", "what: village")
    with pytest.raises(NotAsRegistered, match="'village', but the unit of population homes"):
        enter(bare)
    edited(bare, CLINIC, "what: village", "what: household")
    enter(bare)
    assert bare.reader.units() == {"homes": "household", "patients": "person"}
