"""The experiments of the CuSyn paper: LEN, BGT, MUL, a downstream check, a table for speed.

    python -m benchmarks.paper [--quick] [--seeds 5] [--only len mul ...] [--tables titanic ...]

Every finished cell is appended to its file under benchmarks/results and is not repeated: the
command can be stopped, killed and started again. Noise is never seeded, so a repeated experiment
differs within its standard errors. `--quick` takes minutes and leaves its results under var/.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.machine import one_thread

one_thread()

from benchmarks.adult import data_folder  # noqa: E402
from benchmarks.appended import Appended  # noqa: E402
from benchmarks.paper import downstream, multi, single, speed  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
QUICK = ROOT / "var" / "bench-paper"
PARTS = ("len", "bgt", "mul", "downstream", "speed")


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true", help="a few cells, in minutes")
    parser.add_argument("--seeds", type=int, help="repetitions; 5 by default, 2 with --quick")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--tables", nargs="*", choices=single.TABLES, help="all by default")
    parser.add_argument("--out", type=Path, help="folder of the results")
    args = parser.parse_args(arguments)
    out: Path = args.out or (QUICK if args.quick else RESULTS)
    data = data_folder()
    for name in args.only:
        run_part(name, args, out, data)
    return 0


def run_part(name: str, args: argparse.Namespace, out: Path, data: Path) -> None:
    """Run what is not finished of one part."""
    seeds = args.seeds or (2 if args.quick else 5)
    quick = args.quick
    tables = args.tables or (["titanic", "nltcs"] if quick else list(single.TABLES))
    if name in ("len", "bgt"):
        cells = [
            cell
            for table in tables
            for cell in single.cells([table], seeds, quick=quick, more=not (quick or args.seeds))
            if (cell.epsilon == "1") == (name == "len")
        ]
        _run(out / "paper.csv", single, cells, lambda cell: [single.run_cell(cell, data)])
    elif name == "mul":
        chosen = [cell for one in tables for cell in multi.sequences([one], seeds, quick=quick)]
        _run(out / "paper_mul.csv", multi, chosen, lambda cell: multi.run_sequence(cell, data))
    elif name == "downstream":
        trainings = downstream.trainings(seeds, quick=quick)
        make = downstream.run_training
        _run(out / "paper_downstream.csv", downstream, trainings, lambda cell: [make(cell, data)])
    else:
        runs = [speed.Speed(mechanism, length, 0) for mechanism, length in speed.RUNS]
        rows = speed.ROWS // 50 if quick else speed.ROWS
        _run(out / "paper_speed.csv", speed, runs, lambda run: [speed.run_speed(run, rows)])


def _run(
    path: Path, part: Any, cells: Iterable[Any], make: Callable[[Any], list[dict[str, Any]]]
) -> None:
    """Make the cells that the file does not have."""
    file = Appended(path, part.FIELDS, len(part.KEY))
    wanted, done = list(cells), file.done()
    for number, cell in enumerate(wanted, 1):
        if cell.key not in done:
            file.append(make(cell))
            print(f"{path.stem} {number}/{len(wanted)} {' | '.join(cell.key)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
