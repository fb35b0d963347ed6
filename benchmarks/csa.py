"""The CSAPrivBayes paper's two figures on Adult, with a guarantee that holds.

    python -m benchmarks.csa [--quick] [--seeds N]

Train on synthetic rows, test on real ones. Every run is appended to csa_runs.csv, and a run that
is there is not repeated: the command can be stopped and started again. Noise is never seeded, so a
repeated experiment differs within its standard errors.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.adult import (
    SAMPLE_SEED,
    SENSITIVE,
    data_folder,
    misclassification,
    read_adult,
    split,
)
from benchmarks.appended import Appended
from benchmarks.csa_report import write_report
from benchmarks.runs import run_release
from benchmarks.tables import mean_tv, pair_counts
from include.accounting import format_amount, parse_amount
from include.synthesis import SynthesisTask

RESULTS = Path(__file__).resolve().parent / "results"
FIELDS = [
    "figure",
    "variant",
    "epsilon",
    "rows",
    "seed",
    "misclassification",
    "tv",
    "cpu_s",
    "epsilon_pure",
    "rho",
    "tables",
]
EPSILONS = ("0.05", "0.1", "0.2", "0.4", "0.8", "1.6")
SIZES = (3_000, 6_000, 12_000, 18_000, 24_000)
CSA = {"sensitive": SENSITIVE}
FORCED = CSA | {"force_sensitive_parent": True}
TUNED = FORCED | {"usefulness": 2, "structure_share": 0.15}
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "PrivBayes": ("privbayes", {}),
    "CSA r=1": ("csa_privbayes", CSA | {"sensitive_weight": 1}),
    "CSA r=0.5": ("csa_privbayes", CSA),
    "CSA r=0.25": ("csa_privbayes", CSA | {"sensitive_weight": 0.25}),
    "CSA forced": ("csa_privbayes", FORCED),
    "CSA forced, theta_u=2, eps_1=.15": ("csa_privbayes", TUNED),
    "PrivBayes, PGM": ("privbayes", {"fit": "pgm"}),
    "CSA r=1, PGM": ("csa_privbayes", CSA | {"sensitive_weight": 1, "fit": "pgm"}),
    "CSA forced, PGM": ("csa_privbayes", FORCED | {"fit": "pgm"}),
}
BY_SIZE = (
    "PrivBayes",
    "CSA r=1",
    "CSA r=0.5",
    "CSA forced",
    "CSA forced, theta_u=2, eps_1=.15",
)
QUICK = ("PrivBayes", "CSA r=0.5", "CSA forced")


@dataclass(frozen=True)
class Cell:
    """One experiment: which figure and variant, at what epsilon, on how many rows, which seed."""

    figure: str
    variant: str
    epsilon: str
    rows: int
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """The cell as the results file spells it."""
        return (self.figure, self.variant, self.epsilon, str(self.rows), str(self.seed))


def cells(quick: bool, seeds: int) -> Iterator[Cell]:
    """List the experiments seed by seed, so that a stopped run has whole seeds."""
    epsilons = ("0.2", "1.6") if quick else EPSILONS
    sizes = (6_000, 24_000) if quick else SIZES
    for seed in range(seeds):
        for name in QUICK if quick else VARIANTS:
            for epsilon in epsilons:
                yield Cell("epsilon", name, epsilon, 24_000, seed)
        for name in QUICK if quick else BY_SIZE:
            for rows in sizes:
                yield Cell("rows", name, "1.6", rows, seed)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.csa", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true", help="a few cells, in a few minutes")
    parser.add_argument("--seeds", type=int, help="repetitions; 10 by default, 2 with --quick")
    parser.add_argument("--out", type=Path, help="folder of the results")
    args = parser.parse_args(arguments)
    out: Path = args.out or (RESULTS / "csa_quick" if args.quick else RESULTS)
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    codes, domain = read_adult(data_folder())
    runs = Appended(out / "csa_runs.csv", FIELDS, key=5)
    done = runs.done()
    seeds = args.seeds or (2 if args.quick else 10)
    wanted = list(cells(args.quick, seeds))
    for number, cell in enumerate(wanted, 1):
        if cell.key not in done:
            runs.append([run_cell(cell, codes, domain)])
            print(f"{number}/{len(wanted)} {' | '.join(cell.key)}", flush=True)
    reference = [misclassification(*split(codes, seed), domain) for seed in range(5)]
    at = list(domain).index(SENSITIVE)
    facts = {
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d"),
        "command": f"python -m benchmarks.csa{' --quick' if args.quick else ''} --seeds {seeds}",
        "versions": f"python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in ("numpy", "opendp", "scikit-learn")),
        "sample": f"24,000 rows of Adult, sample seed {SAMPLE_SEED}, five-fold 80/20",
    }
    majority = float(min(codes[:, at].mean(), 1 - codes[:, at].mean()))
    print(write_report(out, runs.rows(), facts, float(np.mean(reference)), majority))
    return 0


def run_cell(cell: Cell, codes: Any, domain: dict[str, int]) -> dict[str, Any]:
    """Make one release and judge it on the real rows that it has not seen."""
    train, test = split(codes, cell.seed)
    train = train[: cell.rows * 4 // 5]
    mechanism, options = VARIANTS[cell.variant]
    # The size of the extract is public here: it is what the experiment says it is.
    task = SynthesisTask.build(domain, options=options | {"public_rows": len(train)})
    epsilon = parse_amount(cell.epsilon, name="epsilon")
    run = run_release(mechanism, train, task, epsilon, 9, rows=len(train))
    pure = run.plan.cost.epsilon_pure_pico
    return dict(zip(FIELDS[:5], cell.key, strict=True)) | {
        "misclassification": f"{misclassification(run.rows.astype(np.int64), test, domain):.5f}",
        "tv": f"{mean_tv(pair_counts(train, domain), pair_counts(run.rows, domain)):.5f}",
        "cpu_s": f"{run.cpu_total_s:.3f}",
        "epsilon_pure": "" if pure is None else format_amount(pure),
        "rho": format_amount(run.plan.cost.rho_pico),
        "tables": sum(turn.purpose == "table" for turn in run.transcript.rounds),
    }


if __name__ == "__main__":
    sys.exit(main())
