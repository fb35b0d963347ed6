"""Declaring populations, datasets, users: repeating is fine, changing is refused, both named."""

from __future__ import annotations

from typing import Any

import pytest

from include.budget.errors import DeclarationMismatch, InvalidRequest, UnknownName
from tests.budget.world import DIGEST, World, pico


def test_declaring_the_same_twice_changes_nothing(world: World) -> None:
    head = world.reader.head()
    world.registered()
    assert world.reader.head() == head


@pytest.mark.parametrize(
    ("declared", "named"),
    [
        ({"epsilon_pico": pico("11")}, "11 and registered as 10"),
        ({"per_operation_limit_pico": None}, "no limit and registered as 2"),
        ({"delta_exponent": 8}, "1e-8 and registered as 1e-9"),
        ({"accounting": "epsilon"}, "declared as epsilon and registered as zcdp"),
        ({"privacy_unit": "household"}, "household and registered as person"),
        ({"additional_epsilon_pico": pico("3")}, "3 and registered as nothing"),
    ],
)
def test_another_figure_names_both(world: World, declared: dict[str, Any], named: str) -> None:
    with pytest.raises(DeclarationMismatch, match=named):
        world.population("people", **declared)


def test_raising_a_users_budget_in_a_file_refills_nothing(world: World) -> None:
    with pytest.raises(DeclarationMismatch, match="40 and registered as 4"):
        world.user("lab", "survey", epsilon="40")
    with pytest.raises(DeclarationMismatch, match="2 and registered as 1"):
        world.user("lab", "survey", limit="2")


def test_a_dataset_with_another_schema_or_population_is_refused(world: World) -> None:
    world.population("others")
    with pytest.raises(DeclarationMismatch, match="schema"):
        world.dataset("survey", "people", schema_digest="ff" * 32)
    with pytest.raises(DeclarationMismatch, match="populations"):
        world.dataset("survey", "people", "others")


def test_populations_of_one_dataset_share_a_delta(world: World) -> None:
    world.population("strict", delta_exponent=12)
    with pytest.raises(DeclarationMismatch, match="people 1e-9, strict 1e-12"):
        world.dataset("both", "people", "strict")


def test_what_is_not_registered_is_named(world: World) -> None:
    with pytest.raises(UnknownName, match="martians"):
        world.dataset("new", "martians")
    with pytest.raises(UnknownName, match="nowhere"):
        world.user("lab", "nowhere")


@pytest.mark.parametrize(
    "declared",
    [
        {"epsilon_pico": 0},
        {"epsilon_pico": -1},
        {"epsilon_pico": 1.5},
        {"delta_exponent": 4},
        {"delta_exponent": 16},
        {"delta_exponent": True},
        {"accounting": "renyi"},
        {"privacy_unit": ""},
        {"per_operation_limit_pico": 0},
        {"actor": " "},
    ],
)
def test_figures_that_cannot_be_meant_are_refused(world: World, declared: dict[str, Any]) -> None:
    head = world.reader.head()
    with pytest.raises(InvalidRequest):
        world.population("fresh", **declared)
    assert world.reader.head() == head


@pytest.mark.parametrize("rows", [0, -1, True, 1.5, None])
def test_max_rows_is_a_whole_number(world: World, rows: Any) -> None:
    with pytest.raises(InvalidRequest, match="max_rows"):
        world.dataset("new", populations={"people": {"id_column": "id", "max_rows": rows}})


def test_a_known_snapshot_keeps_its_first_id(world: World) -> None:
    facts = {"dataset": "survey", "commitment": "aa" * 32, "mac": "m1", "locator": "snap/1"}
    register = world.ledger.register_snapshot
    assert register("s1", actor="admin", **facts) == "s1"
    assert register("s2", actor="admin", **facts) == "s1"
    assert register("s3", actor="admin", **facts | {"mac": "m2"}) == "s3"
    words = " ".join(str(entry.to_dict()) for entry in world.reader.entries())
    assert "m1" not in words and "snap/1" not in words
    world.sound()


def test_pools_tell_epsilon_against_the_reader(world: World) -> None:
    world.published()
    pool = world.pool()
    assert pool.spent_pico + pool.remaining_pico == pool.cap_pico
    assert pool.spent_epsilon == "1"
    assert float(pool.remaining_epsilon) <= 9
    assert pool.largest_release_epsilon == "2"  # the limit for one operation
    assert float(world.pool("press").largest_release_epsilon) == 1


def test_a_rest_too_small_for_any_release_is_told_as_none(world: World) -> None:
    for user, rest in {"dust": "0.000999", "crumb": "0.001"}.items():
        world.user(user, "survey", rest, None)
    told = [world.pool(user).largest_release_epsilon for user in ("dust", "crumb")]
    assert told == ["0", "0.001"]


@pytest.mark.parametrize(
    ("changed", "fix"),
    [
        ({"per_operation_limit_pico": None}, "admin limit population:people EPSILON"),
        ({"epsilon_pico": pico("11")}, "admin generation population:people EPSILON"),
        ({"delta_exponent": 6}, "since it is fixed for a population's life"),
    ],
)
def test_a_budget_registered_otherwise_names_the_command_that_changes_it(
    world: World, changed: dict[str, object], fix: str
) -> None:
    with pytest.raises(DeclarationMismatch, match=r"restore it in budgets\.yaml") as told:
        world.population("people", **changed)
    assert fix in str(told.value)


def test_a_dataset_registered_otherwise_is_told_in_plain_words(world: World) -> None:
    with pytest.raises(DeclarationMismatch) as told:
        world.ledger.register_dataset(
            "survey",
            populations={"people": {"id_column": "who", "max_rows": 3}},
            schema_digest=DIGEST,
            actor="steward",
        )
    assert str(told.value) == (
        "dataset survey: populations is declared as people (id column who, max_rows 3) and "
        "registered as people (no id column, max_rows 1): restore it in the dataset's file, or "
        "enter the change with `python -m include.cli admin amend survey --reason WHY`."
    )


def test_charges_are_listed_a_part_at_a_time(world: World) -> None:
    asked = [world.reserve(f"{number}", "0.2") for number in range(5)]
    world.ledger.void(asked[1].charge_id, "not needed", actor="steward")
    newest = [charge.charge_id for charge in reversed(asked)]
    parts = [world.reader.charges(limit=2, offset=start) for start in (0, 2, 4, 6)]
    assert [[one.charge_id for one in part] for part in parts] == [
        newest[:2],
        newest[2:4],
        newest[4:],
        [],
    ]
    assert [one.charge_id for one in world.reader.charges(offset=3)] == newest[3:]
    taken = {(one.release, one.period) for one in asked if one is not asked[1]}
    assert world.reader.occupied() == taken
