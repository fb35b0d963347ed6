"""One run: start the peer's door under its caps, judge what it wrote, make the row."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import tomllib
from dataclasses import asdict
from functools import cache
from pathlib import Path

import psutil

from benchmarks.peers.catalogue import BASELINE, CAP_MB, DELTA, EPSILON, OURS, Cell
from benchmarks.peers.environments import ROOT, EnvironmentFault, interpreter
from benchmarks.peers.judge import Judge
from benchmarks.peers.results import Row
from benchmarks.peers.supervise import MB, Usage, run_capped
from benchmarks.tables import TableError

REFUSED = 3  # the doors' exit code for a peer that turns its own budget down
NOTE_LENGTH = 160


def run_cell(cell: Cell, judge: Judge, cap_cpu_s: int, work: Path) -> Row:
    """Make one release, whatever becomes of it."""
    stem = f"{cell.table}-{cell.peer.name}-{cell.mechanism.name}-{cell.seed}".replace(" ", "_")
    out, errors = work / f"{stem}.csv", work / f"{stem}.err"
    out.unlink(missing_ok=True)
    row = empty_row(cell, cap_cpu_s)
    try:
        command = door_command(cell, judge, out)
    except EnvironmentFault as fault:
        return row | {"status": "failed", "note": f"not installed: {fault}"[:NOTE_LENGTH]}
    ours = {} if cell.peer.requirements else {"PYTHONPATH": str(ROOT)}
    usage = run_capped(command, errors, cap_cpu_s, CAP_MB, **ours)
    row |= {
        "cpu_s": f"{usage.cpu_s:.2f}",
        "wall_s": f"{usage.wall_s:.1f}",
        "peak_mb": f"{usage.peak_mb:.0f}",
    }
    return row | outcome(usage, out, judge)


def door_command(cell: Cell, judge: Judge, out: Path) -> list[str]:
    """Write down the command; its environment is made if need be."""
    python, name = str(interpreter(cell.peer)), cell.mechanism.name
    ours = cell.peer.name in {OURS, BASELINE}
    if cell.peer.name == OURS or cell.mechanism.options:
        door = [python, "-m", "benchmarks.synthesize"]
    else:
        door = [python, str(cell.peer.door)]
    return [
        *door,
        *("--csv", str(judge.csv_path), "--domain", str(judge.domain_path)),
        *("--epsilon", EPSILON, "--delta", DELTA, "--out", str(out)),
        *("--mechanism", name if not (ours and cell.mechanism.options) else "aim"),
        *cell.mechanism.options,
    ]


def outcome(usage: Usage, out: Path, judge: Judge) -> Row:
    """Name how the run ended, and judge its rows if there are any."""
    if usage.over:
        return {"status": "capped", "note": f"ended at the {usage.over} cap"}
    if usage.code:
        status = "refused" if usage.code == REFUSED else "failed"
        return {"status": status, "note": reason(usage)}
    try:
        score = asdict(judge.score(out))
    except TableError as fault:
        return {"status": "failed", "note": str(fault).rsplit("/", 1)[-1][:NOTE_LENGTH]}
    return {"status": "finished"} | {name: f"{value:.5f}" for name, value in score.items()}


def reason(usage: Usage) -> str:
    """Shorten what the door said last."""
    try:
        said = json.loads(usage.last_line)
        text = f"{said['error']}: {said['reason']}"
    except (ValueError, KeyError, TypeError):
        text = usage.last_line or f"exit code {usage.code}"
    return text[:NOTE_LENGTH]


def empty_row(cell: Cell, cap_cpu_s: int) -> Row:
    """Fill in what is known before the run."""
    table, peer, mechanism, seed = cell.key
    return {
        "table": table,
        "peer": peer,
        "mechanism": mechanism,
        "version": version(cell),
        "seed": seed,
        "cap_cpu_s": str(cap_cpu_s),
        "cap_mb": str(CAP_MB),
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "machine": machine(),
    }


@cache
def machine() -> str:
    """Tell the class of machine: cores, memory, Python."""
    memory = round(psutil.virtual_memory().total / MB / 1024)
    return f"{os.cpu_count()} cores, {memory} GB, Python {platform.python_version()}"


def version(cell: Cell) -> str:
    """Tell the pinned version of the peer, or ours."""
    if cell.peer.requirements is not None:
        return cell.peer.version
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["project"]["version"])


def work_folder() -> Path:
    """Make the folder for synthetic rows and error logs; it is not kept in git."""
    folder = ROOT / "var" / "peers" / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
