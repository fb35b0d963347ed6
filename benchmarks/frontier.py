"""The goals of the mechanisms, measured as ratios in one run on public research tables.

    python -m benchmarks.frontier --data DIR [--seeds 5] [--only nltcs adult titanic salary reuse]

DIR holds NAME.csv and NAME-domain.json. Every figure is a mean over seeds with its standard error;
the noise is real and differs from run to run. Prints CSV.
"""

from __future__ import annotations

import argparse
import itertools
import random  # noqa: TID251 - draws queries, no noise
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.runs import Run, peak_mb, run_release
from benchmarks.tables import Clique, mean_tv, pair_counts, read_codes
from include.accounting import ONE
from include.synthesis import SynthesisTask, Transcript

DELTA_EXPONENT = 9
QUERIES = 10
REUSE_QUERIES = 5
REUSE_RELEASES = 4


class Table:
    """A research table with its exact pair counts."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.codes, self.domain = read_codes(folder / f"{name}.csv", folder / f"{name}-domain.json")
        self.truth = pair_counts(self.codes, self.domain)

    def release(
        self,
        mechanism: str,
        interest: list[Clique] | None = None,
        earlier: list[Transcript] | None = None,
    ) -> Run:
        """Make one release at epsilon 1."""
        task = SynthesisTask.build(self.domain, interest=interest or [])
        return run_release(mechanism, self.codes, task, ONE, DELTA_EXPONENT, earlier=earlier or [])

    def model_tv(self, run: Run, pairs: list[Clique] | None = None) -> float:
        """Mean two-way TV of the model's marginals."""
        return mean_tv(self.truth, run.model.marginals(list(self.truth)), pairs)

    def rows_tv(self, run: Run) -> float:
        """Mean two-way TV of the sampled rows."""
        return mean_tv(self.truth, pair_counts(run.rows, self.domain))

    def queries(self, seed: int, count: int) -> list[Clique]:
        """Draw interest queries from all pairs."""
        pairs = list(itertools.combinations(self.domain, 2))
        return random.Random(seed).sample(pairs, count)


def show(name: str, values: list[float]) -> None:
    """Print one figure with its standard error."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
    print(f"{name},{np.mean(values):.5f},{error:.5f},{len(values)}", flush=True)


def interest(table: Table, mechanism: str, seeds: int) -> None:
    """Interest queries against a plain release, on the same queries."""
    figures: dict[str, list[float]] = {}

    def note(figure: str, value: float) -> None:
        figures.setdefault(f"{table.name} {mechanism} {figure}", []).append(value)

    for seed in range(seeds):
        queries = table.queries(seed, QUERIES)
        plain, custom = table.release(mechanism), table.release(mechanism, queries)
        note("plain workload", table.model_tv(plain))
        note("plain interest", table.model_tv(plain, queries))
        note("custom workload", table.model_tv(custom))
        note("custom interest", table.model_tv(custom, queries))
        note("plain sampled rows", table.rows_tv(plain))
        note("custom sampled rows", table.rows_tv(custom))
        note("plain cpu s", plain.cpu_total_s)
        note("custom cpu s", custom.cpu_total_s)
    for name, values in figures.items():
        show(name, values)
    for kind in ("workload", "interest"):
        custom_mean = np.mean(figures[f"{table.name} {mechanism} custom {kind}"])
        plain_mean = np.mean(figures[f"{table.name} {mechanism} plain {kind}"])
        change = float(custom_mean / plain_mean - 1)
        print(f"{table.name} {mechanism} {kind} change,{change:.4f},,{seeds}", flush=True)


def reuse(table: Table, mechanism: str, seeds: int) -> None:
    """The fourth release of one snapshot, with and without the earlier transcripts."""
    alone, reused = [], []
    for seed in range(seeds):
        earlier: list[Transcript] = []
        for turn in range(REUSE_RELEASES):
            queries = table.queries(1000 * seed + turn, REUSE_QUERIES)
            run = table.release(mechanism, queries, earlier)
            earlier.append(run.transcript)
        reused.append(table.model_tv(run))
        alone.append(table.model_tv(table.release(mechanism, queries)))
    show(f"{table.name} {mechanism} fourth release alone", alone)
    show(f"{table.name} {mechanism} fourth release with reuse", reused)
    change = float(np.mean(reused) / np.mean(alone) - 1)
    print(f"{table.name} {mechanism} reuse change,{change:.4f},,{seeds}", flush=True)


def main() -> int:
    """Run the parts asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frontier", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parts: dict[str, Callable[[Path, int], None]] = {
        "nltcs": lambda d, n: [interest(Table(d, "nltcs"), m, n) for m in ("aim", "mwem_pgm")],
        "adult": lambda d, n: interest(Table(d, "adult"), "aim", n),
        "titanic": lambda d, n: interest(Table(d, "titanic"), "aim", max(n, 10)),
        "salary": lambda d, n: interest(Table(d, "salary"), "aim", n),
        "reuse": lambda d, n: [
            reuse(Table(d, name), m, n)
            for name in ("titanic", "nltcs")
            for m in ("mwem_pgm", "aim")
        ],
    }
    parser.add_argument("--only", nargs="*", choices=sorted(parts), default=list(parts))
    args = parser.parse_args()
    print("figure,mean,standard_error,seeds")
    for name in args.only:
        parts[name](args.data, args.seeds)
    print(f"peak mb,{peak_mb():.0f},,1")
    return 0


if __name__ == "__main__":
    sys.exit(main())
