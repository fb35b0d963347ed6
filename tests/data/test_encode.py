"""Cells to codes and back: the declared domain decides, row by row."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from include.config.periods import period_index
from include.data.cells import _periods
from include.data.encode import decode, encode, encode_kept, row_faults
from include.data.errors import FormatError
from tests.data.conftest import schema

RNG = np.random.default_rng(7)


def codes_of(cells: Any, column: dict[str, Any]) -> list[int | None]:
    """The code of each cell; None where the row is dropped."""
    frame = cells if isinstance(cells, pa.Table) else pd.DataFrame({"a": cells})
    codes, kept = encode_kept(frame, schema({"a": column}))
    return [int(c) if k else None for c, k in zip(codes[:, 0], kept, strict=True)]


CATEGORY = {"type": "category", "values": ["x", "y"]}
NUMBER = {"type": "integer", "min": 0, "max": 9, "bins": [0, 5]}


@pytest.mark.parametrize(
    ("policy", "stray", "missing"),
    [
        ({}, None, None),
        ({"outside": "drop"}, None, None),
        ({"outside": "other"}, 2, 2),
        ({"nullable": True}, 2, 2),
        ({"nullable": True, "outside": "drop"}, None, 2),
        ({"nullable": True, "outside": "other"}, 2, 3),
    ],
)
def test_each_policy_of_a_category(policy: dict[str, Any], stray: Any, missing: Any) -> None:
    cells = ["x", "y", "stranger", None, float("nan"), pd.NA, "", "  "]
    assert codes_of(cells, {**CATEGORY, **policy}) == [0, 1, stray, *[missing] * 5]


@pytest.mark.parametrize(
    ("policy", "outside", "unreadable", "missing"),
    [
        ({}, (0, 1), None, None),
        ({"outside": "drop"}, (None, None), None, None),
        ({"nullable": True}, (0, 1), 2, 2),
        ({"nullable": True, "outside": "null"}, (2, 2), 2, 2),
        ({"nullable": True, "outside": "drop"}, (None, None), None, 2),
    ],
)
def test_each_policy_of_a_number(
    policy: dict[str, Any], outside: Any, unreadable: Any, missing: Any
) -> None:
    cells = ["0", "4", "5", "9", "-1", "10", "abc", "4.5", "", None]
    want = [0, 0, 1, 1, *outside, unreadable, unreadable, missing, missing]
    assert codes_of(cells, {**NUMBER, **policy}) == want


def test_storage_types_do_not_change_the_code() -> None:
    column = {**NUMBER, "nullable": True}
    for cells in (
        pd.Series([1, 7, None]),
        pd.Series([1, 7, None], dtype="Int64"),
        pd.Series(["1", "7", None]),
        pd.Series([" 1", "7.0", "NaN"], dtype=object),
        pd.Series([1, "7", None], dtype=object),
        pd.Series([Decimal("1.0"), Decimal("7"), None], dtype=object),
        pd.Series([1.0, 7.0, np.nan], dtype="float32"),
        pd.Series(["1", "7", None], dtype="category"),
    ):
        assert codes_of(cells, column) == [0, 1, 2]
    texts = {"type": "category", "values": ["1", "7"], "nullable": True}
    for cells in (
        pd.Series([1.0, 7.0, np.nan]),
        pd.Series(["1.0", "7 ", ""]),
        pd.Series([1, 7, pd.NA]),
    ):
        assert codes_of(cells, texts) == [0, 1, 2]


def test_truth_values_in_their_usual_spellings() -> None:
    column = {"type": "boolean", "nullable": True}
    assert codes_of(["yes", "NO", "t", "0", "1", "maybe", None], column) == [1, 0, 1, 0, 1, 2, 2]
    assert codes_of([True, False, None], column) == [1, 0, 2]
    assert codes_of([1.0, 0.0, np.nan], column) == [1, 0, 2]


def test_no_cell_depends_on_its_neighbours() -> None:
    """A cell that does not parse, overflows or is infinite must not change another's code."""
    column = {**NUMBER, "nullable": True}
    alone = codes_of(["3"], column)
    for stranger in (
        "abc",
        "1e999",
        "-inf",
        "nan",
        "１",
        "1_0",
        "9" * 400,
        "0x10",
        "\x00",
        "🙂",
        "+3",
    ):
        assert codes_of(["3", stranger], column)[:1] == alone
    assert codes_of(["1e999", "-1e999", "1_0", "１", "0x10"], column) == [1, 0, 2, 2, 2]


def test_dates_by_resolution_from_text_and_from_typed_columns() -> None:
    column = {"type": "date", "min": "2020-01-01", "max": "2021-12-31", "resolution": "quarter"}
    column["nullable"] = True
    texts = ["2020-02-29", "2021-12-31", "2020-02-30", "1999-01-01", "2022-01-01", "soon", None]
    assert codes_of(texts, column) == [0, 7, 8, 0, 7, 8, 8]
    typed = pd.Series(pd.to_datetime(["2020-02-29", "2021-12-31", "1999-01-01", None]))
    assert codes_of(typed, column) == [0, 7, 0, 8]
    assert codes_of(pd.Series([dt.date(2020, 4, 1), None], dtype=object), column) == [1, 8]
    frame = decode(np.array([[0], [7], [8]]), schema({"a": column}), RNG)
    assert list(frame["a"][:2]) == [pd.Timestamp("2020-01-01"), pd.Timestamp("2021-10-01")]
    assert pd.isna(frame["a"][2])


