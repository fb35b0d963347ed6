"""What the doors of all peers share: codes in, codes out, and one line of JSON about a refusal.

A door runs in its peer's own environment, so this file needs the standard library only.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

REFUSED = 3
FAILED = 4
REASON_LENGTH = 160

Row = Sequence[int]


class Refusal(Exception):
    """The peer turned its own budget or its own parameters down."""


@dataclass(frozen=True)
class Job:
    """One release: the table as codes, its public domain, and what it may cost."""

    names: list[str]
    rows: list[list[int]]
    cells: dict[str, int]
    epsilon: float
    delta: float
    mechanism: str


def run(release: Callable[[Job], Iterable[Row]]) -> None:
    """Read the arguments, make the release and write it; ends the process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--csv", type=Path, required=True)
    parser.add_argument("--domain", type=Path, required=True)
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--delta", type=float, required=True)
    parser.add_argument("--mechanism", required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    job = read_job(args)
    try:
        rows = release(job)
    except Refusal as fault:
        leave(REFUSED, fault)
    except Exception as fault:  # whatever a peer raises is a row of the results, not a crash
        leave(FAILED, fault)
    with args.out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(job.names)
        writer.writerows([int(code) for code in row] for row in rows)
    sys.exit(0)


def read_job(args: argparse.Namespace) -> Job:
    """Read the table and its domain; columns follow the CSV, cells are found by name."""
    cells = json.loads(args.domain.read_text(encoding="utf-8"))
    with args.csv.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        names = next(reader)
        rows = [list(map(int, row)) for row in reader]
    ordered = {name: int(cells[name]) for name in names}
    return Job(names, rows, ordered, args.epsilon, args.delta, args.mechanism)


def leave(code: int, fault: BaseException) -> None:
    """Say on the last line of standard error what stopped the release; ends the process."""
    reason = re.sub(r"(?<!\w)/[\w./-]+", "(path)", " ".join(str(fault).split()))[:REASON_LENGTH]
    print(json.dumps({"error": type(fault).__name__, "reason": reason}), file=sys.stderr)
    sys.exit(code)
