"""The life of a charge, on both databases: spend before read, seal before publish."""

from __future__ import annotations

from typing import Any

import pytest

from include.accounting.accountant import Cost
from include.budget import states
from include.budget.errors import (
    AlreadyOpened,
    DigestMismatch,
    InvalidRequest,
    PlanExceedsGrant,
    RoundMismatch,
    StaleFence,
    UnknownName,
    WrongState,
)
from include.budget.models import Charge, OpenedCharge
from tests.budget.world import (
    DIGEST,
    World,
    cost_of_events,
    gaussian_events,
    laplace_events,
    pico,
    pure,
    zcdp,
)

RHO = zcdp(pico("1")).rho_pico


def test_opening_spends_what_was_held(world: World) -> None:
    opened = world.opened()
    assert opened.fence == 1
    assert (world.pool().held_pico, world.pool().spent_pico) == (0, RHO)
    world.sound()


def test_what_the_plan_does_not_need_goes_back_when_it_is_opened(world: World) -> None:
    charge = world.reserve()
    world.open(charge, cost=Cost(RHO - 5, None))
    assert (world.pool().spent_pico, world.pool().held_pico) == (RHO - 5, 0)
    assert world.reader.charge(charge.charge_id).amounts_pico["dataset:people:zcdp:1"] == RHO - 5
    world.sound()


def test_a_plan_above_the_grant_is_refused_before_anything_is_spent(world: World) -> None:
    charge = world.reserve()
    with pytest.raises(PlanExceedsGrant):
        world.open(charge, cost=Cost(RHO + 1, None))
    assert world.pool().spent_pico == 0
    world.open(charge)


