"""The results file: one row a run, the latest last."""

from __future__ import annotations

import csv
from pathlib import Path

from benchmarks.appended import read_rows

FIELDS = (
    "table",
    "peer",
    "mechanism",
    "version",
    "seed",
    "status",
    "tv2_mean",
    "tv3_mean",
    "tv2_worst",
    "cpu_s",
    "wall_s",
    "peak_mb",
    "cap_cpu_s",
    "cap_mb",
    "note",
    "date",
    "machine",
)
KEY = ("table", "peer", "mechanism", "seed")
Row = dict[str, str]


def key(row: Row) -> tuple[str, ...]:
    """What names a run."""
    return tuple(row[name] for name in KEY)


def is_done(row: Row, cap_cpu_s: float, version: str) -> bool:
    """Tell whether a run need not be repeated: same version, and not ended by a smaller cap."""
    if row["version"] != version or row["status"] == "failed":
        return False
    return row["status"] != "capped" or float(row["cap_cpu_s"]) >= cap_cpu_s


def keep(path: Path, row: Row) -> None:
    """Add a run; it takes the place of an earlier one of the same name."""
    rows = [other for other in read_rows(path) if key(other) != key(row)]
    rows.append(row)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    with beside.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    beside.replace(path)
