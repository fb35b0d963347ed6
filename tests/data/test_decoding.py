"""Rows decoded on several threads: the same codes, nothing told, nothing left running."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from include.data import decoding
from include.data.decoding import decode_snapshot
from include.data.private import ProtectedTable
from include.data.schema import Schema
from tests.data.conftest import dataset

KEY = bytes(range(32))
COLUMNS = {
    "a": {"type": "category", "values": ["x", "y"]},
    "n": {"type": "integer", "min": 0, "max": 9},
}
UNIT = {"what": "person", "id_column": "pid", "max_rows": 2}


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """300 rows in 43 batches; some units own too many rows, some rows are dropped."""
    monkeypatch.setattr(decoding, "BATCH_ROWS", 7)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "pid": rng.integers(0, 90, 300).astype(str),
            "a": rng.choice(["x", "y", "stranger"], 300),
            "n": rng.integers(0, 12, 300),
        }
    )
    path = tmp_path / "s.parquet"
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path)
    return path


@pytest.mark.parametrize("unit", [None, UNIT])
def test_any_number_of_threads_gives_the_same_codes(
    snapshot: Path, unit: dict[str, Any] | None
) -> None:
    declared = dataset(COLUMNS, privacy_unit=unit or {"what": "person", "max_rows": 1})
    schema = Schema.from_config(declared)
    alone = decode_snapshot(snapshot, schema, declared, KEY, workers=1)
    assert len(alone["a"]) == len(alone["n"]) > 100
    for workers in (2, 3, 64):
        side_by_side = decode_snapshot(snapshot, schema, declared, KEY, workers=workers)
        assert all(np.array_equal(side_by_side[name], alone[name]) for name in alone)


def test_a_fault_in_a_thread_tells_its_class_and_leaves_no_thread(
    snapshot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def burst(*args: Any) -> Any:
        raise ValueError("the row of stranger 7")

    declared = dataset(COLUMNS)
    monkeypatch.setattr(decoding, "encode_kept", burst)
    with pytest.raises(Exception, match=r"failed \(ValueError\)") as caught:
        ProtectedTable.from_snapshot(snapshot, Schema.from_config(declared), declared, KEY)
    assert caught.value.__context__ is None and "stranger" not in str(caught.value)
    assert not [one for one in threading.enumerate() if one.name.startswith("decode")]


def test_a_signal_in_the_main_thread_drops_the_batches_that_wait() -> None:
    """Airflow ends a task by an exception that its signal handler raises in the main thread."""
    encoded: list[int] = []

    def batches() -> Any:
        yield from range(5)
        raise SystemExit

    with pytest.raises(SystemExit):
        for _ in decoding._in_order(batches(), encoded.append, workers=2):
            pass
    assert len(encoded) <= 5
    assert not [one for one in threading.enumerate() if one.name.startswith("decode")]


def test_no_more_batches_are_held_than_threads_and_one() -> None:
    taken, given = [], []

    def batches() -> Any:
        for number in range(20):
            taken.append(number)
            yield number

    for batch in decoding._in_order(batches(), lambda number: number, workers=2):
        given.append(batch)
        assert len(taken) - len(given) <= 2
    assert given == list(range(20))
