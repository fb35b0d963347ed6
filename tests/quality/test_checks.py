"""Great Expectations on the synthetic table: every rule holds on a good table and falls alone."""

from __future__ import annotations

import pandas as pd
import pytest

from include.quality import checks
from include.quality.checks import QualityError, check_synthetic
from include.quality.facts import ColumnFacts
from tests.quality.facts_example import HOSTILE

COLUMNS = (
    ColumnFacts("sector", "category", ("a", "b", "(no value)"), True, ("a", "b")),
    ColumnFacts("age", "integer", ("0 to 9", "10 to 19"), False, None, "0", "19"),
    ColumnFacts("pay", "float", ("0 to 1", "1 to 2"), True, None, "0.0", "2.0"),
    ColumnFacts("member", "boolean", ("false", "true")),
    ColumnFacts("since", "date", ("2020", "2021")),
    ColumnFacts("row", "key", ()),
)


def good() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "sector": pd.array(["a", None, "b"], dtype="str"),
            "age": pd.array([0, 7, 19], dtype="Int64"),
            "pay": [0.5, float("nan"), 2.0],
            "member": pd.array([True, False, True], dtype="boolean"),
            "since": pd.to_datetime(["2020-01-01", "2021-01-01", "2020-01-01"]),
            "row": pd.array([1, 2, 3], dtype="Int64"),
        }
    )


def failed(frame: pd.DataFrame, rows: int | None = 3) -> set[tuple[str | None, str]]:
    return {
        (o.column, o.rule)
        for o in check_synthetic(frame, COLUMNS, expected_rows=rows)
        if not o.passed
    }


def test_a_good_table_passes_every_rule_quietly(capfd, caplog):
    outcomes = check_synthetic(good(), COLUMNS, expected_rows=3)
    assert all(o.passed and not o.raised for o in outcomes)
    assert {o.rule for o in outcomes} >= {
        "no empty cells",
        "only declared values",
        "inside the declared range",
        "number of rows follows the declared rule",
        "no number twice",
    }
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")
    assert not [r for r in caplog.records if r.name.startswith("great_expectations")]


@pytest.mark.parametrize(
    ("column", "values", "rule"),
    [
        ("sector", pd.array(["a", "zz", None], dtype="str"), "only declared values"),
        ("age", pd.array([0, 20, 3], dtype="Int64"), "inside the declared range"),
        ("age", pd.array([0, None, 3], dtype="Int64"), "no empty cells"),
        ("age", pd.array(["0", "1", "2"], dtype="str"), "type is integer"),
        ("pay", [0.1, 2.5, 1.0], "inside the declared range"),
        ("row", pd.array([1, 1, 2], dtype="Int64"), "no number twice"),
    ],
)
def test_each_fault_fails_its_own_rule(column, values, rule):
    frame = good().assign(**{column: values})
    assert (column, rule) in failed(frame)
    assert {name for name, _ in failed(frame)} == {column}


def test_row_count_and_columns_are_rules_of_the_table():
    assert failed(good(), rows=4) == {(None, "number of rows follows the declared rule")}
    assert failed(good(), rows=None) == set()
    swapped = good()[["age", "sector", "pay", "member", "since", "row"]]
    assert failed(swapped) == {(None, "columns are the declared ones, in order")}


def test_names_of_any_script_are_kept_apart():
    columns = [ColumnFacts(n, "category", ("x", "y"), False, ("x", "y")) for n in HOSTILE]
    frame = pd.DataFrame({n: pd.array(["x", "y"], dtype="str") for n in HOSTILE})
    assert all(o.passed for o in check_synthetic(frame, columns, expected_rows=2))
    broken = frame.assign(**{HOSTILE[2]: pd.array(["x", "?"], dtype="str")})
    bad = [o for o in check_synthetic(broken, columns) if not o.passed]
    assert [(o.column, o.rule) for o in bad] == [(HOSTILE[2], "only declared values")]


def test_large_tables_are_looked_at_in_slices(monkeypatch):
    monkeypatch.setattr(checks, "SLICE_ROWS", 2)
    assert failed(good()) == set()
    late = good().assign(age=pd.array([0, 1, 99], dtype="Int64"))
    assert failed(late) == {("age", "inside the declared range")}
    apart = good().assign(row=pd.array([1, 2, 1], dtype="Int64"))  # equal keys, different slices
    assert failed(apart) == {("row", "no number twice")}


def test_an_empty_table_gets_a_clear_answer():
    assert failed(good().iloc[:0], rows=0) == set()


def test_an_unknown_type_is_named():
    with pytest.raises(QualityError, match="type 'text' is not one of"):
        check_synthetic(pd.DataFrame({"a": ["x"]}), [ColumnFacts("a", "text", ("x",))])
