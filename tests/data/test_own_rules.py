"""The steward's own expectations: on synthetic tables always, on raw rows where strict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from include.config import ConfigError, load_dataset
from include.data.errors import RowFaultError
from include.data.own_rules import check_own
from include.data.schema import Schema
from include.data.snapshot import SnapshotStore
from include.data.validation import validate_format
from tests.data.conftest import dataset

COLUMNS = {
    "a": {"type": "category", "values": ["x1", "y1"]},
    "n": {"type": "integer", "min": 0, "max": 9, "stored_as": "text"},
    "m": {"type": "integer", "min": 0, "max": 9},
}
OWN = [
    {"expect": "values_between", "column": "n", "arguments": {"min_value": 1, "max_value": 5}},
    {"expect": "values_match", "column": "a", "arguments": {"regex": "^[xy]1$"}},
    {
        "expect": "a_greater_than_b",
        "column_a": "m",
        "column_b": "n",
        "arguments": {"or_equal": True},
    },
]
GOOD = pd.DataFrame({"a": ["x1", "y1"], "n": ["1", "5"], "m": [1, 9]})


def check(tmp_path: Path, frame: pd.DataFrame, **more: Any) -> list[Any]:
    declared = dataset(COLUMNS, expectations=OWN, **more)
    ref = SnapshotStore(tmp_path / "p", bytes(32)).write([frame])
    return validate_format(ref, Schema.from_config(declared), declared)


def test_raw_rows_are_judged_only_where_the_dataset_is_strict(tmp_path: Path) -> None:
    assert len(check(tmp_path, GOOD, strict=True)) > len(check(tmp_path, GOOD))
    for change, column, rule in [
        ({"n": ["1", "7"]}, "n", "values_between"),
        ({"m": [0, 9]}, "", r"a_greater_than_b \(m, n\)"),
    ]:
        bad = GOOD.assign(**change)
        assert all(result.passed for result in check(tmp_path, bad))
        with pytest.raises(RowFaultError, match=rule) as caught:
            check(tmp_path, bad, strict=True)
        assert caught.value.column == column


def test_a_synthetic_table_is_judged_always() -> None:
    declared = dataset(COLUMNS, expectations=OWN)
    frame = pd.DataFrame({"a": ["x1"], "n": pd.Series([7], dtype="Int64"), "m": [9]})
    assert [r.passed for r in check_own(frame, declared)] == [False, True, True]
    assert len(check_own(frame[["a"]], declared)) == 1


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        ({"expect": "values_betwen", "column": "n"}, "did you mean 'values_between'"),
        ({"expect": "values_between", "column": "nn"}, "unknown column 'nn'"),
        ({"expect": "values_between", "column": "n", "arguments": {"mostly": 0.9}}, "no argument"),
        ({"expect": "a_equal_to_b", "column": "n"}, "column_a and column_b"),
        ({"expect": "values_between"}, "is about column"),
    ],
)
def test_an_expectation_that_does_not_fit_is_told_at_parse_time(own: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        dataset(COLUMNS, expectations=[own])


def test_expectations_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "datasets").mkdir()
    (tmp_path / "expectations").mkdir()
    (tmp_path / "datasets" / "d.yaml").write_text(
        "dataset: d\npopulations: [p]\nprivacy_unit: {max_rows: 1}\nsource: {path: x.csv}\n"
        "columns: {n: {type: integer, min: 0, max: 9}}\nexpectations: expectations/d.yaml\n"
    )
    with pytest.raises(ConfigError, match=r"^expectations/d\.yaml: the file does not exist"):
        load_dataset("d", tmp_path)
    own = tmp_path / "expectations" / "d.yaml"
    own.write_text("expectations:\n  - {expect: values_not_null, column: n}\n")
    assert load_dataset("d", tmp_path).expectations[0].expect == "values_not_null"
    own.write_text("expectations: 3\n")
    with pytest.raises(ConfigError, match=r"expectations/d\.yaml: expectations: missing or not a"):
        load_dataset("d", tmp_path)
