"""The audit of one release on one page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from include.accounting.accountant import Cost
from include.budget.audit import audit_release
from include.budget.errors import UnknownName
from tests.budget.world import DIGEST, World, cost_of_events, gaussian_events


@pytest.fixture
def released(world: World) -> World:
    world.ledger.register_snapshot(
        "snap_1", dataset="survey", commitment="cc" * 32, mac="m", locator="l", actor="admin"
    )
    events = gaussian_events(20.0, 2)
    charge = world.reserve(snapshot_id="snap_1")
    opened = world.open(charge, plan={"sigma": 20}, cost=cost_of_events(events), events=events)
    for number, event in enumerate(events, start=1):
        world.ledger.begin_round(opened, number, [event])
        world.ledger.answer_round(opened, number, DIGEST)
    world.ledger.seal(opened, DIGEST)
    world.ledger.begin_publishing(charge.charge_id)
    world.ledger.publish(charge.charge_id, manifest_digest="cd" * 32, uri="x", release_id="r1")
    return world


def _price(plan: Any) -> Cost:
    return cost_of_events(gaussian_events(plan["sigma"], 2))


def test_everything_about_a_release_stands_on_one_page(released: World) -> None:
    report = audit_release(released.engine, "r1", _price)
    assert report.ok, report.to_text()
    page = report.to_text()
    for told in ("cd" * 32, "cc" * 32, "spent rho", "plan, priced again", "within its cap"):
        assert told in page
    assert len(page.splitlines()) < 45
    assert json.loads(json.dumps(report.to_dict()))["ok"] is True
    assert [entry.kind for entry in report.entries][::8] == ["reserve", "publish"]


def test_a_plan_that_costs_more_than_was_paid_fails_the_audit(released: World) -> None:
    def dearer(plan: Any) -> Cost:
        return cost_of_events(gaussian_events(plan["sigma"], 3))

    report = audit_release(released.engine, "r1", dearer)
    failed = [check.question for check in report.checks if not check.passed]
    assert failed == ["the plan, priced again by its planner, cost no more than paid"]
    assert "FAILED" in report.to_text()


def test_a_withdrawn_release_says_so(released: World) -> None:
    released.ledger.withdraw("r1", "a column was wrong", "steward")
    assert "withdrawn" in audit_release(released.engine, "r1").to_text()


def test_an_unknown_release_is_named(world: World) -> None:
    with pytest.raises(UnknownName, match="nothing"):
        audit_release(world.engine, "nothing")
