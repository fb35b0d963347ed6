"""A value that stands once in the raw data is found nowhere but in the protected store."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from include.data.encode import encode, row_faults
from include.data.errors import FormatError, RowFaultError
from include.data.expectations import CheckResult
from include.data.loaders import read_source
from include.data.partition import Partition
from include.data.private import ProtectedTable
from include.data.schema import Schema
from include.data.snapshot import SnapshotStore
from include.data.validation import validate_format, validate_rows
from include.errors import CuSynError
from tests.data.conftest import dataset

CANARY = "CANARY-59c1"
COLUMNS: dict[str, Any] = {
    "a": {"type": "category", "values": ["x", "y"], "outside": "other"},
    "n": {"type": "integer", "min": 0, "max": 9, "nullable": True},
    "d": {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "resolution": "month"},
}
UNIT = {"what": "person", "id_column": "pid", "max_rows": 2}
CSV = f"""pid,a,n,d
p,x,1,2020-01-01
{CANARY},{CANARY},{CANARY},{CANARY}
{CANARY},y,2,2020-02-01,{CANARY}
"""


def run(
    root: Path, *, strict: bool = False, partition: Partition | None = None
) -> list[CheckResult]:
    declared = dataset(COLUMNS, privacy_unit=UNIT, strict=strict, source={"path": "raw.csv"})
    shape = Schema.from_config(declared)
    store = SnapshotStore(root / "protected", bytes(32))
    reading = read_source(declared, root)
    ref = store.write(reading.chunks, partition, facts=reading.facts)
    results = validate_format(store.open(ref.snapshot_id), shape, declared)
    table = ProtectedTable.from_snapshot(ref.path, shape, declared, bytes(32))
    with table.spending():
        assert table.counts(("a", "n")).sum() == 1  # the canary's row: its date drops it
    logging.getLogger(__name__).info("%s %s %s", results, ref, reading.facts)
    return results


def test_the_plain_path(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    (tmp_path / "raw.csv").write_text(CSV)
    results = run(tmp_path)
    out = capfd.readouterr()
    assert CANARY not in caplog.text + out.out + out.err + repr(results)
    for path in tmp_path.rglob("*"):
        if path.is_file() and path.name not in ("raw.csv", "data.parquet"):
            assert CANARY.encode() not in path.read_bytes(), path
    assert CANARY in str(pq.read_table(next(tmp_path.rglob("data.parquet"))).to_pydict())


def damaged_file(root: Path) -> None:
    path = next(root.rglob("data.parquet"))
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-40])
    declared = dataset(COLUMNS)
    ProtectedTable.from_snapshot(path, Schema.from_config(declared), declared, bytes(32))


def text_as_number(root: Path) -> None:
    frame = pd.DataFrame({"a": [CANARY], "n": [CANARY], "d": ["2020-01-01"]})
    declared = dataset(COLUMNS)
    ref = SnapshotStore(root / "q", bytes(32)).write([frame])
    validate_format(ref, Schema.from_config(declared), declared)


def nested_column(root: Path) -> None:
    frame = pd.DataFrame({"a": [{CANARY: 1}], "n": [[CANARY]], "d": [CANARY]})
    declared = dataset(COLUMNS)
    validate_format(
        SnapshotStore(root / "q", bytes(32)).write([frame]), Schema.from_config(declared), declared
    )


def broken_chunk(root: Path) -> None:
    def chunks() -> Any:
        yield pd.DataFrame({"a": [CANARY]})
        raise KeyError(CANARY)

    SnapshotStore(root / "q", bytes(32)).write(chunks())


def later_chunk_of_another_type(root: Path) -> None:
    SnapshotStore(root / "q", bytes(32)).write(
        [pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [CANARY]})]
    )


@pytest.mark.parametrize(
    "fail",
    [
        lambda root: run(root, strict=True),
        lambda root: run(root, partition=Partition("gone", "1")),
        lambda root: validate_rows(
            next(root.rglob("data.parquet")), Schema.from_config(dataset(COLUMNS))
        ),
        damaged_file,
        text_as_number,
        nested_column,
        broken_chunk,
        later_chunk_of_another_type,
    ],
)
def test_every_forced_failure(
    tmp_path: Path,
    fail: Callable[[Path], object],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "raw.csv").write_text(CSV)
    run(tmp_path)
    caplog.set_level(logging.DEBUG)
    with pytest.raises(CuSynError) as caught:
        fail(tmp_path)
    told = "".join(traceback.format_exception(caught.value)) + repr(caught.value.__dict__)
    out = capfd.readouterr()
    assert CANARY not in told + caplog.text + out.out + out.err
    assert caught.value.__cause__ is None


def test_encoding_itself_never_raises_on_a_cell() -> None:
    shape = Schema.from_config(dataset(COLUMNS))
    odd = [CANARY, b"\xff", 1e400, {"k": CANARY}, [CANARY], float("nan"), None, True, "\ud800"]
    for cell in odd:
        frame = pd.DataFrame({"a": pd.Series([cell], dtype=object), "n": [1], "d": ["2020-01-01"]})
        assert len(encode(frame, shape)) == 1
        assert row_faults(frame, shape)


def test_errors_carry_names_only() -> None:
    assert str(RowFaultError("a", "bounds")).startswith("column 'a' breaks the rule 'bounds'")
    assert FormatError("a", "type", "x; y").rule == "type"
