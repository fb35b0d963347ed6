"""The page as a whole, and the blocks of other pages that quote it."""

from __future__ import annotations

import re

from benchmarks.evidence import len_bgt, mul, others, peers
from benchmarks.evidence.claims import claims_section
from benchmarks.evidence.figures import change, mean, said, said_change, table
from benchmarks.evidence.len_bgt import interest, workload
from benchmarks.goals import goals, goals_table
from benchmarks.paper.single import MIDDLE

BLOCKS = {"README.md": "evidence", "docs/mechanisms.md": "goals"}

INTRODUCTION = """# Evidence

What was measured, as it came out. This page and its plots are made by `make evidence` from the
files under `benchmarks/results`; nobody edits it by hand, and a test compares it with what those
files give. *Not run* is said where a row is missing.

**To repeat it.** The tables are public research data (integer codes as CSV with a domain as JSON)
in a folder beside the project, or in the one named by `CUSYN_RESEARCH_DATA`; they are not in this
repository.

| command | experiments | full | `ARGS=--quick` |
|---|---|---|---|
| `make bench-paper` | LEN, BGT, MUL, downstream, colorado's size | hours | minutes |
| `make bench-peers` | other makers of private tables | hours | minutes |
| `make bench-csa` | CSAPrivBayes | an hour | - |
| `make bench-engine`, `make bench-ledger`, `make bench-scale` | parts | minutes | - |

The first two go on where they were stopped; `ARGS=--quick` leaves its results under `var/`.
Noise is never seeded: a repeated run differs within its standard errors. CPU seconds are of a
shared machine: compare them as ratios.

**Error** is total variation: half the L1 distance of normalised two-way marginals, mean over pairs.
*Interest* is the mean over the interest queries, *all pairs* over the whole workload. Figures are
of the model's marginals unless *rows* is said: then of the sampled rows. `a ± b` is mean and
standard error over seeds. A seed names the drawn queries; noise comes from the operating system.
"""


def page() -> str:
    """Return docs/evidence.md."""
    parts = [
        INTRODUCTION.rstrip(),
        claims_section(),
        f"## Goals of the mechanisms\n\n{GOALS_NOTE}\n\n{goals_table()}\n\n{GOALS_COMMAND}",
        len_bgt.len_section(),
        len_bgt.bgt_section(),
        mul.mul_section(),
        others.speed_section(),
        peers.peers_section(),
        others.downstream_section(),
        others.csa_section(),
        others.engine_section(),
        others.ledger_section(),
        others.scale_section(),
    ]
    return "\n\n".join(parts) + "\n"


GOALS_NOTE = "Epsilon 1, delta 1e-9, ten queries where queries are named."
GOALS_COMMAND = (
    "`python -m benchmarks.goals` -> `benchmarks/results/goals.csv`, from the results of LEN and "
    "MUL below, where date, versions and machine stand."
)


def block(name: str) -> str:
    """Return what another page quotes between its markers."""
    return goals_table() if name == "goals" else readme_block()


def readme_block() -> str:
    """Return the figures that the README quotes."""
    plain, custom = interest("nltcs", "aim", "1", MIDDLE)
    both = [said(mean(one)) for one in workload("nltcs", "aim", "1", MIDDLE)]
    known = {goal.figure: goal.line for goal in goals()}
    rows = [
        ["NLTCS, AIM: error on ten interest queries, plain", said(mean(plain))],
        [
            "the same, with the queries named",
            f"{said(mean(custom))} ({said_change(change(custom, plain))})",
        ],
        ["NLTCS, AIM: error on all pairs, plain / named", " / ".join(both)],
        *([figure, line[2]] for figure, line in known.items() if "sampled rows" in figure),
        *([figure, line[2]] for figure, line in known.items() if "CPU s" in figure),
    ]
    rows += [
        [f"four users, {rounds} rounds each: requests granted by an additive pool of epsilon 10 / "
         "by a zCDP pool", f"{_granted('epsilon', rounds)} / {_granted('zcdp', rounds)} of "
         f"{4 * rounds}"]
        for rounds in mul.BY_ROUNDS
    ]  # fmt: skip
    return table(("figure (epsilon 1, delta 1e-9 unless said)", "measured"), rows)


def _granted(pool: str, rounds: int) -> str:
    return mul.answers(pool, rounds)[0]


def with_block(text: str, name: str) -> str:
    """Return a page with the block between its markers made anew."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    pattern = re.compile(re.escape(begin) + r".*?" + re.escape(end), re.DOTALL)
    return pattern.sub(lambda _: f"{begin}\n{block(name)}\n{end}", text)
