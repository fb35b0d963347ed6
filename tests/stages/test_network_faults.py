"""Each bad input of a network release, through the stages: one sentence, nothing charged."""

from __future__ import annotations

import pandas as pd
import pytest

from include.errors import CuSynError
from include.stages.budget_eval import budget_eval
from include.stages.load import load
from tests.clinic import DATASET, write_source
from tests.stages.test_network_release import NETWORK, release, write

OPTIONS = "options: {sensitive: smoker"


def asking(**options: object) -> str:
    """Write the release with more options."""
    more = "".join(f", {name}: {value}" for name, value in options.items())
    return NETWORK.replace(OPTIONS, OPTIONS + more)


NOISY = "noisy_information"
FAULTS = {
    "no sensitive attribute": (
        NETWORK.replace("options: {sensitive: smoker}", ""),
        "needs to know the sensitive attribute",
    ),
    "not categorical": (NETWORK.replace("sensitive: smoker", "sensitive: stay"), "not categorical"),
    "k larger than the attributes": (asking(degree=3), "of 3 attributes each has at most 2 others"),
    "k out of range": (asking(degree=9), "degree"),
    "theta below": (asking(theta=-0.1, regions=NOISY), "theta"),
    "theta above": (asking(theta=11, regions=NOISY), "theta"),
    "theta no attribute reaches": (asking(theta=5, regions=NOISY), "all would be in region B"),
    "r of zero": (asking(sensitive_weight=0), "sensitive_weight"),
    "r above one": (asking(sensitive_weight=1.5), "sensitive_weight"),
    "everything in one region": (
        asking(sensitive_weight=0.5, force_sensitive_parent="true"),
        "everything is in region A",
    ),
    "everything in one region by theta": (
        asking(theta=0, regions=NOISY, degree=1),
        "everything is in region A",
    ),
    "one attribute": (
        NETWORK.replace("rows: 200", "columns: [smoker]"),
        "model at least two",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_it_is_told_in_one_sentence_before_spending(place, make_run, fault):
    text, said = FAULTS[fault]
    assert text != NETWORK
    write(place, text)
    refuse(place, make_run, said)


def refuse(place, make_run, said):
    with pytest.raises(CuSynError) as caught:
        run = make_run()
        budget_eval(run, place, load(run, place))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not place.reader.charges()


@pytest.mark.parametrize("option", [{"degree": 2}, {"force_sensitive_parent": "true"}])
def test_a_parent_set_above_the_memory_bound(monkeypatch, request, option):
    """Four thousand days times as many wards and smokers pass the smallest bound."""
    wards = ", ".join(f"w{number}" for number in range(4000))
    wide = DATASET.replace("[north, south, east]", f"[{wards}]").replace(
        "max: 9, bins: [0, 3, 6]", "max: 3999"
    )
    if "force_sensitive_parent" in option:  # the sensitive attribute itself is wide
        wide = wide.replace(
            "smoker: {type: boolean}", f"smoker: {{type: category, values: [{wards}]}}"
        )
    monkeypatch.setattr("tests.clinic.DATASET", wide)  # before it is registered
    place, make_run = (request.getfixturevalue(name) for name in ("place", "make_run"))
    write(place, asking(max_model_mb=1, **option))
    refuse(place, make_run, "the bound is 1 MB")


def test_an_attribute_declared_without_values(place, make_run):
    write(place, NETWORK, DATASET.replace("[north, south, east]", "[]"))
    refuse(place, make_run, "values is empty or not a list; write values: [a, b, ...]")


def test_an_attribute_that_is_empty_in_every_row_is_released_like_any_other(place, make_run):
    """To refuse it would tell of rows for free; a neighbour with one value ends the same way."""
    write(place, NETWORK.replace('"0.4"', '"0.2"'))
    source = place.settings.project_root / "clinic.parquet"
    write_source(source)
    table = pd.read_parquet(source)
    for period, values in (("2001-12-31", []), ("2002-12-31", [4.0])):
        table["stay"] = pd.Series(values + [None] * (len(table) - len(values)), dtype="float64")
        table.to_parquet(source)
        charge, published = release(make_run(period=period, run_id=period), place)
        assert charge.granted_pico == 2 * 10**11
        found = pd.read_parquet(f"{published.uri}/data.parquet")
        assert len(found) == 200
        assert found["stay"].isna().mean() > 0.5
