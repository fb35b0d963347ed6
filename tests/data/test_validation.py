"""Form stops a run before any budget; rows stop it only where the dataset is strict."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from include.data.errors import FormatError, RowFaultError
from include.data.expectations import Rule, run_rules
from include.data.loaders import read_source
from include.data.schema import Schema
from include.data.snapshot import SnapshotStore
from include.data.validation import storage_kind, validate_format
from tests.data.conftest import dataset

CANARY = "CANARY-8841"
COLUMNS = {
    "a": {"type": "category", "values": ["x", "y"]},
    "n": {"type": "integer", "min": 0, "max": 9},
    "d": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "resolution": "month"},
}
GOOD = pd.DataFrame(
    {"a": ["x", "y"], "n": [1, 2], "d": pd.to_datetime(["2020-01-01", "2020-02-01"])}
)


def check(
    tmp_path: Path, frame: pd.DataFrame | pa.Table, facts: Any = None, **more: Any
) -> list[Any]:
    declared = dataset(COLUMNS, **more)
    store = SnapshotStore(tmp_path / "p", bytes(32))
    ref = store.write([frame], facts=facts)
    return validate_format(ref, Schema.from_config(declared), declared)


def test_a_good_table_passes_with_boolean_results_only(tmp_path: Path) -> None:
    results = check(tmp_path, GOOD)
    assert all(result.passed and not result.raised for result in results)
    assert [r.to_dict() for r in results][:2] == [
        {"column": "a", "rule": "present", "passed": True, "raised": False},
        {"column": "a", "rule": "type", "passed": True, "raised": False},
    ]


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (GOOD.drop(columns="n"), "column 'n' is not in the source"),
        (
            GOOD.assign(n=["1", CANARY]),
            "column 'n' is declared integer but stored as text; .*stored_as",
        ),
        (GOOD.assign(d=[1, 2]), "column 'd' is declared date but stored as integer"),
        (GOOD.assign(n=pd.to_datetime("2020-01-01")), "declared integer but stored as timestamp"),
        (pa.table({"a": [["x"]], "n": [1], "d": ["2020-01-01"]}), "stored as something else"),
    ],
)
def test_a_fault_of_form_names_column_and_rule(tmp_path: Path, frame: Any, sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence) as caught:
        check(tmp_path, frame)
    assert CANARY not in str(caught.value) and caught.value.column and caught.value.rule


def test_what_rows_hold_does_not_stop_a_run(tmp_path: Path) -> None:
    odd = GOOD.assign(a=[CANARY, None], n=[-5, 7000])
    assert all(result.passed for result in check(tmp_path, odd))
    assert all(result.passed for result in check(tmp_path, GOOD.iloc[:0]))


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"a": ["x", CANARY]}, ("a", "type or value")),
        ({"a": ["x", None]}, ("a", "not null")),
        ({"n": [1, 99]}, ("n", "bounds")),
        ({"n": [1, -99]}, ("n", "bounds")),
    ],
)
def test_a_strict_dataset_stops_on_a_row_and_names_column_and_rule(
    tmp_path: Path, change: dict[str, Any], rule: tuple[str, str]
) -> None:
    assert all(r.passed for r in check(tmp_path, GOOD, strict=True))
    with pytest.raises(RowFaultError) as caught:
        check(tmp_path, GOOD.assign(**change), strict=True)
    assert (caught.value.column, caught.value.rule) == rule
    assert CANARY not in str(caught.value)


def test_text_is_no_fault_where_the_source_has_no_types(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,n,d\nx,1,2020-05-05\n")
    declared = dataset(COLUMNS)
    reading = read_source(declared, tmp_path)
    ref = SnapshotStore(tmp_path / "p", bytes(32)).write(reading.chunks, facts=reading.facts)
    assert validate_format(ref, Schema.from_config(declared), declared)


def test_an_id_in_the_source_asks_for_the_privacy_unit(tmp_path: Path) -> None:
    """Several rows a person and no id declared: the unit of privacy would be misstated."""
    facts = {"typed": True, "source_columns": ["person_id", "a", "n", "d"]}
    with pytest.raises(FormatError, match="column 'person_id' but privacy_unit names no id_column"):
        check(tmp_path, GOOD, facts)
    unit = {"what": "person", "id_column": "person_id", "max_rows": 2}
    with pytest.raises(FormatError, match="id column 'person_id' is not in the source"):
        check(tmp_path, GOOD, facts, privacy_unit=unit)
    assert check(tmp_path, GOOD.assign(person_id=[1, 1]), facts, privacy_unit=unit)


def test_great_expectations_leaks_no_value_when_a_rule_cannot_be_evaluated(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    frame = pd.DataFrame({"n": [CANARY, 1, None]})
    rules = [
        Rule("n", "bounds", "ExpectColumnValuesToBeBetween", {"min_value": 0, "max_value": 5}),
        Rule("gone", "not null", "ExpectColumnValuesToNotBeNull"),
        Rule("n", "no such", "ExpectNothingOfTheKind"),
        Rule("n", "values", "ExpectColumnValuesToBeInSet", {"value_set": [1]}),
    ]
    results = run_rules(frame, rules)
    assert [r.passed for r in results] == [False] * 4
    assert [r.raised for r in results] == [True, True, True, False]
    out = capsys.readouterr()
    assert CANARY not in repr(results) + caplog.text + out.out + out.err


def test_words_for_storage_cover_dictionaries_and_nested_types() -> None:
    kinds = [
        pa.dictionary(pa.int8(), pa.string()),
        pa.decimal128(5, 2),
        pa.null(),
        pa.list_(pa.int8()),
    ]
    assert [storage_kind(k) for k in kinds] == ["text", "decimal", "empty", "something else"]
