"""Immutable copies in the protected store, recognised by keyed content."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from include.data import content
from include.data.errors import FormatError, SnapshotError
from include.data.partition import Partition
from include.data.snapshot import SnapshotRef, SnapshotStore


@pytest.fixture
def store(tmp_path: Path, key: bytes) -> SnapshotStore:
    return SnapshotStore(tmp_path / "protected", key)


FRAME = pd.DataFrame({"a": ["x", "y", None], "year": [1994, 1994, 1996]})


def files_of(ref: SnapshotRef) -> set[str]:
    return {path.name for path in ref.path.parent.iterdir()}


def test_the_same_content_is_the_same_snapshot_however_it_was_cut(
    store: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "GROUP_ROWS", 2)
    whole = store.write([FRAME])
    cut = store.write([FRAME.iloc[:1], FRAME.iloc[1:1], FRAME.iloc[1:]])
    assert cut == whole
    assert store.open(whole.snapshot_id) == whole
    assert pq.read_table(whole.path).num_rows == 3
    assert len(list((whole.path.parent.parent).glob("snap-*"))) == 1


def test_storage_does_not_change_the_content(store: SnapshotStore) -> None:
    as_float = FRAME.assign(year=FRAME["year"].astype("float64"))
    as_category = FRAME.assign(a=FRAME["a"].astype("category"))
    assert store.write([FRAME]) == store.write([as_float]) == store.write([as_category])


@pytest.mark.parametrize(
    "changed",
    [
        FRAME.iloc[:2],
        FRAME.iloc[[1, 0, 2]],
        FRAME.rename(columns={"a": "b"}),
        FRAME.assign(a=["x", "y", ""]),
        FRAME.assign(a=["xy", "", None]),
    ],
)
def test_other_content_is_another_snapshot(store: SnapshotStore, changed: pd.DataFrame) -> None:
    assert store.write([FRAME]).snapshot_id != store.write([changed]).snapshot_id


def test_scope_and_partition_keep_equal_content_apart(store: SnapshotStore) -> None:
    """Two empty partitions must not be seen to be equal."""
    refs = {store.write([FRAME], ("year", year)).snapshot_id for year in ("1", "2")}
    refs |= {store.write([FRAME], scope=scope).snapshot_id for scope in ("d", "e")}
    assert len(refs) == 4


@pytest.mark.parametrize(
    "years",
    [
        [1994, 1994, 1996],
        [1994.0, 1994.0, None],
        ["1994", " 1994", "1996"],
        ["1994.0", "1994", None],
        pd.Series([1994, 1994, pd.NA], dtype="Int64"),
    ],
)
def test_a_partition_is_matched_as_text_or_number(store: SnapshotStore, years: Any) -> None:
    ref = store.write([FRAME.assign(year=years)], Partition("year", "1994"))
    table = pq.read_table(ref.path)
    assert table.column_names == ["a"] and table.num_rows == 2


def test_a_partition_column_that_is_not_there_is_named(store: SnapshotStore) -> None:
    with pytest.raises(FormatError, match="partition column 'yaer' is not in the source"):
        store.write([FRAME], ("yaer", "1994"))


def test_no_rows_keep_their_columns(store: SnapshotStore) -> None:
    assert pq.read_table(store.write([FRAME.iloc[:0]]).path).column_names == ["a", "year"]
    assert pq.read_table(store.write([]).path).num_rows == 0


def test_a_snapshot_cannot_be_changed_unnoticed(store: SnapshotStore) -> None:
    ref = store.write([FRAME])
    assert not ref.path.stat().st_mode & 0o222
    ref.path.chmod(0o600)
    data = bytearray(ref.path.read_bytes())
    data[len(data) // 2] ^= 1
    ref.path.write_bytes(data)
    with pytest.raises(SnapshotError, match="not as it was written"):
        store.open(ref.snapshot_id)
    assert store.write([FRAME]) == ref  # the same content repairs it
    assert store.open(ref.snapshot_id) == ref


def test_ids_and_commitments_are_random_and_the_mac_is_keyed(tmp_path: Path, key: bytes) -> None:
    refs = [SnapshotStore(tmp_path / str(i), key).write([FRAME]) for i in range(2)]
    assert refs[0].mac == refs[1].mac
    assert refs[0].commitment != refs[1].commitment
    assert refs[0].snapshot_id != refs[1].snapshot_id
    other = SnapshotStore(tmp_path / "k", key[::-1]).write([FRAME])
    assert other.mac != refs[0].mac
    assert refs[0].mac not in repr(refs[0]) and str(tmp_path) not in repr(refs[0])


def test_the_commitment_opens_with_nonce_and_content(store: SnapshotStore) -> None:
    """An auditor with access to the protected store can check a commitment."""
    import hashlib

    ref = store.write([FRAME])
    meta = json.loads((ref.path.parent / "meta.json").read_text())
    digest = hashlib.sha256()
    content.absorb(pq.read_table(ref.path), [digest])
    digest.update(json.dumps(["a", "year"]).encode())
    opened = hashlib.sha256(bytes.fromhex(meta["nonce"]) + digest.digest()).hexdigest()
    assert opened == ref.commitment


def test_deleted_data_keep_their_commitment_and_can_be_loaded_again(store: SnapshotStore) -> None:
    ref = store.write([FRAME])
    assert store.expired(1) == []
    assert store.expired(1, now=4e9) == [ref.snapshot_id]
    assert not store.is_deleted(ref.snapshot_id)
    store.delete(ref.snapshot_id)
    assert store.is_deleted(ref.snapshot_id)
    assert files_of(ref) == {"meta.json"}
    assert store.expired(1, now=4e9) == []  # nothing is left to delete
    with pytest.raises(SnapshotError, match="deleted"):
        store.open(ref.snapshot_id)
    assert store.write([FRAME]) == ref
    assert pq.read_table(store.open(ref.snapshot_id).path).num_rows == 3


def test_two_writers_of_the_same_content_agree(store: SnapshotStore) -> None:
    refs: list[SnapshotRef] = []
    threads = [threading.Thread(target=lambda: refs.append(store.write([FRAME]))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({ref.snapshot_id for ref in refs}) == 1


def test_a_failed_write_leaves_nothing_and_tells_no_value(store: SnapshotStore) -> None:
    def chunks() -> Any:
        yield FRAME
        raise ValueError("SECRET-CANARY in row 2")

    with pytest.raises(SnapshotError) as caught:
        store.write(chunks())
    assert "ValueError" in str(caught.value) and "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert list(store._root.iterdir()) == []


def test_what_a_killed_writer_left_is_swept_after_a_day(store: SnapshotStore) -> None:
    store.write([FRAME])
    for name, age in [("draft-old", 90_000), ("draft-new", 60)]:
        (store._root / name).mkdir()
        (store._root / name / "data.parquet").write_text("rows")
        then = time.time() - age
        os.utime(store._root / name, (then, then))
    store.write([FRAME])
    assert [p.name for p in store._root.glob("draft-*")] == ["draft-new"]


@pytest.mark.parametrize("name", ["../../etc", "snap-1", "snap-" + "0" * 32])
def test_an_unknown_id_is_told_plainly(store: SnapshotStore, name: str) -> None:
    with pytest.raises(SnapshotError, match=r"(not a snapshot id|run load again)"):
        store.open(name)


def test_parts_with_other_columns_are_refused_by_name_of_the_fault(store: SnapshotStore) -> None:
    with pytest.raises(FormatError, match="differ in their columns"):
        store.write([FRAME, FRAME.rename(columns={"a": "b"})])
    odd = pa.table({"a": pa.array(["x"]), "year": pa.array(["CANARY"])})
    with pytest.raises(FormatError, match="'year' has another type") as caught:
        store.write([FRAME, odd])
    assert caught.value.__context__ is None


def test_the_age_of_a_snapshot_counts_from_its_last_loading(store: SnapshotStore) -> None:
    ref = store.write([FRAME])
    os.utime(ref.path.parent / "meta.json", (0, 0))
    assert store.expired(30) == [ref.snapshot_id]
    store.write([FRAME])
    assert store.expired(30) == []
