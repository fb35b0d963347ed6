"""The goals of the mechanisms beside what was measured, from the stored results.

    python -m benchmarks.goals

Reads what `make bench-paper` has left, prints each figure with its goal, and keeps the table as
benchmarks/results/goals.csv.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.evidence.figures import (
    NOT_RUN,
    Estimate,
    change,
    column,
    mean,
    said,
    said_change,
    stored,
    table,
)
from benchmarks.evidence.len_bgt import LABEL, interest, rows_of, titled, workload
from benchmarks.evidence.mul import error
from benchmarks.paper.single import MIDDLE

HEAD = ("figure", "goal", "measured", "seeds", "met")
FOURTH = 4
REUSE_ROUNDS = 10


@dataclass(frozen=True)
class Goal:
    """A figure and the bound it should stay under; no bound where it is only to be measured."""

    figure: str
    goal: str
    bound: float | None
    found: Estimate | None
    write: Callable[[Estimate | None], str] = said

    @property
    def line(self) -> tuple[str, str, str, str, str]:
        """The goal as the table spells it."""
        if self.found is None:
            return (self.figure, self.goal, NOT_RUN, "0", NOT_RUN)
        met = "-" if self.bound is None else "yes" if self.found.mean <= self.bound else "no"
        return (self.figure, self.goal, self.write(self.found), str(self.found.seeds), met)


def goals() -> Iterator[Goal]:
    """List the goals; epsilon 1, delta 1e-9, ten queries where queries are named."""
    plain, custom = interest("nltcs", "aim", "1", MIDDLE)
    fall = change(custom, plain)
    yield Goal("NLTCS, AIM: interest error, queries named", "measured", None, mean(custom))
    yield Goal("... against plain", "-65% or less", -0.65, fall, said_change)
    before, after = workload("nltcs", "aim", "1", MIDDLE)
    rise = change(after, before)
    yield Goal("... all pairs against plain", "+10% or less", 0.10, rise, said_change)
    for name, bound in (("nltcs", 0.006), ("adult", 0.030), ("titanic", 0.187), ("salary", None)):
        told = "measured" if bound is None else f"{bound:.3f} or less"
        rows = column(rows_of(name, "aim", "1", 0), "workload_rows")
        yield Goal(f"{titled(name)}, AIM: sampled rows, all pairs, no queries", told, bound, rows)
    for name, bound in (("nltcs", 2.0), ("adult", 10.0), ("salary", None)):
        told = "measured" if bound is None else f"{bound:.0f} or less"
        seconds = column(rows_of(name, "aim", "1", 0), "cpu_s")
        yield Goal(f"{titled(name)}, AIM: CPU s of a release, warm", told, bound, seconds, _seconds)
    for name, mechanism, bound in (
        ("titanic", "aim", -0.30),
        ("titanic", "mwem_pgm", -0.30),
        ("nltcs", "mwem_pgm", -0.90),
        ("nltcs", "aim", None),
    ):
        told = "measured" if bound is None else f"{bound:+.0%} or less"
        which = f"{titled(name)}, {LABEL[mechanism]}"
        figure = f"{which}: fourth release with reuse against independent, all pairs"
        yield Goal(figure, told, bound, _fourth(name, mechanism), said_change)


def _fourth(name: str, mechanism: str) -> Estimate | None:
    """Return the change of the fourth release, on the same user's queries."""
    reused, alone = (
        error(name, mechanism, REUSE_ROUNDS, reuse, "workload_rows", FOURTH)
        for reuse in ("dataset", "off")
    )
    return change(reused, alone)


def _seconds(value: Estimate | None) -> str:
    return said(value, digits=2)


def goals_table() -> str:
    """Write the goals in Markdown."""
    return table(HEAD, [goal.line for goal in goals()])


def goals_csv() -> str:
    """Write the goals as CSV."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(HEAD)
    writer.writerows(goal.line for goal in goals())
    return buffer.getvalue()


def main() -> int:
    """Print the goals and keep them."""
    text = goals_csv()
    print(text, end="")
    stored("goals.csv").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
