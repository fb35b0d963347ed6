"""Run one command under caps and weigh its whole process tree."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

POLL_S = 0.25
MB = 2**20
# One thread for everybody, so that CPU seconds compare.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "POLARS_MAX_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_PLATFORMS": "cpu",
}


@dataclass(frozen=True)
class Usage:
    """How a command ended and what it took.

    Args:
        code: exit code; None if it was ended by a cap.
        cpu_s: user and system seconds of the process and of its children.
        peak_mb: largest resident memory of the tree, in MB of 2^20 bytes.
        over: the cap that ended it ("CPU" or "memory"), or empty.
        last_line: the last line of its standard error.
    """

    code: int | None
    cpu_s: float
    wall_s: float
    peak_mb: float
    over: str
    last_line: str


def environment() -> dict[str, str]:
    """Build the environment of every run: one thread, and our own packages on no path."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | ONE_THREAD


def run_capped(
    command: list[str], errors: Path, cap_cpu_s: float, cap_mb: float, **more: str
) -> Usage:
    """Run a command to its end or to a cap."""
    begun = time.perf_counter()
    with errors.open("wb") as log:
        process = subprocess.Popen(
            command,
            env=environment() | more,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )
    peak = cpu = 0.0
    over = ""
    try:
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            now_cpu, now_mb = weigh(process.pid)
            cpu, peak = max(cpu, now_cpu), max(peak, now_mb)
            over = over or ("CPU" if cpu > cap_cpu_s else "memory" if now_mb > cap_mb else "")
            if over:
                end_tree(process.pid)
            time.sleep(POLL_S)
    except BaseException:  # an interrupted comparison leaves nothing running
        end_tree(process.pid)
        raise
    usage = ended[2]
    process.returncode = code = os.waitstatus_to_exitcode(ended[1])
    return Usage(
        code=None if over else code,
        cpu_s=max(cpu, usage.ru_utime + usage.ru_stime),
        wall_s=time.perf_counter() - begun,
        peak_mb=max(peak, usage.ru_maxrss * 1024 / MB),
        over=over,
        last_line=last_line(errors),
    )


def weigh(pid: int) -> tuple[float, float]:
    """Add up CPU seconds and resident MB of a process, its children and those already ended."""
    cpu = memory = 0.0
    try:
        root = psutil.Process(pid)
        tree = [root, *root.children(recursive=True)]
        ended = root.cpu_times()
        cpu += ended.children_user + ended.children_system
    except psutil.Error:
        return 0.0, 0.0
    for process in tree:
        try:
            times, resident = process.cpu_times(), process.memory_info().rss
        except psutil.Error:
            continue
        cpu += times.user + times.system
        memory += resident / MB
    return cpu, memory


def end_tree(pid: int) -> None:
    """End a process and its children, by their ids."""
    try:
        root = psutil.Process(pid)
        tree = [*root.children(recursive=True), root]
    except psutil.Error:
        return
    for process in tree:
        try:
            process.kill()
        except psutil.Error:
            continue


def last_line(path: Path) -> str:
    """Read the last line that is not empty."""
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
