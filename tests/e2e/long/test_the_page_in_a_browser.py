"""The pages in a real browser: Debian's chromium, logged in to the real UI.

Without chromium or playwright these tests are skipped and say so: what they show is then not shown.
"""

from __future__ import annotations

import re
import shutil
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.e2e.client import Client
from tests.e2e.house import House
from tests.e2e.long.places import RELEASE

CHROMIUM = shutil.which("chromium")
playwright = pytest.importorskip(
    "playwright.sync_api",
    reason="NOT SHOWN: the pages in a browser; install requirements-browser.txt",
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        CHROMIUM is None, reason="NOT SHOWN: the pages in a browser; chromium is not installed"
    ),
]
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SECOND = 1000
PATIENCE = 60 * SECOND
MANY = 5000


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def cookies(chromium: Any, house: House) -> list[Any]:
    """What Airflow gives a viewer's browser who logs in by its own form."""
    context = chromium.new_context(base_url=house.airflow.url)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto("/")
    page.locator("input[name=username]").fill("viewer")
    page.locator("input[name=password]").fill(house.users["viewer"])
    page.locator("button[type=submit]").click()
    page.get_by_role("link", name="Dags").first.wait_for()
    found = list(context.cookies())
    context.close()
    return found


@pytest.fixture
def visit(chromium: Any, house: House, cookies: list[Any]) -> Iterator[Any]:
    """Open a page as the viewer, in a window of some width and colour scheme."""
    contexts = []

    def open_page(path: str, width: int = 1280, scheme: str = "light") -> Any:
        context = chromium.new_context(
            base_url=house.airflow.url,
            color_scheme=scheme,
            viewport={"width": width, "height": 800},
        )
        contexts.append(context)
        context.add_cookies(cookies)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def verified(house: House, alice: Client, released: str) -> Any:
    """A published charge, and a ledger that the nightly audit has verified."""
    alice.unpause("ledger_audit")
    status, answer = alice.trigger("ledger_audit")
    assert status == 200, answer
    assert alice.wait("ledger_audit", answer["dag_run_id"], 600) == "success"
    (charge,) = [one for one in house.rig.charges() if one.run_id == released]
    return charge


def test_the_menu_leads_to_the_page_and_its_links_to_run_log_and_charge(
    visit: Any, verified: Any
) -> None:
    ui = visit("/")
    ui.get_by_role("button", name="Browse").click()
    with ui.context.expect_page() as opened:
        ui.get_by_role("menuitem", name="Privacy budget").click()
    page = opened.value
    page.set_default_timeout(PATIENCE)
    page.get_by_role("heading", name="Budget pools").wait_for()
    assert page.get_by_text("keepers", exact=True).first.is_visible()
    assert page.get_by_text("verified", exact=True).is_visible()
    for link, place in (("run", ""), ("log", f"/tasks/{verified.task_id}")):
        row = page.get_by_role("row", name=verified.period).first
        row.get_by_role("link", name=link, exact=True).click()
        page.wait_for_url(f"**/dags/{RELEASE}/runs/*{place}*")
        page.get_by_text(RELEASE).first.wait_for()  # Airflow knows the run
        page.go_back()
        page.get_by_role("heading", name="Budget pools").wait_for()
    page.get_by_role("row", name=verified.period).first.get_by_role("link").first.click()
    page.get_by_role("heading", name="Journal").wait_for()
    assert verified.charge_id in page.content()


def test_the_log_behind_the_link_holds_the_decision(visit: Any, verified: Any) -> None:
    page = visit("/privacy-budget/")
    row = page.get_by_role("row", name=verified.period).first
    row.get_by_role("link", name="log", exact=True).click()
    page.get_by_text("BudgetEval: ").first.wait_for()


def test_a_charges_journal_stands_in_words(house: House, visit: Any, verified: Any) -> None:
    page = visit(f"/privacy-budget/charges/{verified.charge_id}")
    text = page.locator("main").inner_text()
    for entry in house.rig.reader().entries(verified.charge_id):
        assert entry.words in text


