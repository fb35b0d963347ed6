"""Bins by private quantiles through all six stages: paid, resumed, stated, refused where wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from include.accounting import ONE, compose, event_from_dict
from include.config import ConfigError
from include.publishing.verify import sound, verify_package
from include.stages.budget_eval import budget_eval
from include.stages.desk import Desk
from include.stages.load import load
from include.stages.planning import dry_run
from include.stages.synthesize import synthesize
from include.stages.task import schema_of
from include.synthesis.transcript import Transcript
from tests.clinic import DATASET
from tests.stages.test_network_release import NETWORK, release, statement, write

FINE = DATASET.replace("bins: [0, 3, 6], ", "")  # ten levels to choose edges from
BINNED = NETWORK.replace("{sensitive: smoker}", "{sensitive: smoker, quantile_bins: {stay: 4}}")


@pytest.fixture(autouse=True)
def fine_grid(monkeypatch):
    """Registered with the finer declaration: before the workplace is made."""
    monkeypatch.setattr("tests.clinic.DATASET", FINE)


def begun(place, charge) -> list[list]:
    entries = place.reader.entries(charge.charge_id)
    return [entry.facts["events"] for entry in entries if entry.kind == "begin_round"]


def test_edges_are_paid_journalled_and_stated_as_private_outputs(place, make_run):
    write(place, BINNED)
    charge, published = release(make_run(), place)
    rounds = begun(place, charge)
    assert [event["label"] for event in rounds[1]] == ["bins"] * 3
    paid = compose([event_from_dict(event) for event in rounds[1]])
    assert paid.epsilon_pure_pico == pytest.approx(0.04 * ONE, rel=1e-6)
    found = statement(published)
    told = found["private_bins"]
    assert int(float(told["rho"]) * ONE + 0.5) == paid.rho_pico
    assert int(float(told["epsilon_pure"]) * ONE + 0.5) == paid.epsilon_pure_pico
    (stay,) = told["columns"]
    assert stay["column"] == "stay"
    assert len(stay["bins"]) == 4
    assert stay["bins"][0].startswith("0")
    assert stay["bins"][-1].endswith("9")
    assert "private outputs" in told["meaning"]
    sources = {item["column"]: item["source"] for item in found["domains"]}
    assert "4 bins selected from it privately" in sources["stay"]
    assert sources["ward"] == "declared by the data steward; not learnt from the data"
    assert sound(verify_package(Path(published.uri)))


def test_report_readme_and_shares_tell_it_too(place, make_run):
    write(place, BINNED)
    _, published = release(make_run(), place)
    folder = Path(published.uri)
    html = (folder / "report.html").read_text(encoding="utf-8")
    assert "Bins selected privately" in html
    assert "private outputs" in (folder / "README.md").read_text(encoding="utf-8")
    package = json.loads((folder / "datapackage.json").read_text())["dp"]
    shares = {share["purpose"]: share["amount"] for share in package["budget"]["shares"]}
    assert shares["edges of bins"] == package["statement"]["private_bins"]["rho"]
    tuning = package["implementation"]["preprocessing_and_hyperparameter_tuning"]
    assert "edges of the bins of stay were selected" in tuning


def test_rows_lie_on_the_declared_grid_and_the_missing_level_stays(place, make_run):
    write(place, BINNED)
    charge, published = release(make_run(), place)
    table = pd.read_parquet(Path(published.uri) / "data.parquet")
    assert set(table["stay"].dropna()) <= set(range(10))
    assert table["stay"].isna().any()  # a quarter of the rows
    codes = np.load(Desk(place.desk(charge.charge_id)).codes)
    assert codes[:, list(schema_of(make_run()).domain).index("stay")].max() <= 10


def test_a_release_without_the_option_states_none(place, make_run):
    write(place, NETWORK)
    _, published = release(make_run(), place)
    assert "private_bins" not in statement(published)
    assert "Bins selected" not in (Path(published.uri) / "report.html").read_text(encoding="utf-8")


def test_a_crash_after_the_edges_resumes_with_them_and_one_inside_burns_them(
    place, make_run, monkeypatch
):
    """The answered edges are read from the transcript; a lost selection leaves equal bins."""
    write(place, BINNED)
    honest = Desk.write_round
    for period, crash in (("2001-12-31", 3), ("2002-12-31", 2)):
        run = make_run(period=period, run_id=f"run-{period}")
        snapshot = load(run, place)
        charge = budget_eval(run, place, snapshot)

        def dying(self, number, payload, crash=crash):
            if number == crash:
                raise KeyboardInterrupt
            return honest(self, number, payload)

        with monkeypatch.context() as patch:
            patch.setattr(Desk, "write_round", dying)
            with pytest.raises(KeyboardInterrupt):
                synthesize(run, place)
        done = synthesize(make_run(period=period, run_id=f"run-{period}", attempt=2), place)
        desk = Desk(place.desk(charge.charge_id))
        transcript = Transcript.from_bytes(desk.transcript(done.transcript_digest).read_bytes())
        edges = [edge for turn in transcript.rounds for edge in turn.edges]
        assert len(edges) == (3 if crash == 3 else 0)
        assert [e.label for e in transcript.events].count("bins") == 3
        assert [event["label"] for event in begun(place, charge)[1]] == ["bins"] * 3
        assert len(begun(place, charge)[-1]) == 1  # a table: the edges are asked for once


def test_the_dry_run_prices_it_like_the_release(place, make_run):
    write(place, BINNED)
    told = dry_run(make_run(), place.reader.pools()).to_dict()["plan"]
    assert [event["label"] for event in told["events"]].count("bins") == 3
    assert told["task"]["ordered"] == {"stay": 10}
    assert told["parameters"]["bins"] == pytest.approx(0.04 / 3, rel=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{stay: 4}", "{stays: 4}", "unknown column 'stays'; did you mean 'stay'?"),
        ("{stay: 4}", "{ward: 2}", "is of type category, whose levels have no order"),
        ("{stay: 4}", "{smoker: 2}", "is of type boolean"),
        ("{stay: 4}", "{stay: 1}", "ask for 2 to 9"),
        ("{stay: 4}", "{stay: 10}", "ask for 2 to 9"),
        ("{stay: 4}", "{stay: -3}", "ask for 2 to 9"),
        ("{stay: 4}", "{stay: 2.5}", "write a whole number"),
        ("{stay: 4}", "{stay: yes}", "write a whole number"),
        ("{stay: 4}", "{}", "write quantile_bins: {age: 8}"),
        ("{stay: 4}", "4", "write quantile_bins: {age: 8}"),
        ("{stay: 4}", "[stay]", "write quantile_bins: {age: 8}"),
        ("csa_privbayes", "aim", "aim measures the declared bins as they are"),
        ("csa_privbayes", "mwem_pgm", "mwem_pgm measures the declared bins as they are"),
        ("rows: 200", "columns: [ward, smoker]", "'stay' is left out by `columns:`"),
    ],
)
def test_faults_are_one_sentence_before_anything_runs(place, make_run, old, new, said):
    assert old in BINNED
    write(place, BINNED.replace(old, new))
    with pytest.raises(ConfigError) as caught:
        make_run()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_too_few_declared_levels_are_told_as_such(place, make_run):
    write(place, BINNED, DATASET.replace("[0, 3, 6]", "[0, 5]"))
    with pytest.raises(ConfigError, match="declared with 2 levels, too few to gather"):
        make_run()


def test_a_share_for_bins_without_bins_is_refused_when_the_file_is_read(place, make_run):
    write(place, NETWORK.replace("{sensitive: smoker}", "{sensitive: smoker, bin_share: 0.1}"))
    with pytest.raises(ConfigError, match=r"options\.bin_share: needs"):
        make_run()
