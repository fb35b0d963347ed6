"""LEN and BGT: one release a cell, with interest queries or without."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import stamp
from benchmarks.paper.research import DELTA_EXPONENT, Table, table
from benchmarks.runs import run_release
from include.accounting import format_amount, parse_amount
from include.synthesis.plan import PlanError

TABLES = ("titanic", "nltcs", "adult", "salary")
MECHANISMS = ("mwem_pgm", "aim")
LENGTHS = (5, 10, 15)
MIDDLE = 10
EPSILONS = ("1", "0.1", "5", "10")
MORE_SEEDS = {"titanic": 20, "nltcs": 16}
"""At least so many seeds, at epsilon 1 and ten queries, of what is compared with goals."""
KEY = ("table", "mechanism", "epsilon", "length", "seed")
ERRORS = tuple(
    f"{what}_{of}"
    for of in ("model", "rows")
    for what in ("workload", *(f"interest{length}" for length in LENGTHS))
)
FIELDS = (*KEY, *ERRORS, "rho", "rounds", "cpu_s", "note", "date", "versions", "machine")


@dataclass(frozen=True)
class Cell:
    """One release; `length` 0 is a release without interest queries.

    It is judged on the interest queries of all lengths: the plain release is the baseline of each.
    """

    table: str
    mechanism: str
    epsilon: str
    length: int
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """The cell as the results file spells it."""
        return (self.table, self.mechanism, self.epsilon, str(self.length), str(self.seed))


def cells(names: list[str], seeds: int, *, quick: bool, more: bool = False) -> Iterator[Cell]:
    """List the releases, seed by seed: LEN at epsilon 1 first, then BGT at the other epsilons.

    BGT at epsilon 1 is LEN with ten queries and is not run twice.
    """
    epsilons = ("1", "10") if quick else EPSILONS
    for epsilon in epsilons:
        lengths = (MIDDLE,) if quick or epsilon != "1" else LENGTHS
        for seed in range(seeds):
            for name in names:
                for mechanism in MECHANISMS:
                    for length in (0, *lengths):
                        yield Cell(name, mechanism, epsilon, length, seed)
    for name in names:
        for seed in range(seeds, MORE_SEEDS.get(name, 0) if more else 0):
            for mechanism in MECHANISMS:
                for length in (0, MIDDLE):
                    yield Cell(name, mechanism, "1", length, seed)


def run_cell(cell: Cell, folder: Path) -> dict[str, Any]:
    """Make the release and measure its error against the public table.

    A release that the planner refuses, before anything would be spent, is a finished cell without
    figures; its note tells why.
    """
    named = dict(zip(KEY, cell.key, strict=True)) | stamp()
    try:
        return named | _released(cell, folder)
    except PlanError as refusal:
        return named | {"note": str(refusal)}


def _released(cell: Cell, folder: Path) -> dict[str, Any]:
    data = table(folder, cell.table)
    queries = data.queries(cell.seed, cell.length)
    epsilon = parse_amount(cell.epsilon, name="epsilon")
    run = run_release(cell.mechanism, data.codes, data.task(queries), epsilon, DELTA_EXPONENT)
    return {name: f"{value:.6f}" for name, value in errors(data, run, cell.seed).items()} | {
        "rho": format_amount(run.plan.cost.rho_pico),
        "rounds": len(run.transcript.rounds),
        "cpu_s": f"{run.cpu_total_s:.2f}",
        "note": "",
    }


def errors(data: Table, run: Any, seed: int) -> dict[str, float]:
    """Return the workload error and the interest errors, of the model and of the rows."""
    found = {"workload_model": data.model_tv(run.model), "workload_rows": data.rows_tv(run.rows)}
    for length in LENGTHS:
        queries = data.queries(seed, length)
        found[f"interest{length}_model"] = data.model_tv(run.model, queries)
        found[f"interest{length}_rows"] = data.rows_tv(run.rows, queries)
    return found