def test_the_tasks_button_leads_to_the_charge(visit: Any, verified: Any, released: str) -> None:
    page = visit(f"/dags/{RELEASE}/runs/{released}/tasks/publish/details")
    page.locator("a", has_text="Budget charge").click()
    page.get_by_role("heading", name="Journal").wait_for()
    assert verified.charge_id in page.content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_overflows_and_all_is_readable(
    visit: Any, verified: Any, width: int, scheme: str
) -> None:
    for path in ("/privacy-budget/", f"/privacy-budget/charges/{verified.charge_id}"):
        page = visit(path, width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.body.scrollWidth") <= width
        dark = page.evaluate(LUMINANCE, "background-color") < page.evaluate(LUMINANCE, "color")
        assert dark is (scheme == "dark")
        assert page.evaluate(WORST_CONTRAST) >= 4.5  # WCAG 2.1, level AA


LUMINANCE = """property => {
  const [r, g, b] = getComputedStyle(document.body).getPropertyValue(property)
    .match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
    .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b;
}"""
WORST_CONTRAST = """() => {
  const parts = text => text.match(/[\\d.]+/g).map(Number);
  const light = rgb => { const [r, g, b] = rgb.slice(0, 3).map(v => v / 255)
    .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b; };
  const ground = element => { for (let e = element; e; e = e.parentElement) {
    const found = parts(getComputedStyle(e).backgroundColor);
    if (found.length < 4 || found[3] > 0) return found; } return [255, 255, 255]; };
  let worst = 21;
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode, element = text.parentElement;
    if (!text.data.trim() || !element.getClientRects().length) continue;
    const [a, b] = [light(parts(getComputedStyle(element).color)), light(ground(element))];
    worst = Math.min(worst, (Math.max(a, b) + .05) / (Math.min(a, b) + .05));
  }
  return worst;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_keyboard_reaches_every_link_and_its_focus_shows(
    visit: Any, verified: Any, scheme: str
) -> None:
    page = visit("/privacy-budget/", scheme=scheme)
    links = page.locator("main a").count()
    reached = set()
    for _ in range(links + 3):
        page.keyboard.press("Tab")
        focus = page.evaluate(FOCUS)
        if focus is None:
            continue
        reached.add(focus["number"])
        assert focus["style"] != "none" and focus["width"] >= 2, focus
    assert len(reached) == links > 3


FOCUS = """() => {
  const element = document.activeElement, style = getComputedStyle(element);
  if (!element.matches('main a')) return null;
  return {number: [...document.querySelectorAll('main a')].indexOf(element),
          style: style.outlineStyle, width: parseFloat(style.outlineWidth)};
}"""


@pytest.fixture(scope="module")
def many(house: House, verified: Any) -> int:
    """Five thousand charges more, all denied, so that the pools stay as they are.

    The name of this file makes it the last one: no other test shall wait for so many charges.
    """
    from include.accounting import ONE, Cost, rho_from_epsilon
    from include.budget.models import Request

    ledger, much = house.rig.ledger(), 9 * ONE
    asked = Request(
        key="many",
        dataset=verified.dataset,
        requester=verified.requester,
        actor="alice",
        release="pets_asked_often",
        period="many",
        mechanism=verified.mechanism,
        epsilon_pico=much,
        accept_at_least_pico=much,
        dag_id=verified.dag_id,
        run_id=f"{verified.run_id} again",
        task_id=verified.task_id,
    )
    price = Cost(rho_from_epsilon(much, 9), None)
    for number in range(MANY):
        one = replace(asked, key=f"many|{number}", period=f"asked {number:04d}")
        assert ledger.reserve(one, lambda epsilon: price).denied
    return len(house.rig.charges())


def test_five_thousand_charges_are_shown_a_page_at_a_time(
    house: House, visit: Any, many: int
) -> None:
    assert many > MANY
    token = house.client("viewer").token
    for path in ("/privacy-budget/", "/privacy-budget/?page=50"):
        page = visit(path)
        rows = page.locator("section", has=page.get_by_role("heading", name=re.compile("^Charges")))
        assert rows.locator("tbody tr").count() == 100
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        waits = sorted(first_byte(house, path, token) for _ in range(5))
        print(f"{path}: first byte after {waits[2]:.3f} s (middle of 5: {waits})")
        assert waits[0] < 2
    page = visit("/privacy-budget/")
    page.get_by_role("link", name="older").click()
    page.get_by_role("heading", name="Charges, page 2").wait_for()
    page.get_by_role("link", name="older").click()
    page.get_by_role("heading", name="Charges, page 3").wait_for()


def first_byte(house: House, path: str, token: str) -> float:
    """Return the seconds until the first byte of a page."""
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(house.airflow.url + path, headers=headers)
    start = time.perf_counter()
    with urllib.request.urlopen(request, timeout=60) as answer:
        answer.read(1)
        return time.perf_counter() - start
