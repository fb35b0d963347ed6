"""Two tables that differ in one row differ in one count, and in nothing else that can be seen."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from include.data.loaders import read_source
from include.data.private import ProtectedTable
from include.data.schema import Schema
from include.data.snapshot import SnapshotStore
from tests.data.conftest import dataset

COLUMNS: dict[str, Any] = {
    "a": {"type": "category", "values": ["x", "y"], "outside": "other"},
    "n": {"type": "integer", "min": 0, "max": 9, "bins": [0, 5], "nullable": True},
    "f": {"type": "float", "min": 0, "max": 1, "bins": 2, "outside": "null", "nullable": True},
    "d": {
        "type": "datetime",
        "min": "2020-01-01",
        "max": "2021-12-31",
        "resolution": "month",
        "nullable": True,
    },
    "b": {"type": "boolean", "nullable": True},
}

cells = st.one_of(
    st.sampled_from(["x", "y", "", "NA", "3", "-1", "1e999", "0.5", "2020-05-05", "yes", "\ufeff"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
rows = st.lists(st.tuples(*[cells] * len(COLUMNS)), max_size=5)


def counts(root: Path, table: list[tuple[str, ...]], unit: dict[str, Any] | None = None) -> Any:
    with (root / "x.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerows([[*COLUMNS, "pid"], *table])
    more = {"privacy_unit": unit} if unit else {}
    declared = dataset(COLUMNS, **more)
    reading = read_source(declared, root)
    ref = SnapshotStore(root / "protected", bytes(32)).write(reading.chunks, facts=reading.facts)
    protected = ProtectedTable.from_snapshot(
        ref.path, Schema.from_config(declared), declared, bytes(32)
    )
    with protected.spending():
        return protected.counts(tuple(COLUMNS))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("neighbours")


@given(rows, st.tuples(*[cells] * len(COLUMNS)))
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
def test_one_row_more_adds_one_count_whatever_its_cells_are(
    root: Path, table: list[tuple[str, ...]], extra: tuple[str, ...]
) -> None:
    named = [(*row, "p") for row in table]
    before, after = counts(root, named), counts(root, [*named, (*extra, "p")])
    assert before.shape == after.shape
    assert np.abs(after - before).sum() == 1  # each policy here keeps every row
    assert counts(root, [(*extra, "p"), *named]).tolist() == after.tolist()


@given(
    st.lists(st.tuples(st.tuples(*[cells] * len(COLUMNS)), st.sampled_from("pqr")), max_size=8),
    st.integers(1, 3),
)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_one_unit_moves_at_most_its_bound(
    root: Path, table: list[tuple[tuple[str, ...], str]], bound: int
) -> None:
    unit = {"what": "person", "id_column": "pid", "max_rows": bound}
    whole = counts(root, [(*row, pid) for row, pid in table], unit)
    without = counts(root, [(*row, pid) for row, pid in table if pid != "p"], unit)
    own = sum(pid == "p" for _, pid in table)
    assert (whole >= without).all()
    assert (whole - without).sum() == min(own, bound)
