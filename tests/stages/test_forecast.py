"""How far the schedules go: dates already released, refusals, two releases on one pool."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from include.stages.budget_eval import budget_eval
from include.stages.forecast import forecast, forecast_files
from tests.clinic import RELEASE

TODAY = dt.date(2002, 1, 1)


def schedule(place, text: str, name: str = "wards") -> None:
    body = RELEASE.replace("schedule: {dates: [2001-12-31, 2002-12-31, 2003-12-31]}", text)
    path = place.settings.config_dir / "releases" / f"{name}.yaml"
    path.write_text(body.replace("release: wards", f"release: {name}"))


def run_of(place, name: str):
    from include.stages.planning import run_of_file

    return run_of_file(place.settings.config_dir / "releases" / f"{name}.yaml", place.settings)


def test_a_list_of_dates_that_fits(place, make_run):
    [outlook] = forecast([run_of(place, "wards")], place.reader, TODAY)
    assert (outlook.runs, outlook.refused_on) == (3, None)
    assert outlook.words == "wards: all 3 releases up to 2003-12-31 fit"


def test_a_date_already_released_is_not_counted_again(place, make_run):
    budget_eval(make_run(), place, None)
    [outlook] = forecast([run_of(place, "wards")], place.reader, TODAY)
    assert outlook.runs == 2


def test_a_monthly_schedule_names_the_date_of_its_refusal(place):
    schedule(place, "schedule: '@monthly'")
    [outlook] = forecast([run_of(place, "wards")], place.reader, TODAY)
    # The user's pool of epsilon 2 holds rho .0539; a release of epsilon 1 costs .01497.
    # The fourth is negotiated down to all that is left, so the fifth is refused.
    assert (outlook.runs, outlook.refused_on) == (4, "2002-06-01")


def test_two_schedules_on_one_pool_share_it(place):
    schedule(place, "schedule: '@monthly'")
    schedule(place, "schedule: '@yearly'", name="yearly")
    alone = forecast([run_of(place, "wards")], place.reader, TODAY)[0].runs
    both = forecast([run_of(place, "wards"), run_of(place, "yearly")], place.reader, TODAY)
    assert sum(outlook.runs for outlook in both) <= alone + 1
    assert all(outlook.refused_on for outlook in both)


def test_a_release_without_a_schedule_says_how_many_fit_now(place):
    schedule(place, "schedule: null")
    [outlook] = forecast([run_of(place, "wards")], place.reader, TODAY)
    assert outlook.words == "wards: no date is scheduled; 3 releases of its size fit now"


def test_a_broken_file_is_named_and_stops_no_other(place):
    schedule(place, "schedule: '@yearly'", name="yearly")
    (place.settings.config_dir / "releases" / "torn.yaml").write_text("release: torn\n")
    [wards, yearly, torn] = forecast_files(place.settings, place.reader, TODAY)
    assert (wards.release, yearly.release) == ("wards", "yearly") and wards.runs and yearly.runs
    assert torn.words.startswith("torn: left out of the forecast: releases/torn.yaml: ")
    assert torn.to_dict()["fault"] and not wards.to_dict()["fault"]


def test_a_release_that_no_plan_fits_is_named_and_stops_no_other(place):
    run = run_of(place, "wards")
    options = {"rounds": 1, "max_model_mb": 0.00001}
    huge = replace(
        run, release=run.release.model_copy(update={"release": "huge", "options": options})
    )
    first, wards = forecast([huge, run], place.reader, TODAY)
    assert (
        first.words.startswith("huge: left out of the forecast: ") and "max_model_mb" in first.fault
    )
    assert wards.runs == 3
