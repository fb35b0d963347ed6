"""Means with standard errors, tables in Markdown, and where each figure comes from."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.appended import read_rows

Row = Mapping[str, str]
NOT_RUN = "not run"
RESULTS = Path(__file__).resolve().parents[1] / "results"


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its standard error (NaN for a single seed)."""

    mean: float
    error: float
    seeds: int

    def text(self, digits: int = 4, percent: bool = False) -> str:
        """Write it as `.0041 ± .0002`; the error is left out where one seed gives none."""
        scale, unit = (100, "%") if percent else (1, "")
        mean = f"{self.mean * scale:.{digits}f}"
        if math.isnan(self.error):
            return f"{mean}{unit} (1 seed)"
        return f"{mean} ± {self.error * scale:.{digits}f}{unit}"


def estimate(values: Iterable[float]) -> Estimate | None:
    """Average values; None where there are none."""
    known = list(values)
    if not known:
        return None
    error = statistics.stdev(known) / math.sqrt(len(known)) if len(known) > 1 else math.nan
    return Estimate(statistics.fmean(known), error, len(known))


Series = Mapping[str, float]
"""A figure by seed."""


def series(rows: Iterable[Row], name: str) -> Series:
    """Return a column by seed, the mean where a seed has several rows; empty cells are left out."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row[name]:
            found.setdefault(row["seed"], []).append(float(row[name]))
    return {seed: statistics.fmean(values) for seed, values in found.items()}


def common(*several: Series) -> list[Series]:
    """Keep the seeds that all have."""
    kept = [seed for seed in several[0] if all(seed in one for one in several)]
    return [{seed: one[seed] for seed in kept} for one in several]


def mean(one: Series) -> Estimate | None:
    """Average a figure over its seeds."""
    return estimate(one.values())


def change(of: Series, against: Series) -> Estimate | None:
    """Return the relative change of one mean against another over the seeds that both have.

    The seeds draw the same queries for both, so the standard error is that of the paired ratio
    (linearised): what differs between queries alone does not count as noise.
    """
    of, against = common(of, against)
    above, below = mean(of), mean(against)
    if above is None or below is None:
        return None
    ratio = above.mean / below.mean
    residuals = estimate((of[seed] - ratio * against[seed]) / below.mean for seed in of)
    return Estimate(ratio - 1, residuals.error if residuals else math.nan, above.seeds)


def said(value: Estimate | None, digits: int = 4, percent: bool = False) -> str:
    """Write an estimate, or that it was not run."""
    return NOT_RUN if value is None else value.text(digits, percent)


def said_change(value: Estimate | None) -> str:
    """Write a relative change in per cent with its sign."""
    if value is None:
        return NOT_RUN
    mean = f"{100 * value.mean:+.0f}"
    return f"{mean}%" if math.isnan(value.error) else f"{mean} ± {100 * value.error:.0f}%"


def chosen(rows: Iterable[Row], **equal: object) -> list[Row]:
    """Return the rows with these values."""
    wanted = {name: str(value) for name, value in equal.items()}
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def column(rows: Iterable[Row], name: str) -> Estimate | None:
    """Average a column over seeds."""
    return mean(series(rows, name))


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def stored(name: str) -> Path:
    """Return the path of a file of results."""
    return RESULTS / name


def results(name: str) -> list[dict[str, str]]:
    """Read a CSV of benchmarks/results."""
    return read_rows(stored(name))


def with_results(head: Sequence[str], rows: Iterable[Sequence[object]], names: int) -> str:
    """Write a table; lines without any result are named below it instead.

    Args:
        head: names of the columns.
        rows: the cells; a line has results where a cell says something else than not run.
        names: how many of the first cells name a line.
    """
    known, absent = [], []
    for row in rows:
        cells = [str(cell) for cell in row]
        empty = all(cell in EMPTY for cell in cells[names:])
        (absent if empty else known).append(cells)
    told = "; ".join(" ".join(cells[:names]) for cells in absent)
    parts = [table(head, known)] if known else []
    return "\n\n".join([*parts, f"Not run: {told}."] if absent else parts)


EMPTY = (NOT_RUN, f"{NOT_RUN} / {NOT_RUN}", "0", "-")


def provenance(command: str, file: str, rows: Sequence[Row]) -> str:
    """Say by which command, when, with which versions and on what machine rows were obtained."""
    stamps = {name: sorted({row[name] for row in rows if row.get(name)}) for name in STAMPS}
    told = ". ".join(
        f"{label}: {' / '.join(stamps[name])}" for name, label in STAMPS.items() if stamps[name]
    )
    where = f"`{command}` -> `benchmarks/results/{file}`."
    return f"{where} {told}." if rows else f"{where} Not run."


STAMPS = {"date": "Date", "machine": "Machine", "versions": "Versions"}
