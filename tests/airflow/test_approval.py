"""A release that asks for approval: another person decides, and the ledger remembers."""

from __future__ import annotations

import pytest

from tests.airflow.rig import Rig, Run
from tests.airflow.test_bad_input import sentence


@pytest.fixture
def waiting(rig: Rig) -> Run:
    """A run whose release waits for a decision."""
    rig.declare(release={"approval": "required"})
    run = rig.trigger().finish(until="approve")
    assert run.states()["approve"] == "awaiting_input" and rig.charge().state == "sealed"
    return run


def test_another_person_approves_once(rig: Rig, waiting: Run) -> None:
    spent = rig.spent()
    waiting.answer("approve", "Approve", by="carol").finish()
    assert waiting.state == "success" and rig.charge().state == "published"
    files = rig.package_bytes()
    waiting.clear().finish()  # nobody is asked again
    assert waiting.state == "success"
    assert rig.spent() == spent and rig.package_bytes() == files


def test_the_requester_may_not_approve(
    rig: Rig, waiting: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    waiting.answer("approve", "Approve", by="alice").finish()
    assert waiting.state == "failed" and rig.charge().state == "sealed"
    assert "alice asked for this release and cannot approve it" in sentence(capfd)
    assert not rig.package_bytes()
    waiting.clear("approve", "publish").finish(until="approve")
    waiting.answer("approve", "Approve", by="carol").finish()
    assert waiting.state == "success" and rig.charge().state == "published"


def test_a_rejection_withholds_for_good(rig: Rig, waiting: Run) -> None:
    spent = rig.spent()
    waiting.answer("approve", "Reject", by="carol").finish()
    assert rig.charge().state == "withheld" and rig.spent() == spent
    assert waiting.states()["publish"] in ("skipped", "upstream_failed")
    waiting.mark("approve").clear("publish").finish()
    assert rig.charge().state == "withheld" and not rig.package_bytes()


def test_an_approval_marked_by_hand_publishes_nothing(
    rig: Rig, waiting: Run, capfd: pytest.CaptureFixture[str]
) -> None:
    waiting.mark("approve").finish()
    assert waiting.states()["publish"] == "failed" and rig.charge().state == "sealed"
    assert "asked for with an approval and none is recorded" in sentence(capfd)
