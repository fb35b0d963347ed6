"""Other makers of private tables beside ours, on the same tables, in the same run.

    python -m benchmarks.peers [--quick] [--only TEXT ...] [--cap SECONDS]
    python -m benchmarks.peers --list
    python -m benchmarks.peers --probes

Every peer runs in an environment of its own, one run at a time, one thread each, under caps of CPU
and memory that its row states. A finished run is not repeated: the command can be stopped and
started again. `--quick` takes Titanic only, once each, in minutes, and keeps its results apart.
`--probes` measures the peers' known faults.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from benchmarks.adult import data_folder
from benchmarks.appended import read_rows
from benchmarks.peers.catalogue import Cell, cells
from benchmarks.peers.environments import ROOT
from benchmarks.peers.faults import run_probes
from benchmarks.peers.judge import Judge
from benchmarks.peers.results import is_done, keep, key
from benchmarks.peers.runner import run_cell, version, work_folder

RESULTS = ROOT / "benchmarks" / "results" / "peers.csv"
PROBES = RESULTS.with_name("peers_probes.csv")
QUICK_RESULTS = ROOT / "var" / "peers" / "quick.csv"
QUICK_CAP_CPU_S = 60


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--quick", action="store_true", help="Titanic, once each, small caps")
    parser.add_argument("--only", nargs="*", help="runs whose table/peer/mechanism has this text")
    parser.add_argument("--cap", type=int, help="CPU seconds a run may take, instead of its own")
    parser.add_argument("--list", action="store_true", help="show the runs and make none")
    parser.add_argument("--probes", action="store_true", help="measure the known faults")
    parser.add_argument("--out", type=Path, help="the results file")
    args = parser.parse_args(arguments)
    if args.probes:
        return show_probes(args.out or PROBES)
    out = args.out or (QUICK_RESULTS if args.quick else RESULTS)
    cap = args.cap or (QUICK_CAP_CPU_S if args.quick else None)
    wanted = [cell for cell in cells(args.quick) if matches(cell, args.only)]
    if args.list:
        for cell in wanted:
            print(f"{cell.label} #{cell.seed}: {cap or cell.mechanism.cap_cpu_s} CPU s at most")
        return 0
    return run_all(wanted, out, cap)


def show_probes(out: Path) -> int:
    """Measure the known faults and print them."""
    for row in run_probes(out):
        told = f"{row['value']}, which should be {row['should_be']}"
        print(f"{row['peer']} {row['version']}: {row['probe']} finds {told}")
    return 0


def matches(cell: Cell, only: list[str] | None) -> bool:
    """Tell whether a run is asked for."""
    return not only or any(text in cell.label for text in only)


def run_all(wanted: list[Cell], out: Path, cap: int | None) -> int:
    """Make the runs that are not there yet, one after the other."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the run in hand is ended too
    folder, work = data_folder(), work_folder()
    judges: dict[str, Judge] = {}
    for number, cell in enumerate(wanted, 1):
        limit = cap or cell.mechanism.cap_cpu_s
        earlier = [row for row in read_rows(out) if key(row) == cell.key]
        if earlier and is_done(earlier[-1], limit, version(cell)):
            continue
        if cell.table not in judges:
            table = folder / f"{cell.table}.csv"
            judges[cell.table] = Judge(table, folder / f"{cell.table}-domain.json")
        row = run_cell(cell, judges[cell.table], limit, work)
        keep(out, row)
        shown = row.get("tv2_mean") or row["note"]
        told = f"{row['status']} ({shown}), {row.get('cpu_s', '0')} CPU s"
        print(f"{number}/{len(wanted)} {cell.label} #{cell.seed}: {told}", flush=True)
    print(f"{len(read_rows(out))} runs in {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
