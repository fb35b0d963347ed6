"""Memory and time that do not grow where they must not."""

from __future__ import annotations

import csv
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from include.data.encode import encode
from include.data.loaders import read_source
from include.data.private import ProtectedTable
from include.data.schema import Schema
from include.data.snapshot import SnapshotStore
from tests.data.conftest import dataset

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_ten_million_rows_are_counted_in_seconds_and_bounded_memory() -> None:
    out = subprocess.run(
        [sys.executable, "-m", "benchmarks.counting", "10000000", "16"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    results = list(csv.DictReader(out.stdout.splitlines()))
    assert [result["workers"] for result in results] == ["1", "2"]
    assert len({result["counts"] for result in results}) == 1
    for result in results:
        assert (result["rows"], result["pairs"]) == ("10000000", "120")
        assert float(result["count_cpu_s"]) < 4
        assert float(result["peak_mb"]) < 600


def test_a_column_of_distinct_decimals_is_binned_in_flat_memory() -> None:
    """20,000 distinct values are as many cells as the declared bins, not as many as the values."""
    shape = {"x": {"type": "float", "min": 0, "max": 1, "bins": 10}, "b": {"type": "boolean"}}
    declared = dataset(shape)
    schema = Schema.from_config(declared)
    frame = pd.DataFrame(
        {"x": np.random.default_rng(3).random(20_000), "b": [True, False] * 10_000}
    )

    codes = encode(frame, schema)
    assert codes.dtype == np.uint8 and schema.domain == {"x": 10, "b": 2}
    table = ProtectedTable.from_codes(codes, schema.domain)
    with table.spending():
        tracemalloc.start()
        assert table.counts(("x", "b")).sum() == 20_000
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
        tracemalloc.stop()


def test_reading_holds_one_chunk_at_a_time(tmp_path: Path) -> None:
    """Three times the rows, about the same peak: the source is never held whole."""
    peaks = []
    shape = {"a": {"type": "category", "values": ["x", "y"]}}
    for rows in (200_000, 600_000):
        (tmp_path / "x.csv").write_text("a,b\n" + "x,some longer text that is not read\n" * rows)
        code = (
            "import sys, resource; from pathlib import Path; sys.path.insert(0, '.');"
            "from tests.data.conftest import dataset; from include.data.loaders import read_source;"
            "from include.data.snapshot import SnapshotStore; root = Path(sys.argv[1]);"
            f"r = read_source(dataset({shape!r}), root);"
            "SnapshotStore(root / 'p', bytes(32)).write(r.chunks, facts=r.facts);"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
        )
        out = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        peaks.append(float(out.stdout))
    assert peaks[1] < peaks[0] + 60


def test_a_declared_value_that_no_row_has_changes_nothing_else(tmp_path: Path) -> None:
    shape = {
        "a": {"type": "category", "values": ["x", "y", "never there"]},
        "c": {"type": "boolean"},
    }
    declared = dataset(shape)
    pd.DataFrame({"a": ["x"] * 99 + ["y"], "c": [True] * 100}).to_csv(
        tmp_path / "x.csv", index=False
    )
    reading = read_source(declared, tmp_path)
    ref = SnapshotStore(tmp_path / "p", bytes(32)).write(reading.chunks, facts=reading.facts)
    table = ProtectedTable.from_snapshot(
        ref.path, Schema.from_config(declared), declared, bytes(32)
    )
    with table.spending():
        assert table.counts(("a", "c")).tolist() == [0, 99, 0, 1, 0, 0]
