"""Tables that broke comparable systems, each released through all six stages.

Every table here ends like its neighbours: published, with the declared columns and the declared
number of rows. Where the parts of these cases are looked at one by one:

| table | also in |
|---|---|
| a missing value in a category, a float, a whole-number column; an empty column | tests/data/test_encode.py (each policy), tests/data/test_validation.py (strict), tests/stages/test_network_faults.py |
| B missing exactly when A = 1 | tests/data/test_encode.py |
| whole numbers with missing values | tests/publishing/test_tables.py (files), tests/data/test_encode.py |
| 0, 1 or 2 rows, one column, one value, 99% one value | tests/data/test_private.py, tests/data/test_neighbours.py, tests/audit |
| 20,000 distinct decimals | tests/data/test_scale.py (memory) |
| 70 binary columns, 10 columns of 100 values, 4 parents of 50 | tests/synthesis/test_mechanisms.py, tests/stages/test_network_faults.py (the bound's sentence) |
| mixed types, numbers beside text, dates | tests/data/test_encode.py, tests/data/test_loaders.py |
| a key of distinct values | tests/data/test_encode.py, tests/config/test_models.py, tests/security/test_canary_paths.py |
| column names of any kind | tests/data/test_loaders.py, tests/config/test_models.py, tests/publishing/test_tables.py |
| 176 rows, 80 columns, epsilon 1 | tests/synthesis/test_csa_privbayes.py, tests/stages/test_rehearsal.py |
| a declared value that no row has | tests/data/test_scale.py |
| a person in several rows and no id | tests/config/test_models.py, tests/airflow/test_bad_input.py |
| two tables that differ in one row | tests/data/test_neighbours.py, tests/security/test_canary.py |

The cases of a pipeline: a clear, a crash, two at once in tests/airflow/test_events.py; a store's 403,
a missing bucket, a timeout in tests/publishing/test_s3.py; a prefix with other content in
tests/publishing/test_targets.py; a failure after the debit in tests/stages/test_stages.py; planted
values in tests/security. Those of a budget: tests/budget/test_cases.py.
"""  # noqa: E501

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from include.budget.migrations import migrate
from include.budget.store import connect
from include.config.loader import load_checked
from include.errors import CuSynError
from include.publishing.verify import sound, verify_package
from include.settings import Settings
from include.stages.ledger import open_ledger
from include.stages.load import load
from include.stages.planning import dry_run
from include.stages.register import register
from include.stages.run import Workplace
from include.stages.validate import validate
from tests.clinic import BUDGETS, DATASET, RELEASE
from tests.stages.test_stages import release

Columns = dict[str, dict[str, Any]]
World = Callable[..., tuple[Workplace, Any]]

MECHANISMS = {
    "mwem_pgm": {"rounds": 1},
    "aim": {},
    "csa_privbayes": {"sensitive": "a"},
    "privbayes": {},
}
BINARY = {"type": "category", "values": ["0", "1"]}
A_AND_N: Columns = {
    "a": {"type": "category", "values": ["x", "y"], "nullable": True},
    "n": {"type": "integer", "min": 0, "max": 9, "bins": [0, 5], "nullable": True},
}


@pytest.fixture
def world(settings: Settings, make_run: Any) -> World:
    """Declare, write and register a table; returns where it is released and the run."""

    def make(columns: Columns, table: pd.DataFrame, **release_keys: Any) -> tuple[Workplace, Any]:
        source = settings.project_root / "table.csv"
        table.to_csv(source, index=False)
        declared = yaml.safe_load(DATASET) | {"columns": columns, "source": {"path": str(source)}}
        del declared["partition_columns"]
        asked = yaml.safe_load(RELEASE) | {"interest": [], "accept_at_least": "0.05"} | release_keys
        del asked["partition"]
        asked = {key: value for key, value in asked.items() if value != []}
        write(settings.config_dir / "datasets" / "clinic.yaml", declared)
        write(settings.config_dir / "releases" / "wards.yaml", asked)
        (settings.config_dir / "budgets.yaml").write_text(BUDGETS.replace('"3"', '"9"'))
        engine = connect(settings.ledger_url, create=True)
        migrate(engine)
        path = settings.config_dir / "releases" / "wards.yaml"
        checked = load_checked(path, settings.config_dir)
        ledger = open_ledger(settings, settings.ledger_url)
        register(ledger, checked.budgets, [checked.dataset], actor="test")
        return Workplace(settings, ledger), make_run()

    return make


def write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), "utf-8")


def released(place: Workplace, run: Any) -> pd.DataFrame:
    """Release, check the package as a recipient does, and return its table."""
    _, published = release(run, place)
    folder = Path(published.uri)
    assert sound(verify_package(folder))
    table = pd.read_parquet(folder / "data.parquet")
    how = json.loads((folder / "datapackage.json").read_text())["resources"][0]["pandas"]
    again = pd.read_csv(folder / "data.csv", **how)
    assert list(again.columns) == list(table.columns) and len(again) == len(table)
    return table


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("rows", [0, 1, 2])
def test_a_table_of_no_rows_one_or_two_ends_like_any_other(
    world: World, mechanism: str, rows: int
) -> None:
    table = pd.DataFrame({"a": ["x", "y"], "n": [1, 7]}).head(rows)
    place, run = world(A_AND_N, table, mechanism=mechanism, options=MECHANISMS[mechanism])
    found = released(place, run)
    assert list(found.columns) == ["a", "n"] and len(found) == 200


