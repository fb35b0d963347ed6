"""How much of the model's memory answers of earlier releases may take, and what that is worth.

    python -m benchmarks.reuse [--seeds 3] [--releases 4] [--megabytes 0 1 80]

Releases of one snapshot of Adult follow each other, each with five interest queries of its own at
epsilon 1 and delta 1e-9, each drawing on all before it. 0 MB is a release that draws on none. What
is told is the last release's: CPU seconds, and the error of its sampled rows over all pairs.
"""

from __future__ import annotations

import argparse
import csv
import sys
from pathlib import Path

from benchmarks.machine import one_thread, stamp

one_thread()

import numpy as np  # noqa: E402

from benchmarks.adult import data_folder  # noqa: E402
from benchmarks.paper.research import DELTA_EXPONENT, Table  # noqa: E402
from benchmarks.runs import Run, run_release  # noqa: E402
from benchmarks.tables import keep_rows  # noqa: E402
from include.accounting import ONE  # noqa: E402
from include.synthesis import Transcript, fitting  # noqa: E402

NAMES = {"mwem_pgm": "MWEM-PGM", "aim": "AIM"}
QUERIES = 5
RESULT = Path(__file__).parent / "results" / "reuse.csv"
COLUMNS = ("mechanism", "megabytes", "release", "seeds", "tv", "tv_se", "cpu_s", "cpu_most_s")


def follow(data: Table, mechanism: str, megabytes: float, releases: int, seed: int) -> Run:
    """Make releases that draw on all before them; return the last one."""
    fitting.EARLIER_MB = megabytes
    earlier: list[Transcript] = []
    for place in range(releases):
        task = data.task(data.queries(100 * seed + place, QUERIES))
        known = earlier if megabytes else []
        run = run_release(mechanism, data.codes, task, ONE, DELTA_EXPONENT, earlier=known)
        earlier.append(run.transcript)
    return run


def measure(
    data: Table, mechanism: str, megabytes: float, releases: int, seeds: int
) -> dict[str, object]:
    """Measure the last of some releases."""
    runs = [follow(data, mechanism, megabytes, releases, seed) for seed in range(seeds)]
    errors = np.array([data.rows_tv(run.rows) for run in runs])
    seconds = np.array([run.cpu_total_s for run in runs])
    spread = errors.std(ddof=1) / np.sqrt(seeds) if seeds > 1 else 0.0
    figures = [f"{errors.mean():.4f}", f"{spread:.4f}", f"{seconds.mean():.1f}"]
    line = [mechanism, f"{megabytes:g}", releases, seeds, *figures, f"{seconds.max():.1f}"]
    print(",".join(map(str, line)), flush=True)
    return dict(zip(COLUMNS, line, strict=True))


def page() -> str:
    """Write the stored figures as the table of docs/mechanisms.md."""
    with RESULT.open(newline="", encoding="utf-8") as file:
        stored = list(csv.DictReader(file))
    lines = [
        "| mechanism, seeds | earlier answers take | all pairs | CPU s |",
        "|---|---|---|---|",
    ]
    for row in stored:
        name = f"{NAMES[row['mechanism']]}, {row['seeds']}"
        room = "nothing" if row["megabytes"] == "0" else f"{row['megabytes']} MB"
        error = f"{row['tv']} ± {row['tv_se']}" if row["seeds"] != "1" else row["tv"]
        lines.append(f"| {name} | {room} | {error} | {row['cpu_s']} |")
    return "\n".join(lines)


def main() -> int:
    """Measure both mechanisms and keep the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reuse")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--releases", type=int, default=4)
    parser.add_argument("--megabytes", type=float, nargs="*", default=[0, 0.25, 0.5, 1])
    options = parser.parse_args()
    data = Table(data_folder(), "adult")
    marks = {"command": " ".join(["python -m benchmarks.reuse", *sys.argv[1:]]), **stamp()}
    print(",".join(COLUMNS))
    for megabytes in options.megabytes:
        for mechanism in NAMES:
            found = measure(data, mechanism, megabytes, options.releases, options.seeds)
            place = {"case": f"{mechanism} {megabytes:g}"}
            keep_rows(RESULT, [{**place, **found, **marks}], key="case")
    return 0


if __name__ == "__main__":
    sys.exit(main())