def test_moments_are_read_as_utc() -> None:
    column = {
        "type": "datetime",
        "min": "2024-01-01",
        "max": "2024-01-02T23:00",
        "resolution": "hour",
    }
    assert codes_of(["2024-01-01T05:59", "2024-01-01T05:00+05:00"], column) == [5, 0]
    aware = pd.Series(pd.to_datetime(["2024-01-01T05:00+05:00"]))
    assert codes_of(aware, column) == [0]


@pytest.mark.parametrize("resolution", ["minute", "hour", "day", "month", "quarter", "year"])
def test_the_two_ways_of_counting_periods_agree(resolution: str) -> None:
    moments = [
        dt.datetime(1677, 12, 31, 23, 59),
        dt.datetime(1969, 12, 31),
        dt.datetime(2024, 2, 29, 7),
    ]
    fast = _periods(np.array(moments, dtype="datetime64[us]"), resolution)
    assert list(fast) == [period_index(moment, resolution) for moment in moments]


def test_whole_numbers_with_missing_cells_come_back_whole() -> None:
    shape = schema({"a": {**NUMBER, "nullable": True}})
    frame = decode(np.array([[0], [1], [2]]), shape, RNG)
    assert str(frame["a"].dtype) == "Int64"
    assert 0 <= frame["a"][0] <= 4 and 5 <= frame["a"][1] <= 9 and frame["a"][2] is pd.NA
    assert frame.to_csv(index=False).splitlines()[3] == '""'


def test_dependence_of_missingness_survives() -> None:
    """Column b is empty exactly where a is 1: its own level keeps that in the pair's table."""
    shape = schema({"a": {"type": "boolean"}, "b": {**CATEGORY, "nullable": True}})
    codes = encode(pd.DataFrame({"a": [0, 1, 0, 1], "b": ["x", None, "y", None]}), shape)
    assert {tuple(row) for row in codes} == {(0, 0), (1, 2), (0, 1)}
    back = decode(codes, shape, RNG)
    assert list(back["b"].isna()) == [False, True, False, True]


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_tiny_tables_and_constant_columns_encode(rows: int) -> None:
    shape = schema({"a": CATEGORY, "b": {"type": "category", "values": ["only"]}})
    codes = encode(pd.DataFrame({"a": ["x"] * rows, "b": ["only"] * rows}), shape)
    assert codes.shape == (rows, 2)
    assert list(decode(codes, shape, RNG).columns) == ["a", "b"]


def test_an_empty_column_is_all_missing_or_drops_all_rows() -> None:
    assert codes_of([None, None], {**CATEGORY, "nullable": True}) == [2, 2]
    assert codes_of([None, None], CATEGORY) == [None, None]
    assert codes_of([np.nan, np.nan], {**NUMBER, "nullable": True}) == [2, 2]


def test_missing_and_duplicate_columns_are_named() -> None:
    shape = schema({"größe": CATEGORY})
    with pytest.raises(FormatError, match="'größe' is not in the source"):
        encode(pd.DataFrame({"other": ["x"]}), shape)
    twice = pa.table([pa.array(["x"]), pa.array(["y"])], names=["größe", "größe"])
    with pytest.raises(FormatError, match="stands 2 times"):
        encode(twice, shape)


def test_row_faults_name_column_and_rule_only() -> None:
    shape = schema({"a": CATEGORY, "b": NUMBER, "c": {"type": "boolean"}})
    frame = pd.DataFrame({"a": ["x", "SECRET"], "b": [3, 77], "c": [True, None]})
    assert row_faults(frame, shape) == [("a", "type or value"), ("b", "bounds"), ("c", "not null")]
    assert row_faults(frame.iloc[:1], shape) == []


def test_keys_come_back_as_fresh_numbers() -> None:
    shape = schema(
        {"pid": {"type": "key"}, "a": CATEGORY, "ssn": {"type": "key", "replace": "drop"}}
    )
    frame = decode(np.array([[0], [1], [1]]), shape, RNG)
    assert list(frame.columns) == ["pid", "a"]
    assert list(frame["pid"]) == [1, 2, 3]
    assert shape.domain == {"a": 2}