def test_a_plan_above_what_is_held_is_refused_even_if_its_epsilon_would_pay_for_it(
    world: World,
) -> None:
    charge = world.reserve(planner=lambda epsilon: Cost(zcdp(epsilon).rho_pico // 2, None))
    with pytest.raises(PlanExceedsGrant, match="is held"):
        world.open(charge, cost=zcdp(pico("1")))
    assert world.pool().spent_pico == 0


def test_a_plan_that_understates_its_own_events_is_refused(world: World) -> None:
    charge = world.reserve()
    with pytest.raises(PlanExceedsGrant, match="events cost more"):
        world.open(charge, events=gaussian_events(1.0))


def test_a_mechanism_whose_parts_add_up_to_the_grant_exactly_runs(world: World) -> None:
    """In floats ten tenths are one unit too many; exact fractions are rounded once."""
    world.population("exact", accounting="epsilon")
    world.dataset("tenths", "exact")
    world.user("lab", "tenths")
    events = laplace_events("0.1", 10)
    assert cost_of_events(events).epsilon_pure_pico == pico("1")

    def planner(epsilon_pico: int) -> Cost:
        return Cost(cost_of_events(events).rho_pico, epsilon_pico)

    charge = world.reserve(dataset="tenths", planner=planner)
    opened = world.open(charge, events=events)
    for number, event in enumerate(events, start=1):
        world.ledger.begin_round(opened, number, [event])
        world.ledger.answer_round(opened, number, DIGEST)
    world.ledger.seal(opened, DIGEST)
    assert world.pool("exact").spent_pico == pico("1")


def test_a_charge_is_opened_once(world: World) -> None:
    charge = world.reserve()
    world.open(charge)
    for attempt in ("1", "2"):
        with pytest.raises(AlreadyOpened):
            world.open(charge, attempt=attempt)
    assert world.pool().spent_pico == RHO


def test_resuming_needs_a_newer_attempt_and_raises_the_fence(world: World) -> None:
    opened = world.opened()
    with pytest.raises(AlreadyOpened, match="later attempt"):
        world.ledger.resume(opened.charge_id, attempt="1", last_round=0)
    again = world.ledger.resume(opened.charge_id, attempt="2", last_round=0)
    assert again.fence == opened.fence + 1
    with pytest.raises(InvalidRequest):
        world.ledger.resume(opened.charge_id, attempt="soon", last_round=0)


def test_a_zombie_is_refused_at_every_step(world: World) -> None:
    zombie = world.opened()
    world.ledger.begin_round(zombie, 1, [])
    world.ledger.resume(zombie.charge_id, attempt="2", last_round=0)
    steps: list[Any] = [
        lambda: world.ledger.begin_round(zombie, 2, []),
        lambda: world.ledger.answer_round(zombie, 1, DIGEST),
        lambda: world.ledger.seal(zombie, DIGEST),
    ]
    for step in steps:
        with pytest.raises(StaleFence):
            step()


def test_an_interrupted_round_is_burned_and_never_drawn_again(world: World) -> None:
    events = gaussian_events(20.0, 3)
    charge = world.reserve()
    opened = world.open(charge, events=events)
    world.ledger.begin_round(opened, 1, events[:1])
    world.ledger.answer_round(opened, 1, DIGEST)
    world.ledger.begin_round(opened, 2, events[1:2])
    again = world.ledger.resume(opened.charge_id, attempt="2", last_round=1)
    assert again.last_round == 2
    with pytest.raises(RoundMismatch):
        world.ledger.begin_round(again, 2, events[1:2])
    world.ledger.begin_round(again, 3, events[2:])
    world.ledger.answer_round(again, 3, DIGEST)
    sealed = world.ledger.seal(again, DIGEST)
    assert (sealed.rounds_begun, sealed.rounds_answered) == (3, 3)
    world.sound()


def test_resuming_with_another_transcript_than_the_journals_is_refused(world: World) -> None:
    opened = world.opened()
    world.ledger.begin_round(opened, 1, [])
    world.ledger.answer_round(opened, 1, DIGEST)
    for last in (0, 2):
        with pytest.raises(RoundMismatch):
            world.ledger.resume(opened.charge_id, attempt="2", last_round=last)


def test_rounds_may_not_cost_more_than_the_plan(world: World) -> None:
    events = gaussian_events(20.0, 2)
    cost = cost_of_events(events)
    charge = world.reserve()
    opened = world.open(charge, cost=cost, events=events)
    world.ledger.begin_round(opened, 1, events)
    world.ledger.answer_round(opened, 1, DIGEST)
    with pytest.raises(PlanExceedsGrant, match="overrun"):
        world.ledger.begin_round(opened, 2, gaussian_events(20.0))


def test_a_pure_plan_refuses_a_gaussian_round(world: World) -> None:
    charge = world.reserve(epsilon="0.3", planner=pure)
    opened = world.open(charge)
    with pytest.raises(PlanExceedsGrant, match="pure"):
        world.ledger.begin_round(opened, 1, gaussian_events(500.0))


def test_a_transcript_with_an_unanswered_round_cannot_be_sealed(world: World) -> None:
    opened = world.opened()
    world.ledger.begin_round(opened, 1, [])
    with pytest.raises(RoundMismatch):
        world.ledger.seal(opened, DIGEST)


def test_sealing_again_gives_the_same_answer_and_another_digest_is_refused(world: World) -> None:
    opened = world.opened()
    first = world.ledger.seal(opened, DIGEST)
    again = world.ledger.seal(opened, DIGEST)
    assert (again.sealed_seq, again.sealed_hash) == (first.sealed_seq, first.sealed_hash)
    assert again.replayed
    with pytest.raises(DigestMismatch):
        world.ledger.seal(opened, "ff" * 32)


def test_the_seal_names_its_own_entry(world: World) -> None:
    sealed = world.sealed()
    entry = world.reader.entries(sealed.charge_id)[-1]
    assert (entry.kind, entry.seq, entry.hash) == ("seal", sealed.sealed_seq, sealed.sealed_hash)
    assert world.reader.charge(sealed.charge_id).sealed_hash == sealed.sealed_hash


def test_a_forfeited_charge_stays_spent(world: World) -> None:
    opened = world.opened()
    charge = world.ledger.forfeit(opened.charge_id, "the transcript is lost")
    assert (charge.state, charge.note) == ("forfeited", "the transcript is lost")
    assert world.pool().spent_pico == RHO
    assert world.ledger.forfeit(opened.charge_id, "again").replayed


def test_a_void_reservation_is_given_back_once(world: World) -> None:
    charge = world.reserve()
    world.ledger.void(charge.charge_id, "stopped")
    world.ledger.void(charge.charge_id, "stopped")
    assert world.figures() == dict.fromkeys(world.figures(), (0, 0))
    world.sound()


def test_after_opening_nothing_is_given_back(world: World) -> None:
    opened = world.opened()
    with pytest.raises(WrongState, match="opened"):
        world.ledger.void(opened.charge_id, "SIGTERM")


def test_publishing_ends_withholding(world: World) -> None:
    held_back = world.sealed("1")
    assert world.ledger.withhold(held_back.charge_id, "the gate said no").state == "withheld"
    with pytest.raises(WrongState):
        world.ledger.begin_publishing(held_back.charge_id)
    going = world.sealed("2")
    world.ledger.begin_publishing(going.charge_id)
    with pytest.raises(WrongState, match="publishing"):
        world.ledger.withhold(going.charge_id, "too late")


def test_publishing_is_repeatable_with_the_same_manifest_only(world: World) -> None:
    charge = world.published()
    told = {"manifest_digest": "cd" * 32, "uri": "releases/x"}
    assert world.ledger.publish(charge.charge_id, **told).replayed
    assert world.ledger.begin_publishing(charge.charge_id).replayed
    with pytest.raises(DigestMismatch):
        world.ledger.publish(charge.charge_id, manifest_digest="ee" * 32, uri="releases/x")
    release = world.reader.release("monthly-period_1")
    assert (release.charge_id, release.sealed_hash) == (charge.charge_id, charge.sealed_hash)
    assert world.reader.releases() == [release]


def test_publishing_needs_the_seal_and_its_beginning(world: World) -> None:
    opened = world.opened("1")
    with pytest.raises(WrongState):
        world.ledger.begin_publishing(opened.charge_id)
    sealed = world.sealed("2")
    with pytest.raises(WrongState):
        world.ledger.publish(sealed.charge_id, manifest_digest="cd" * 32, uri="x")


def test_a_publisher_under_an_old_fence_is_refused(world: World) -> None:
    opened = world.opened()
    again = world.ledger.resume(opened.charge_id, attempt="2", last_round=0)
    charge = world.ledger.seal(again, DIGEST)
    with pytest.raises(StaleFence):
        world.ledger.begin_publishing(charge.charge_id, fence=opened.fence)
    world.ledger.begin_publishing(charge.charge_id, fence=again.fence)
    with pytest.raises(StaleFence):
        world.ledger.publish(charge.charge_id, manifest_digest="cd", uri="x", fence=opened.fence)


def test_withdrawing_marks_the_release_and_gives_nothing_back(world: World) -> None:
    charge, figures = world.published(), world.figures()
    world.ledger.withdraw("monthly-period_1", "a column was wrong", "steward")
    world.ledger.withdraw("monthly-period_1", "a column was wrong", "steward")
    release = world.reader.release("monthly-period_1")
    assert release.withdrawn_reason == "a column was wrong" and release.withdrawn_at
    assert world.figures() == figures
    kinds = [entry.kind for entry in world.reader.entries(charge.charge_id)]
    assert kinds.count("withdraw") == 1
    with pytest.raises(UnknownName):
        world.ledger.withdraw("no-such-release", "x", "steward")


def test_reservations_nobody_opened_expire(world: World) -> None:
    old, opened = world.reserve("1"), world.opened("2")
    world.clock.forward(days=6)
    young = world.reserve("3", "0.5")
    assert world.ledger.expire() == []
    world.clock.forward(days=2)
    assert [charge.charge_id for charge in world.ledger.expire()] == [old.charge_id]
    assert world.reader.charge(young.charge_id).state == "reserved"
    assert world.reader.charge(opened.charge_id).state == "opened"
    assert world.ledger.expire() == []
    world.sound()


def _charge_in(world: World, state: str) -> Charge:
    makers: dict[str, Any] = {
        "denied": lambda: world.reserve(epsilon="3"),
        "reserved": world.reserve,
        "opened": lambda: world.reader.charge(world.opened().charge_id),
        "sealed": world.sealed,
        "publishing": lambda: world.ledger.begin_publishing(world.sealed().charge_id),
        "published": world.published,
        "void": lambda: world.ledger.void(world.reserve().charge_id, "x"),
        "forfeited": lambda: world.ledger.forfeit(world.opened().charge_id, "x"),
        "withheld": lambda: world.ledger.withhold(world.sealed().charge_id, "x"),
    }
    return makers[state]()


@pytest.mark.parametrize("state", states.STATES)
def test_every_arrow_that_is_not_drawn_is_refused(world: World, state: str) -> None:
    charge = _charge_in(world, state)
    right = OpenedCharge(charge.charge_id, charge.fence)
    steps: dict[str, Any] = {
        "open": lambda: world.open(charge, cost=zcdp(pico("1"))),
        "resume": lambda: world.ledger.resume(charge.charge_id, attempt="9", last_round=0),
        "begin_round": lambda: world.ledger.begin_round(right, 1, []),
        "answer_round": lambda: world.ledger.answer_round(right, 1, DIGEST),
        "seal": lambda: world.ledger.seal(right, DIGEST),
        "forfeit": lambda: world.ledger.forfeit(charge.charge_id, "x"),
        "void": lambda: world.ledger.void(charge.charge_id, "x"),
        "withhold": lambda: world.ledger.withhold(charge.charge_id, "x"),
        "begin_publishing": lambda: world.ledger.begin_publishing(charge.charge_id),
        "publish": lambda: world.ledger.publish(
            charge.charge_id, manifest_digest="cd" * 32, uri="x"
        ),
    }
    figures, head = world.figures(), world.reader.head()
    for kind, step in steps.items():
        if any(arrow.start == state for arrow in states.ARROWS[kind]):
            continue
        try:
            answer = step()
        except WrongState:
            pass
        else:
            assert answer.replayed, f"{kind} from {state}"
        assert world.figures() == figures and world.reader.head() == head
