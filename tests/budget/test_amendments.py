"""Limits with their history, generations instead of refills, partitions in parallel."""

from __future__ import annotations

import pytest

from include.budget.errors import DeclarationMismatch, InvalidRequest, PoolFrozen, UnknownName
from include.budget.models import same_person
from tests.budget.world import World, pico, zcdp

RHO = zcdp(pico("1")).rho_pico


def test_a_changed_limit_counts_at_once_and_the_old_one_is_kept(world: World) -> None:
    world.ledger.change_limit("user:lab@survey", pico("0.5"), actor="admin", reason="fairness")
    assert world.reserve().binding == "per_request_limit"
    world.ledger.change_limit("population:people", pico("0.4"), actor="admin", reason="caution")
    assert world.reserve("2", "0.5").binding == "per_operation_limit"
    history = [row["value_pico"] for row in world.reader.limits("population:people")]
    assert history == [pico("2"), pico("0.4")]
    with pytest.raises(UnknownName):
        world.ledger.change_limit("population:nobody", None, actor="admin", reason="x")
    world.sound()


def test_a_new_generation_opens_beside_what_the_old_one_used(world: World) -> None:
    held = world.reserve("1")
    world.opened("2")
    world.ledger.new_generation(
        "population:people", pico("3"), actor="admin", authorised_by="board", reason="new wave"
    )
    old, new = (p for p in world.reader.pools(owner="people"))
    assert (old.status, new.status, new.generation, new.epsilon) == ("retired", "open", 2, "3")
    assert (old.held_pico, old.spent_pico, new.held_pico) == (RHO, RHO, 0)
    words = world.reader.entries()[-1].words
    assert "board" in words and "in all generations together" in words.lower()
    world.reserve("3", "0.5")
    world.open(held)  # what the old generation held may still be spent there
    world.sound()
    world.population("people", epsilon_pico=pico("3"))  # the file now says what is registered
    with pytest.raises(DeclarationMismatch):
        world.population("people")


def test_a_new_generation_needs_a_second_person(world: World) -> None:
    for name in ("admin", "Admin", "ａｄｍｉｎ"):
        with pytest.raises(InvalidRequest, match="two people"):
            world.ledger.new_generation(
                "population:people", pico("3"), actor="admin", authorised_by=name, reason="x"
            )


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("anna", " Anna ", True),
        ("anna  bell", "Anna Bell", True),
        ("Zoe\u0308", "zoë", True),
        ("straße", "STRASSE", True),
        ("anna", "anne", False),
        ("anna", "annabell", False),
    ],
)
def test_a_second_person_differs_by_more_than_spelling(one: str, other: str, same: bool) -> None:
    assert same_person(one, other) is same_person(other, one) is same


def test_a_population_with_two_caps_states_both_totals_anew(world: World) -> None:
    world.population("both", additional_epsilon_pico=pico("5"))
    given = {"actor": "admin", "authorised_by": "board", "reason": "x"}
    with pytest.raises(InvalidRequest, match="every currency"):
        world.ledger.new_generation("population:both", pico("3"), **given)
    world.ledger.new_generation(
        "population:both", pico("3"), additional_epsilon_pico=pico("2"), **given
    )
    assert world.pool("both", "epsilon").epsilon == "2"
    world.sound()


def test_a_frozen_pool_gets_no_new_generation(world: World) -> None:
    world.ledger.freeze("inspection", actor="admin")
    with pytest.raises(PoolFrozen):
        world.ledger.new_generation(
            "population:people", pico("3"), actor="admin", authorised_by="board", reason="x"
        )


def test_a_dataset_may_change_its_schema_and_gain_populations(world: World) -> None:
    world.population("others")
    world.ledger.amend_dataset(
        "survey",
        schema_digest="ee" * 32,
        populations={"others": {"id_column": "oid", "max_rows": 3}},
        actor="admin",
        reason="joined",
    )
    assert set(world.reserve().amounts_pico) > {"dataset:others:zcdp:1"}
    world.sound()


def _by_year(world: World, at_most: int = 1) -> None:
    world.ledger.register_partitions(
        "people",
        "survey",
        column="year",
        values=["1994", "1996", "1998"],
        at_most=at_most,
        actor="admin",
        authorised_by="board",
        reason="one interview a person",
    )


