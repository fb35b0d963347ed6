"""A generated table of colorado's size, for speed only: the real one is not available here."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import stamp
from benchmarks.paper.research import DELTA_EXPONENT
from benchmarks.runs import peak_mb, run_release
from include.accounting import ONE
from include.synthesis import SynthesisTask

ROWS = 661_967
CELLS = (2,) * 11 + (4, 7, 7)
"""Fourteen attributes with 401,408 combinations, as many as the paper's Table 1 tells (4e5)."""
COPIED = 0.7
KEY = ("mechanism", "length", "seed")
FIELDS = (*KEY, "rows", "columns", "cpu_s", "wall_s", "peak_mb", "date", "versions", "machine")


RUNS = (("mwem_pgm", 0), ("mwem_pgm", 10), ("aim", 0), ("aim", 10))


@dataclass(frozen=True)
class Speed:
    """One release of the generated table."""

    mechanism: str
    length: int
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """The cell as the results file spells it."""
        return (self.mechanism, str(self.length), str(self.seed))


def generated(rows: int = ROWS) -> tuple[NDArray[np.int64], dict[str, int]]:
    """Make a chain of attributes: each follows its neighbour in seven rows of ten."""
    rng = np.random.default_rng(0)
    codes = np.empty((rows, len(CELLS)), dtype=np.int64)
    for i, cells in enumerate(CELLS):
        own = rng.integers(0, cells, rows)
        codes[:, i] = own if i == 0 else np.where(rng.random(rows) < COPIED, codes[:, i - 1], own)
        codes[:, i] %= cells
    return codes, {f"c{i}": cells for i, cells in enumerate(CELLS)}


def run_speed(cell: Speed, rows: int = ROWS) -> dict[str, Any]:
    """Make one release of the generated table, in a process of its own: its peak is measured."""
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=fresh) as pool:
        return pool.submit(release_generated, cell, rows).result()


def release_generated(cell: Speed, rows: int) -> dict[str, Any]:
    """Make one release of the generated table at epsilon 1."""
    codes, domain = generated(rows)
    pairs = [(f"c{i}", f"c{i + 2}") for i in range(cell.length)]
    task = SynthesisTask.build(domain, interest=pairs)
    run = run_release(cell.mechanism, codes, task, ONE, DELTA_EXPONENT)
    return {
        "mechanism": cell.mechanism,
        "length": cell.length,
        "seed": cell.seed,
        "rows": rows,
        "columns": len(domain),
        "cpu_s": f"{run.cpu_total_s:.2f}",
        "wall_s": f"{run.wall_s:.2f}",
        "peak_mb": f"{peak_mb():.0f}",
    } | stamp()
