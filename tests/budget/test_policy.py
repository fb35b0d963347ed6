"""BudgetEval as a pure function: Algorithm 1 with its asymmetry, a floor, the constraint named."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.accounting.accountant import Cost
from include.accounting.amounts import ONE
from include.budget.policy import Decision, Limit, Room, decide
from tests.budget.world import pico, pure, zcdp

ROOM = Room("dataset:people:epsilon:1", "dataset_pool:people", "epsilon", 9, pico("10"))
USER = Room("user:lab@survey:epsilon:1", "user_pool:lab", "epsilon", 9, pico("4"))


def ask(epsilon: str, least: str = "0.1", **given: object) -> Decision:
    constraints: dict[str, object] = {
        "per_operation": [Limit("per_operation_limit", pico("2"))],
        "per_request": [Limit("per_request_limit", pico("1"))],
        "rooms": [ROOM, USER],
        "price": pure,
    }
    return decide(pico(epsilon), pico(least), **constraints | given)  # type: ignore[arg-type]


def test_a_request_that_fits_is_granted_as_asked() -> None:
    told = ask("0.5")
    assert (told.granted_pico, told.binding) == (pico("0.5"), "request")
    assert told.amounts_pico == {ROOM.pool_id: pico("0.5"), USER.pool_id: pico("0.5")}


def test_above_the_operation_limit_is_denied_and_above_the_request_limit_negotiated() -> None:
    assert (ask("2.000000000001").granted_pico, ask("2").granted_pico) == (0, pico("1"))
    assert ask("2.000000000001").binding == "per_operation_limit"
    assert ask("2").binding == "per_request_limit"
    assert ask("2").reason.startswith("epsilon 1 granted instead of 2")


@pytest.mark.parametrize(
    ("rooms", "binding"),
    [
        ([replace(ROOM, available_pico=pico("0.3")), USER], "dataset_pool:people"),
        ([ROOM, replace(USER, available_pico=pico("0.3"))], "user_pool:lab"),
    ],
)
def test_the_pool_that_binds_is_named(rooms: list[Room], binding: str) -> None:
    told = ask("1", rooms=rooms)
    assert (told.granted_pico, told.binding) == (pico("0.3"), binding)


def test_below_the_floor_nothing_is_granted_and_nothing_is_charged() -> None:
    told = ask("1", "0.4", rooms=[replace(ROOM, available_pico=pico("0.3")), USER])
    assert (told.granted_pico, told.amounts_pico, told.cost) == (0, {}, None)
    assert told.reason == (
        "denied by dataset_pool:people: it has epsilon 0.3 left, the smallest acceptable epsilon "
        "is 0.4"
    )


def test_a_request_limit_below_the_floor_denies_by_that_limit() -> None:
    told = ask("2", "1.5")
    assert (told.granted_pico, told.binding) == (0, "per_request_limit")


def test_limits_are_compared_in_epsilon_so_a_request_at_the_limit_is_not_one_unit_short() -> None:
    room = replace(ROOM, accounting="zcdp", available_pico=zcdp(pico("1")).rho_pico)
    told = ask("1", rooms=[room], price=zcdp)
    assert (told.granted_pico, told.binding) == (pico("1"), "request")


@given(
    requested=st.integers(1, 3 * ONE),
    floor=st.integers(1, 3 * ONE),
    left=st.lists(st.integers(0, 3 * ONE), min_size=1, max_size=3),
    limit=st.integers(1, 3 * ONE),
)
def test_no_constraint_is_ever_exceeded_and_nothing_that_fits_is_withheld(
    requested: int, floor: int, left: list[int], limit: int
) -> None:
    floor = min(floor, requested)
    rooms = [replace(ROOM, pool_id=str(i), available_pico=room) for i, room in enumerate(left)]
    told = decide(
        requested,
        floor,
        per_operation=[Limit("per_operation_limit", 2 * ONE)],
        per_request=[Limit("per_request_limit", limit)],
        rooms=rooms,
        price=pure,
    )
    most = 0 if requested > 2 * ONE else min(requested, limit, *left)
    assert told.granted_pico == (most if most >= floor else 0)


@settings(max_examples=40, deadline=None)
@given(left=st.integers(0, 40 * 10**9), requested=st.integers(10**10, 2 * ONE))
def test_negotiation_finds_the_largest_epsilon_whose_plan_fits(left: int, requested: int) -> None:
    room = replace(ROOM, accounting="zcdp", available_pico=left)
    told = decide(requested, 10**9, per_operation=[], per_request=[], rooms=[room], price=zcdp)
    if told.granted_pico == 0:
        assert zcdp(10**9).rho_pico > left
        return
    assert zcdp(told.granted_pico).rho_pico <= left
    if told.granted_pico < requested:
        assert zcdp(told.granted_pico + 1).rho_pico > left


def test_the_plan_cost_counts_not_the_conversion_of_epsilon() -> None:
    """A pure plan of 1.6 costs rho 1.28, although rho(1.6, 1e-9) is only .037."""
    room = replace(ROOM, accounting="zcdp", available_pico=pico("0.1"))
    told = decide(pico("1.6"), 1, per_operation=[], per_request=[], rooms=[room], price=pure)
    assert pure(told.granted_pico).rho_pico <= pico("0.1") < pure(told.granted_pico + 1).rho_pico


def test_a_zcdp_charge_in_an_epsilon_pool_is_at_least_a_thousandth() -> None:
    assert ROOM.charge(Cost(1, None)) >= pico("0.001")