def test_a_file_gives_back_the_types_that_were_decoded(tmp_path: Path) -> None:
    bounds = {"min": "2020-01-01", "max": "2020-12-31", "resolution": "month", "nullable": True}
    shape = schema(
        {
            "k": {"type": "key"},
            "c": {**CATEGORY, "nullable": True},
            "b": {"type": "boolean", "nullable": True},
            "n": {**NUMBER, "nullable": True},
            "f": {"type": "float", "min": 0, "max": 1, "bins": 2},
            "d": {"type": "date", **bounds},
            "t": {"type": "datetime", **bounds},
        }
    )
    frame = decode(np.array([[0, 0, 0, 0, 0, 0], [2, 2, 2, 1, 12, 12]]), shape, RNG)
    frame.to_parquet(tmp_path / "x.parquet")
    back = pd.read_parquet(tmp_path / "x.parquet")
    pd.testing.assert_frame_equal(back, frame)
    assert [str(kind) for kind in back.dtypes] == [
        "Int64", "str", "boolean", "Int64", "float64", "datetime64[us]", "datetime64[us]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("low", "high", "bins", "decimals"),
    [(0, 10, 5, 1), (0, 10, [0, 2, 8], 1), (0, 1, 10, 1), (-1.2, 3.3, 9, 1), (0, 9, 3, 0)],
)
def test_a_decimal_number_is_written_with_its_declared_decimals(
    low: float, high: float, bins: Any, decimals: int
) -> None:
    column = {"type": "float", "min": low, "max": high, "bins": bins, "decimals": decimals}
    shape = schema({"a": column})
    codes = RNG.integers(0, shape.domain["a"], (20_000, 1))
    written = decode(codes, shape, RNG)["a"]
    texts = [repr(number) for number in written]
    assert {len(text.partition(".")[2]) for text in texts} == {1}
    assert written.between(low, high).all()
    assert np.array_equal(encode(pd.DataFrame({"a": texts}), shape), codes)


def test_equal_bins_begin_where_they_are_meant_to() -> None:
    column = {"type": "float", "min": 0, "max": 1, "bins": 10, "decimals": 1}
    assert codes_of(["0.3", "0.6", "0.7"], column) == [3, 6, 7]


def test_bins_that_hold_no_number_of_the_declared_decimals_are_refused() -> None:
    with pytest.raises(ValueError, match="no number of 0 decimals lies in the bin that begins at"):
        schema({"a": {"type": "float", "min": 0, "max": 1, "bins": 4, "decimals": 0}})


# ---- round trip over arbitrary schemas ------------------------------------------------------

names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12)
words = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=8).filter(
    lambda s: s.strip() and not s.strip().endswith(".0")
)


@st.composite
def columns(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["category", "boolean", "integer", "float", "date", "datetime"]))
    column: dict[str, Any] = {"type": kind, "nullable": draw(st.booleans())}
    if kind == "category":
        unique = draw(st.lists(words, min_size=1, max_size=6))
        plain = {__import__("unicodedata").normalize("NFC", w.strip()): w for w in unique}
        column["values"] = list(plain.values())
        column["outside"] = draw(st.sampled_from(["other", "drop"]))
    elif kind in ("integer", "float"):
        low = draw(st.integers(-1000, 1000))
        column |= {
            "min": low,
            "max": low + draw(st.integers(1, 500)),
            "bins": draw(st.integers(1, 9)),
        }
        if kind == "float":
            column["decimals"] = draw(st.sampled_from([None, 0, 2]))
    elif kind != "boolean":
        low_day = draw(st.dates(dt.date(1700, 1, 1), dt.date(2200, 1, 1)))
        days = draw(st.integers(0, 1500))
        column |= {
            "min": low_day.isoformat(),
            "max": (low_day + dt.timedelta(days=days)).isoformat(),
            "resolution": draw(st.sampled_from(["day", "month", "quarter", "year"])),
        }
    return column


@given(
    st.dictionaries(names, columns(), min_size=1, max_size=5),
    st.integers(0, 40),
    st.integers(0, 2**32),
)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_codes_survive_a_round_trip(declared: dict[str, Any], rows: int, seed: int) -> None:
    try:
        shape = schema(declared)
    except ValueError:
        return  # names that look the same are refused: told elsewhere
    rng = np.random.default_rng(seed)
    cards = list(shape.domain.values())
    codes = np.stack([rng.integers(0, card, rows) for card in cards], axis=1)
    frame = decode(codes, shape, rng)
    assert np.array_equal(encode(frame, shape), codes)
    # the same through CSV text, as a recipient would read it
    table = pa.table({name: pa.array(_as_csv(frame[name]), pa.string()) for name in frame})
    assert np.array_equal(encode(table, shape), codes)


def _as_csv(series: pd.Series[Any]) -> list[str | None]:
    return [
        None if pd.isna(v) else v.isoformat() if hasattr(v, "isoformat") else str(v) for v in series
    ]


def test_storage_that_no_type_declares_becomes_text_and_never_an_error() -> None:
    column = {"type": "category", "values": ["1:00:00", "x"], "outside": "other"}
    odd = [
        pa.array([dt.timedelta(hours=1), None]),
        pa.array([["a"], None]),
        pa.array([{"a": 1}, None]),
        pa.array([dt.time(1), None]),
        pa.array([None, None]),
        pa.array([b"\xff", b"x"]),
    ]
    for array in odd:
        assert len(codes_of(pa.table({"a": array}), column)) == 2
