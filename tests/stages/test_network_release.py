"""A release by CSAPrivBayes through all six stages, and the sentences that stop one before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from include.config import ConfigError
from include.publishing.verify import sound, verify_package
from include.stages.budget_eval import budget_eval
from include.stages.load import load
from include.stages.publish import publish
from include.stages.quality_check import quality_check
from include.stages.synthesize import synthesize
from include.stages.validate import validate
from tests.clinic import BUDGETS, DATASET, RELEASE

NETWORK = (
    RELEASE.replace("mechanism: mwem_pgm", "mechanism: csa_privbayes")
    .replace("interest: [[ward, smoker]]\noptions: {rounds: 1}", "options: {sensitive: smoker}")
    # One pure table of all three columns is dear in rho: the clinic's pools count in it.
    .replace('epsilon: "1"', 'epsilon: "0.4"')
    .replace('accept_at_least: "0.5"', 'accept_at_least: "0.4"')
)


def write(place, text: str, dataset: str = "") -> None:
    folder = place.settings.config_dir
    (folder / "releases" / "wards.yaml").write_text(text)
    if dataset:
        source = place.settings.project_root / "clinic.parquet"
        (folder / "datasets" / "clinic.yaml").write_text(dataset.replace("SOURCE", str(source)))


def release(run, place):
    snapshot_id = load(run, place)
    validate(run, place, snapshot_id)
    charge = budget_eval(run, place, snapshot_id)
    synthesize(run, place)
    quality_check(run, place)
    return charge, publish(run, place)


def statement(published) -> dict:
    package = json.loads((Path(published.uri) / "datapackage.json").read_text())
    return package["dp"]["statement"]


def test_a_pure_release_is_paid_in_rho_published_and_states_the_attribute_level(place, make_run):
    write(place, NETWORK)
    charge, published = release(make_run(), place)
    assert charge.granted_pico == 4 * 10**11
    found = statement(published)
    assert found["variant"] == "Pure DP"
    assert found["parameters"]["delta"] == "0"
    assert 0.3999 < float(found["parameters"]["epsilon_pure"]) <= 0.4
    told = found["attribute_level"]
    assert told["attribute"] == "smoker"
    assert 0 < float(told["ex_post_loss_S"]) <= float(told["a_priori_bound"]) <= 0.8
    assert "cannot be inferred" in told["not"]
    assert sound(verify_package(Path(published.uri)))


def test_a_pool_of_epsilon_is_charged_the_pure_epsilon(monkeypatch, request):
    """The dearest pure plan in rho fits an additive pool at its face value."""
    additive = BUDGETS.replace('delta: "1e-9"', 'delta: "1e-9", accounting: epsilon')
    monkeypatch.setattr("tests.clinic.BUDGETS", additive)
    place, make_run = (request.getfixturevalue(name) for name in ("place", "make_run"))
    write(place, NETWORK.replace('"0.4"', '"1"'))
    charge, published = release(make_run(), place)
    assert charge.granted_pico == 10**12
    pure = statement(published)["parameters"]["epsilon_pure"]
    spent = {pool.kind: pool.spent_pico for pool in place.reader.pools()}
    assert spent["dataset"] == int(float(pure) * 10**12 + 0.5)
    assert 10**12 - 10**6 <= spent["dataset"] <= 10**12


def test_a_tag_in_the_schema_names_the_attribute(place, make_run):
    tagged = DATASET.replace("smoker: {type: boolean}", "smoker: {type: boolean, sensitive: true}")
    write(place, NETWORK.replace("options: {sensitive: smoker}", ""), tagged)
    _, published = release(make_run(), place)
    assert statement(published)["attribute_level"]["attribute"] == "smoker"


def test_gaussian_tables_and_privbayes_state_no_attribute_level(place, make_run):
    write(place, NETWORK.replace("smoker}", "smoker, noise: gaussian}"))
    _, published = release(make_run(), place)
    found = statement(published)
    assert found["variant"] == "Zero-concentrated DP"
    assert "attribute_level" not in found


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{sensitive: smoker}", "{}", "needs to know the sensitive attribute"),
        ("{sensitive: smoker}", "{sensitive: smokes}", "'smoker'?"),
        ("{sensitive: smoker}", "{sensitive: stay}", "not categorical"),
    ],
)
def test_faults_of_the_declaration_stop_it_before_anything_runs(place, make_run, old, new, said):
    write(place, NETWORK.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        make_run()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_several_tags_do_not_name_one_attribute(place, make_run):
    both = DATASET.replace("type: boolean", "type: boolean, sensitive: true").replace(
        "type: category", "sensitive: true, type: category"
    )
    write(place, NETWORK.replace("options: {sensitive: smoker}", ""), both)
    with pytest.raises(ConfigError, match="needs to know the sensitive attribute"):
        make_run()
