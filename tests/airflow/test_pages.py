"""The pages in the Airflow UI: behind the login, the ledger's own facts, safe with any name."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from include.stages.budget_eval import budget_eval
from include.stages.task import budget_request
from tests.clinic import make_run, place, settings
from tests.stages.test_stages import release

__all__ = ["make_run", "place", "settings"]


@pytest.fixture
def app(place, monkeypatch):
    """The plugin's application on the clinic's ledger."""
    database = place.settings.ledger_url.removeprefix("sqlite:///")
    connection = json.dumps({"conn_type": "sqlite", "host": database})
    monkeypatch.setenv("AIRFLOW_CONN_PRIVACY_LEDGER", connection)
    for name in ("CONFIG_DIR", "CHECKPOINTS_DIR"):
        monkeypatch.setenv(f"CUSYN_{name}", str(getattr(place.settings, name.lower())))
    from cusyn_airflow.ui.app import app

    yield app
    app.dependency_overrides.clear()


@pytest.fixture
def pages(app):
    """A client that is logged in."""
    from airflow.api_fastapi.core_api.security import get_user

    app.dependency_overrides[get_user] = lambda: object()
    return TestClient(app)


@pytest.mark.parametrize("path", ["/", "/charges/ch_1", "/charges/ch_1?page=2", "/nothing"])
def test_nobody_sees_a_page_without_a_login(app, path):
    answer = TestClient(app).get(path)
    assert answer.status_code in (401, 404)
    assert "patients" not in answer.text


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json"])
def test_no_api_documentation_is_served(pages, path):
    assert pages.get(path).status_code == 404


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nothing_can_be_written(pages, method):
    assert getattr(pages, method)("/").status_code == 405


def test_an_empty_ledger_says_what_to_do_next(pages):
    page = pages.get("/").text
    assert "No release has been asked for yet" in page
    assert "Not verified yet" in page
    assert "patients" in page


def test_the_page_shows_what_the_ledger_knows(pages, place, make_run):
    from include.stages.ledger import verify_ledger

    charge, published = release(make_run(), place)
    verify_ledger(place)
    page = pages.get("/").text
    for fact in (
        published.release_id,
        published.uri,
        f"charges/{charge.charge_id}",
        "/dags/release__wards/runs/run-1",
        "anna",
        "wards: all 2 releases up to 2003-12-31 fit",
        "checkpoints compared",
    ):
        assert fact in page
    one = pages.get(f"/charges/{charge.charge_id}").text
    for entry in place.reader.entries(charge.charge_id):
        assert entry.words.replace("'", "&#39;") in one
    assert "ward × smoker" in one


def test_a_withdrawn_release_says_so_on_its_charges_page(pages, place, make_run):
    charge, published = release(make_run(), place)
    path = f"/charges/{charge.charge_id}"
    assert "withdrawn</span>" not in pages.get(path).text
    place.ledger.withdraw(published.release_id, "a column was mislabelled", "anna")
    page = pages.get(path).text
    assert "withdrawn</span>" in page and "a column was mislabelled" in page


def test_a_broken_release_file_is_named_under_the_schedules(pages, place):
    (place.settings.config_dir / "releases" / "torn.yaml").write_text("release: torn\n")
    page = pages.get("/").text
    assert "torn: left out of the forecast: releases/torn.yaml: " in page
    assert "wards: all 3 releases up to 2003-12-31 fit" in page


def test_a_charge_that_was_never_opened_has_a_page(pages, place, make_run):
    reserved = budget_eval(make_run(), place, None)
    asked = budget_request(make_run(run_id="run-2", period="2002-12-31"), None)
    denied = place.ledger.reserve(
        replace(asked, epsilon_pico=9 * 10**12, accept_at_least_pico=9 * 10**12), _cost
    )
    for charge, state in ((reserved, "reserved"), (denied, "denied")):
        page = pages.get(f"/charges/{charge.charge_id}")
        assert page.status_code == 200
        assert f'<span class="state {state}">{state}</span>' in page.text


def test_names_are_text_and_never_markup(pages, place, make_run):
    budget_eval(replace(make_run(), period="<b>2001</b>", run_id="<i>&"), place, None)
    page = pages.get("/").text
    assert "<b>2001" not in page
    assert "&lt;b&gt;2001" in page
    assert "runs/%3Ci%3E%26" in page


def test_an_unknown_charge_is_a_plain_404(pages):
    answer = pages.get("/charges/ch_none")
    assert answer.status_code == 404
    assert "ch_none is not in the ledger" in answer.text


def test_a_missing_ledger_is_a_plain_503(pages, monkeypatch, tmp_path):
    connection = json.dumps({"conn_type": "sqlite", "host": str(tmp_path / "none.db")})
    monkeypatch.setenv("AIRFLOW_CONN_PRIVACY_LEDGER", connection)
    answer = pages.get("/")
    assert answer.status_code == 503
    assert "airflow db migrate" in answer.text


def test_hundreds_of_charges_are_shown_a_page_at_a_time(pages, place, make_run):
    request = budget_request(make_run(), None)
    for i in range(230):  # above every limit: denied, so the pools stay as they are
        asked = replace(request, key=f"k{i}", period=f"p{i}", epsilon_pico=9 * 10**12)
        place.ledger.reserve(asked, lambda epsilon: _cost(epsilon))
    start = time.process_time()
    first, last = pages.get("/").text, pages.get("/?page=3").text
    assert time.process_time() - start < 5
    assert (first.count("denied</span>"), last.count("denied</span>")) == (100, 30)
    assert "p229" in first
    assert "?page=2" in first
    assert "p0<" in last
    assert "older" not in last
    assert pages.get("/?page=4").text.count("denied</span>") == 0


def _cost(epsilon_pico: int):
    from include.accounting import Cost, rho_from_epsilon

    return Cost(rho_from_epsilon(epsilon_pico, 9), None)
