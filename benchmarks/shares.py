"""How much AIM's interest share matters: the same queries at several shares of the budget.

    python -m benchmarks.shares [--data DIR] [--seeds 3] [--only titanic nltcs adult] [--shares .5]

The default share was chosen by looking at figures like these on public research tables: that is a
choice made with public information, and costs no privacy. Every figure is a mean over seeds with
its standard error, at epsilon 1 and delta 1e-9 with ten random pairs; the noise is real.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import random  # noqa: TID251 - draws queries, no noise
import sys
from pathlib import Path

import numpy as np

from benchmarks.engine import DATA, ROOT
from benchmarks.machine import stamp
from benchmarks.runs import run_release
from benchmarks.tables import keep_rows, mean_tv, pair_counts, read_codes
from include.accounting import ONE
from include.synthesis import SynthesisTask

DELTA_EXPONENT, QUERIES = 9, 10
SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)
RESULT = ROOT / "benchmarks" / "results" / "shares.csv"
LABELS = {"nltcs": "NLTCS", "titanic": "Titanic", "adult": "Adult"}
COLUMNS = ("table", "share", "seeds", "interest_tv", "interest_se", "workload_tv", "workload_se")


class Table:
    """A research table with its exact pair counts."""

    def __init__(self, folder: Path, name: str) -> None:
        self.codes, self.domain = read_codes(folder / f"{name}.csv", folder / f"{name}-domain.json")
        self.truth = pair_counts(self.codes, self.domain)

    def errors(self, share: float | None, seed: int) -> tuple[float, float]:
        """Make one release; return the model's mean error on the queries and on all pairs."""
        pairs = list(itertools.combinations(self.domain, 2))
        queries = random.Random(seed).sample(pairs, QUERIES)
        task = SynthesisTask.build(
            self.domain,
            interest=queries if share else [],
            options={"interest_share": share} if share else {},
        )
        run = run_release("aim", self.codes, task, ONE, DELTA_EXPONENT)
        shown = run.model.marginals(pairs)
        return mean_tv(self.truth, shown, queries), mean_tv(self.truth, shown)


def measure(folder: Path, name: str, seeds: int, shares: list[float]) -> list[dict[str, object]]:
    """Measure one table at every share, and without queries (share 0)."""
    table, rows = Table(folder, name), []
    for share in (None, *shares):
        found = np.array([table.errors(share, seed) for seed in range(seeds)])
        means, spread = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(seeds)
        figures = [means[0], spread[0], means[1], spread[1]]
        line = [name, share or 0, seeds, *(round(float(figure), 5) for figure in figures)]
        rows.append(dict(zip(COLUMNS, line, strict=True)))
        print(",".join(map(str, line)), flush=True)
    return rows


def page() -> str:
    """Write the stored figures as the table of docs/mechanisms.md."""
    with RESULT.open(newline="") as file:
        stored = list(csv.DictReader(file))
    lines = ["| table, seeds | share | interest queries | all pairs |", "|---|---|---|---|"]
    for name in dict.fromkeys(row["table"] for row in stored):
        for row in (row for row in stored if row["table"] == name):
            none = float(row["share"]) == 0
            first = f"{LABELS.get(name, name)}, {row['seeds']}" if none else ""
            share = "no queries" if none else row["share"]
            queries, pairs = (
                f"{float(row[f'{kind}_tv']):.4f} ± {float(row[f'{kind}_se']):.4f}"
                for kind in ("interest", "workload")
            )
            lines.append(f"| {first} | {share} | {queries} | {pairs} |")
    return "\n".join(lines)


def main() -> int:
    """Measure the tables and keep the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shares")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--shares", type=float, nargs="*", default=list(SHARES))
    parser.add_argument("--only", nargs="*", default=["titanic", "nltcs", "adult"])
    options = parser.parse_args()
    if not options.data.is_dir():
        print("SKIPPED: no research data; set CUSYN_RESEARCH_DATA to the folder with the tables")
        return 0
    print(",".join(COLUMNS))
    marks = {"command": " ".join(["python -m benchmarks.shares", *sys.argv[1:]]), **stamp()}
    for name in options.only:
        rows = measure(options.data, name, options.seeds, options.shares)
        keep_rows(RESULT, [{**row, **marks} for row in rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
