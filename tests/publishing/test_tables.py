"""CSV and Parquet tell the same table, whatever the names and values are."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from include.publishing.tables import (
    pandas_arguments,
    table_schema,
    typed_frame,
    write_csv,
    write_parquet,
)
from include.publishing.verify import _row_faults
from include.quality.facts import ColumnFacts

# Any character a declaration can hold; no lone surrogates, which no file can.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=8)
NAMES = st.lists(TEXT.filter(str.strip), min_size=1, max_size=4, unique=True)


@st.composite
def tables(draw):
    names = draw(NAMES)
    rows = draw(st.integers(0, 6))
    columns, cells = [], {}
    for name in names:
        kind = draw(st.sampled_from(["category", "integer", "float", "boolean", "key"]))
        nullable = kind != "key" and draw(st.booleans())
        pool, values = _pool(draw, kind)
        items = [
            None if nullable and draw(st.booleans()) else draw(st.sampled_from(pool))
            for _ in range(rows)
        ]
        if kind == "key":
            items = list(range(1, rows + 1))
        columns.append(ColumnFacts(name, kind, tuple(map(str, pool)), nullable, values))
        dtype = {"category": "str", "float": "Float64", "boolean": "boolean"}.get(kind, "Int64")
        cells[name] = pd.array(items, dtype=dtype)
    return columns, pd.DataFrame(cells, columns=names)


def _pool(draw, kind):
    if kind == "category":
        values = draw(st.lists(TEXT, min_size=1, max_size=4, unique=True))
        return values, tuple(values)
    if kind == "integer":
        return draw(st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=4)), None
    if kind == "float":
        finite = st.floats(allow_nan=False, allow_infinity=False)
        return draw(st.lists(finite, min_size=1, max_size=4)), None
    return [True, False], None


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables())
def test_both_files_read_back_as_the_table(drawn):
    columns, frame = drawn
    table = typed_frame(frame, columns)
    with tempfile.TemporaryDirectory() as folder:
        csv_path, parquet_path = Path(folder) / "data.csv", Path(folder) / "data.parquet"
        write_csv(csv_path, table, columns)
        write_parquet(parquet_path, table)
        from_parquet = pd.read_parquet(parquet_path)
        from_csv = pd.read_csv(csv_path, **pandas_arguments(columns))
        faults = _faults(csv_path, columns)
    # An empty Parquet file holds no dictionary, so its categories come back without values.
    same = len(table) > 0
    pd.testing.assert_frame_equal(from_parquet, table, check_categorical=same, check_dtype=same)
    # CSV tells which categories occur; only the Parquet file also tells the declared ones.
    for column in columns:
        if column.type == "category":
            assert from_csv[column.name].astype("str").equals(table[column.name].astype("str"))
    rest = [c.name for c in columns if c.type != "category"]
    pd.testing.assert_frame_equal(from_csv[rest], table[rest], check_dtype=len(table) > 0)
    assert list(from_csv.columns) == [c.name for c in columns]
    assert faults == set()


def _faults(path: Path, columns: list[ColumnFacts]) -> set[tuple[str, str]]:
    import csv

    with path.open(encoding="utf-8", newline="") as file:
        return _row_faults(csv.reader(file), table_schema(columns))