def test_registered_partitions_compose_in_parallel(world: World) -> None:
    _by_year(world)
    _by_year(world)
    world.user("wide", "survey", "9", None)
    for year, epsilon in (("1994", "1"), ("1996", "2"), ("1998", "0.5")):
        world.opened(year, epsilon, partition=f"year={year}", requester="wide")
    assert world.pool().spent_pico == zcdp(pico("2")).rho_pico  # the largest partition alone
    assert world.pool("wide").spent_pico > world.pool().spent_pico  # users' pools add up plainly
    world.sound()


def test_a_unit_in_two_partitions_meets_the_two_largest(world: World) -> None:
    _by_year(world, at_most=2)
    world.user("wide", "survey", "9", None)
    for year, epsilon in (("1994", "1"), ("1996", "2"), ("1998", "0.5")):
        world.opened(year, epsilon, partition=f"year={year}", requester="wide")
    assert world.pool().spent_pico == zcdp(pico("2")).rho_pico + zcdp(pico("1")).rho_pico
    world.sound()


def test_whole_and_unregistered_charges_are_added_to_the_largest_partition(world: World) -> None:
    _by_year(world)
    world.opened("a", partition="year=1994")
    world.opened("b")
    world.opened("c", partition="year=2024")
    assert world.pool().spent_pico == 3 * RHO
    world.sound()


def test_the_cap_holds_on_the_figure_with_the_largest_partitions(world: World) -> None:
    world.population("few", epsilon_pico=pico("1.5"))
    world.dataset("small", "few")
    world.user("lab", "small", "9", None)
    world.ledger.register_partitions(
        "few",
        "small",
        column="region",
        values=["n", "s"],
        at_most=1,
        actor="a",
        authorised_by="b",
        reason="x",
    )
    world.reserve("1", "1", dataset="small", partition="region=n")
    second = world.reserve("2", "1.5", dataset="small", partition="region=s")
    assert (second.binding, second.granted_pico) == ("request", pico("1.5"))
    third = world.reserve("3", "1", dataset="small")
    assert third.denied and third.binding == "dataset_pool:few"
    fourth = world.reserve("4", "1.4", dataset="small", partition="region=n")
    assert fourth.negotiated and fourth.binding == "dataset_pool:few"
    world.sound()


def test_partitions_follow_a_new_generation(world: World) -> None:
    _by_year(world)
    world.opened("a", partition="year=1994")
    world.ledger.new_generation(
        "population:people", pico("5"), actor="admin", authorised_by="board", reason="x"
    )
    charge = world.reserve("b", partition="year=1994")
    assert "partition:people:zcdp:2:survey:year=1994" in charge.amounts_pico
    world.sound()


def test_another_column_of_the_same_value_is_no_partition(world: World) -> None:
    _by_year(world)
    world.opened("a", partition="year=1994")
    world.opened("b", partition="wave=1994")
    assert world.pool().spent_pico == 2 * RHO
    world.sound()


@pytest.mark.parametrize("values", [["1994", "1994.0"], ["a", "a"], ["1.0", "1.0.0"], []])
def test_partitions_that_share_rows_are_refused(world: World, values: list[str]) -> None:
    with pytest.raises(InvalidRequest, match="list each value once"):
        world.ledger.register_partitions(
            "people",
            "survey",
            column="year",
            values=values,
            actor="a",
            authorised_by="b",
            reason="x",
        )


def test_units_with_several_rows_claim_no_partitions(world: World) -> None:
    world.population("patients")
    world.ledger.register_dataset(
        "visits",
        populations={"patients": {"id_column": "pid", "max_rows": 3}},
        schema_digest="aa" * 32,
        actor="steward",
    )
    with pytest.raises(InvalidRequest, match="added up"):
        world.ledger.register_partitions(
            "patients",
            "visits",
            column="year",
            values=["1", "2"],
            actor="a",
            authorised_by="b",
            reason="x",
        )


def test_a_claim_is_registered_once_by_two_people(world: World) -> None:
    _by_year(world)
    with pytest.raises(DeclarationMismatch):
        _by_year(world, at_most=2)
    with pytest.raises(InvalidRequest, match="two people"):
        world.ledger.register_partitions(
            "people",
            "survey",
            column="x",
            values=["a"],
            at_most=1,
            actor="a",
            authorised_by="A",
            reason="x",
        )
