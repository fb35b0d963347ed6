"""Asking for budget, on both databases: one answer for a key, one release for a period."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from include.accounting.accountant import Cost
from include.budget.errors import (
    DeltaMismatch,
    IdempotencyConflict,
    InvalidRequest,
    PeriodTaken,
    PlanExceedsGrant,
    UnknownName,
)
from tests.budget.world import World, pico, pure, zcdp


def test_a_reservation_holds_the_plans_cost_in_every_pool(world: World) -> None:
    charge = world.reserve()
    rho = zcdp(pico("1")).rho_pico
    assert (charge.state, charge.binding, charge.granted_pico) == ("reserved", "request", pico("1"))
    assert set(charge.amounts_pico.values()) == {rho}
    assert world.pool().held_pico == world.pool("lab").held_pico == rho
    assert world.pool("press").held_pico == 0
    assert charge.entry_hash == world.reader.entries(charge.charge_id)[0].hash
    world.sound()


def test_the_same_key_gives_the_same_charge_and_no_second_hold(world: World) -> None:
    first, figures = world.reserve(), world.figures()
    again = world.reserve(snapshot_id="another", run_id="x", actor="somebody")
    assert again.replayed and not first.replayed
    assert dataclasses.replace(again, replayed=False) == first
    assert world.figures() == figures


def test_a_denial_is_remembered_by_its_key(world: World) -> None:
    denied = world.reserve(epsilon="3")
    assert world.reserve(epsilon="3").charge_id == denied.charge_id
    assert denied.denied and denied.binding == "per_operation_limit"


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": "0.9"},
        {"requester": "press"},
        {"mechanism": "aim"},
        {"parameters": {"rounds": 3}},
        {"accept_at_least_pico": 1},
    ],
)
def test_the_same_key_with_other_parameters_is_a_conflict(
    world: World, change: dict[str, Any]
) -> None:
    world.reserve()
    with pytest.raises(IdempotencyConflict):
        world.reserve(**change)


def test_another_run_of_the_same_period_gets_the_same_charge(world: World) -> None:
    first = world.published()
    again = world.reserve("2", period="period_1")
    assert (again.charge_id, again.state, again.replayed) == (first.charge_id, "published", True)


def test_another_question_for_a_taken_period_is_refused(world: World) -> None:
    world.reserve()
    with pytest.raises(PeriodTaken, match="period_1"):
        world.reserve("2", epsilon="0.5", period="period_1")


def test_denied_and_void_charges_leave_the_period_free(world: World) -> None:
    world.reserve("1", epsilon="3", period="p")
    second = world.reserve("2", period="p")
    world.ledger.void(second.charge_id, "not needed")
    third = world.reserve("3", epsilon="0.5", period="p")
    assert third.state == "reserved"


def test_a_user_without_a_budget_is_denied_by_name(world: World) -> None:
    charge = world.reserve(requester="stranger")
    assert charge.denied and charge.binding == "user_pool:stranger"
    assert world.figures() == dict.fromkeys(world.figures(), (0, 0))


def test_the_datasets_limit_binds_two_users_who_are_each_within_theirs(world: World) -> None:
    world.population("few", epsilon_pico=pico("1"))
    world.dataset("small", "few")
    for user in ("lab", "press"):
        world.user(user, "small")
    first = world.reserve("a", "0.9", dataset="small")
    second = world.reserve("b", "0.9", dataset="small", requester="press")
    assert (first.binding, second.binding) == ("request", "dataset_pool:few")
    assert 0 < second.granted_pico < pico("0.9")
    assert world.pool("few").remaining_pico < 100  # what no epsilon of 1e-12 more could use
    world.sound()


def test_a_join_charges_every_population_or_none(world: World) -> None:
    world.population("teachers", epsilon_pico=pico("0.3"))
    world.dataset("school", "people", "teachers")
    world.user("lab", "school")
    denied = world.reserve("a", dataset="school", accept_at_least_pico=pico("0.5"))
    assert denied.denied and denied.binding == "dataset_pool:teachers"
    assert world.pool("people").held_pico == 0
    granted = world.reserve("b", dataset="school", accept_at_least_pico=pico("0.1"))
    assert set(granted.amounts_pico) == {
        "dataset:people:zcdp:1",
        "dataset:teachers:zcdp:1",
        "user:lab@school:zcdp:1",
    }


def test_a_renamed_copy_of_the_same_people_charges_the_same_pool(world: World) -> None:
    world.dataset("survey_copy", "people")
    world.user("lab", "survey_copy")
    world.reserve("a")
    world.reserve("b", dataset="survey_copy")
    assert world.pool("people").held_pico == 2 * zcdp(pico("1")).rho_pico


def test_a_second_cap_in_the_other_currency_binds_as_well(world: World) -> None:
    world.population("both", epsilon_pico=pico("10"), additional_epsilon_pico=pico("1.5"))
    world.dataset("double", "both")
    world.user("lab", "double")
    world.reserve("a", dataset="double")
    second = world.reserve("b", dataset="double")
    assert second.granted_pico == pytest.approx(pico("0.5"), rel=1e-6)
    assert second.binding == "dataset_pool:both"
    world.sound()


def test_another_delta_than_the_pools_is_refused_with_both_named(world: World) -> None:
    with pytest.raises(DeltaMismatch, match=r"1e-6.*1e-9"):
        world.reserve(delta_exponent=6)
    assert world.reserve(delta_exponent=9).state == "reserved"


def test_an_unregistered_dataset_is_refused_and_leaves_no_trace(world: World) -> None:
    with pytest.raises(UnknownName, match="register"):
        world.reserve(dataset="elsewhere")
    assert world.reader.charges() == []


@pytest.mark.parametrize(
    ("amount", "fault"),
    [
        (-10, "negative"),
        (0, "zero"),
        (True, "bool"),
        (0.5, "float"),
        (float("nan"), "float"),
        (float("inf"), "float"),
        ("1", "str"),
        (None, "NoneType"),
        (10**18, "largest"),
    ],
)
def test_amounts_that_cannot_be_meant_are_refused_by_the_fault(
    world: World, amount: Any, fault: str
) -> None:
    head = world.reader.head()
    with pytest.raises(InvalidRequest, match=fault):
        world.reserve(epsilon_pico=amount)
    with pytest.raises(InvalidRequest):
        world.reserve(accept_at_least_pico=amount)
    assert world.reader.head() == head


def test_a_planner_that_promises_less_than_its_grant_keeps_is_refused(world: World) -> None:
    with pytest.raises(PlanExceedsGrant):
        world.reserve(planner=lambda epsilon: Cost(2 * zcdp(epsilon).rho_pico, None))
    assert world.reader.charges() == []


def test_a_pure_plan_may_cost_more_rho_than_its_epsilon_converts_to(world: World) -> None:
    charge = world.reserve(epsilon="0.3", planner=pure)
    assert charge.amounts_pico["dataset:people:zcdp:1"] == pure(pico("0.3")).rho_pico
    assert pure(pico("0.3")).rho_pico > zcdp(pico("0.3")).rho_pico


def test_the_planner_is_never_called_inside_a_transaction(world: World) -> None:
    """Negotiation needs about forty prices; none of them may hold a lock."""
    calls = []

    def planner(epsilon_pico: int) -> Cost:
        # Another writer can work while the planner does.
        world.ledger.expire()
        calls.append(epsilon_pico)
        return zcdp(epsilon_pico)

    world.user("small", "survey", epsilon="0.5")
    charge = world.reserve(requester="small", planner=planner)
    assert charge.negotiated and charge.binding == "user_pool:small"
    assert len(calls) > 20


def _snapshot(world: World, name: str, dataset: str = "survey", **partition: str) -> None:
    world.ledger.register_snapshot(
        name,
        dataset=dataset,
        commitment="cc" * 32,
        mac=name,
        locator="l",
        actor="admin",
        **partition,
    )


@pytest.mark.parametrize(
    ("snapshot", "told"),
    [("others", "holds dataset twin"), ("part", "partition year=2020"), ("none", "load it first")],
)
def test_nobody_pays_from_one_pool_and_measures_anothers_rows(
    world: World, snapshot: str, told: str
) -> None:
    world.dataset("twin", "people")
    _snapshot(world, "others", "twin")
    _snapshot(world, "part", partition="year=2020")
    before = world.figures()
    with pytest.raises((InvalidRequest, UnknownName), match=told):
        world.reserve(snapshot_id=snapshot)
    with pytest.raises(InvalidRequest, match="year=2021"):
        world.reserve(snapshot_id="part", partition="year=2021")
    assert world.figures() == before
    assert world.reserve(snapshot_id="part", partition="year=2020").granted_pico == pico("1")
    world.sound()


def test_a_journal_that_measures_anothers_rows_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.dataset("twin", "people")
    _snapshot(world, "others", "twin")
    monkeypatch.setattr("include.budget.reservation._require_snapshot", lambda tx, request: None)
    world.reserve(snapshot_id="others")
    assert "another dataset or partition" in str(world.verify().problems[0])