@pytest.mark.parametrize("mechanism", ["mwem_pgm", "aim"])
def test_one_column_is_a_table(world: World, mechanism: str) -> None:
    table = pd.DataFrame({"a": ["x"] * 400})
    place, run = world(
        {"a": A_AND_N["a"]},
        table,
        mechanism=mechanism,
        options=MECHANISMS[mechanism],
        workload="all 1-way",
    )
    found = released(place, run)
    assert found["a"].eq("x").mean() > 0.8


AWKWARD: dict[str, pd.DataFrame] = {
    "one missing": pd.DataFrame({"a": [None] + ["x", "y"] * 200, "n": [1.0] * 401}),
    "empty column": pd.DataFrame({"a": ["x", "y"] * 200, "n": [None] * 400}),
    "whole numbers with gaps": pd.DataFrame(
        {"a": ["x", "y"] * 200, "n": pd.array([1, None] * 200, "Int64")}
    ),
    "constant": pd.DataFrame({"a": ["x"] * 400, "n": [3] * 400}),
    "nearly constant": pd.DataFrame({"a": ["x"] * 396 + ["y"] * 4, "n": [3] * 400}),
    "mixed": pd.DataFrame(
        {"a": ["x", 1, 2.5, True, "2020-01-01"] * 80, "n": ["1", "z", 3, "", 5] * 80}
    ),
    "strangers only": pd.DataFrame({"a": ["?"] * 400, "n": ["?"] * 400}),
}


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_cells_follow_their_columns_policy_and_the_release_goes_on(
    world: World, name: str
) -> None:
    place, run = world(A_AND_N, AWKWARD[name])
    found = released(place, run)
    assert len(found) == 200
    assert set(found["a"].dropna()) <= {"x", "y"}
    assert str(found["n"].dtype) == "Int64"
    if name == "empty column":
        assert found["n"].isna().mean() > 0.8


def test_that_one_column_is_missing_where_another_is_1_survives(world: World) -> None:
    a = np.tile(["x", "y"], 1000)
    table = pd.DataFrame({"a": a, "n": np.where(a == "y", np.nan, 7)})
    place, run = world(A_AND_N, table, interest=[["a", "n"]])
    found = released(place, run)
    assert found.loc[found["a"].eq("y"), "n"].isna().mean() > 0.8
    assert found.loc[found["a"].eq("x"), "n"].isna().mean() < 0.2


def test_distinct_decimals_dates_and_keys_go_through(world: World) -> None:
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "f": rng.random(20_000),
            "d": pd.date_range("2020-01-01", periods=20_000, freq="h").strftime("%Y-%m-%d"),
            "k": [f"real-key-{i}" for i in range(20_000)],
        }
    )
    columns: Columns = {
        "f": {"type": "float", "min": 0, "max": 1, "bins": 4, "decimals": 3},
        "d": {"type": "date", "min": "2020-01-01", "max": "2022-12-31", "resolution": "year"},
        "k": {"type": "key", "replace": "surrogate"},
    }
    found = released(*world(columns, table))
    assert found["f"].between(0, 1).all() and found["k"].tolist() == list(range(1, 201))
    assert str(found["d"].dtype).startswith("datetime64")
    assert not found.map(lambda cell: "real-key" in str(cell)).to_numpy().any()


@pytest.mark.parametrize(
    "name", ["größe", "a,b", 'a"b', "שם", "年齢", "=1+1", "select", "a b", "x" * 120]
)
def test_a_column_of_any_name_comes_back_under_it(world: World, name: str) -> None:
    table = pd.DataFrame({name: ["x", "y"] * 200, "n": [1, 7] * 200})
    columns = {name: A_AND_N["a"], "n": A_AND_N["n"]}
    assert list(released(*world(columns, table, interest=[[name, "n"]])).columns) == [name, "n"]


def test_seventy_binary_columns_and_ten_of_a_hundred_values_are_released(world: World) -> None:
    rng = np.random.default_rng(5)
    columns = {f"b{i}": BINARY for i in range(70)}
    columns |= {
        f"c{i}": {"type": "category", "values": [str(v) for v in range(100)]} for i in range(10)
    }
    table = pd.DataFrame(
        {name: rng.integers(0, len(block["values"]), 500) for name, block in columns.items()}
    )
    found = released(*world(columns, table))
    assert found.shape == (200, 80)


def test_176_rows_of_80_columns_are_warned_of_before_anything_is_spent(world: World) -> None:
    columns = {f"b{i}": BINARY for i in range(80)}
    table = pd.DataFrame({name: ["0", "1"] * 88 for name in columns})
    interest = [["b0", "b1"], ["b2", "b3"]]
    place, run = world(columns, table, interest=interest, epsilon="0.01", accept_at_least="0.01")
    lines = " ".join(dry_run(run, place.reader.pools()).lines)
    assert "swamp" in lines
    assert not place.reader.charges()


def test_a_key_declared_as_a_category_is_refused_with_the_fix(world: World) -> None:
    columns = {"k": {"type": "category", "values": [str(v) for v in range(5000)]}}
    with pytest.raises(CuSynError, match=r"4,?096"):
        world(columns, pd.DataFrame({"k": ["1"]}))


def test_a_column_that_stands_twice_is_told_before_anything_is_spent(world: World) -> None:
    table = pd.DataFrame([["x", "y", 1]], columns=["a", "a", "n"])
    place, run = world(A_AND_N, table)
    with pytest.raises(CuSynError, match="column 'a' stands 2 times in the source"):
        validate(run, place, load(run, place))
    assert not place.reader.charges()
