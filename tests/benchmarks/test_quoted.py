"""Tables in docs/mechanisms.md are what the stored results of three benchmarks give."""

from __future__ import annotations

import csv
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import footprint, reuse, shares

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("name", "module"), [("shares", shares), ("footprint", footprint), ("reuse", reuse)]
)
def test_the_page_shows_the_stored_figures(name: str, module: ModuleType) -> None:
    page = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")
    shown = page.partition(f"<!-- {name}: begin -->\n")[2].partition(f"\n<!-- {name}: end -->")[0]
    assert shown == module.page()


def test_counts_are_equal_and_quoted() -> None:
    path = ROOT / "benchmarks" / "results" / "counting.csv"
    with path.open(newline="", encoding="utf-8") as file:
        one, two = csv.DictReader(file)
    assert one["counts"] == two["counts"] and (one["workers"], two["workers"]) == ("1", "2")
    page = (ROOT / "docs" / "mechanisms.md").read_text(encoding="utf-8")
    assert f"{one['count_cpu_s']} CPU seconds after decoding" in page
    record = next((ROOT / "docs" / "decisions").glob("0029-*.md")).read_text(encoding="utf-8")
    for row in (one, two):
        figures = [row[key] for key in ("decode_cpu_s", "decode_wall_s", "count_cpu_s")]
        assert f"| {row['workers']} | {' | '.join(figures)} |" in record
        assert f"{row['peak_mb']} MB" in record and f"{row['peak_mb']} MB" in page


def test_the_goals_of_speed_and_memory_hold_in_the_stored_run() -> None:
    with footprint.RESULT.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["table"] for row in rows} == {"nltcs", "adult"}
    for row in rows:
        assert float(row["peak_mb"]) <= 300
        assert float(row["warm_cpu_s"]) <= {"nltcs": 2, "adult": 10}[row["table"]]
        if row["table"] == "nltcs":
            assert float(row["cold_cpu_s"]) <= 6
