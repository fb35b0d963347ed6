"""The page as a whole, and the blocks of other pages that quote it."""

from __future__ import annotations

import re

from benchmarks.evidence import len_bgt, mul, others, peers
from benchmarks.evidence.claims import claims_section
from benchmarks.evidence.figures import NOT_RUN, change, mean, results, said, said_change, table
from benchmarks.evidence.len_bgt import interest, titled, workload
from benchmarks.goals import goals, goals_table
from benchmarks.paper.single import MIDDLE
from benchmarks.paper.world import TOTAL_EPSILON, USERS
from benchmarks.peers.catalogue import TABLES

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
shared machine: compare them as ratios. Fits that are dated 2026-11-30 went on until ten steps
gained a hundredth of a unit of log-likelihood; later ones end at one unit, in half the time and
with equal errors.

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
    errors = f"{said(mean(plain))} / {said(mean(custom))}"
    whole = " / ".join(said(mean(one)) for one in workload("nltcs", "aim", "1", MIDDLE))
    rows = [
        ["NLTCS, AIM: error on ten pairs, not named / named as interest queries", errors],
        ["NLTCS, AIM: the change that naming them makes", said_change(change(custom, plain))],
        ["NLTCS, AIM: error on all pairs, not named / named", whole],
        *([goal.line[0], goal.line[2]] for goal in goals() if _quoted(goal.figure)),
        *(_beside_others(name) for name in TABLES),
        *(_requests(rounds) for rounds in mul.BY_ROUNDS),
    ]
    return table(("epsilon 1, delta 1e-9 unless said", "measured"), rows)


def _quoted(figure: str) -> bool:
    return "sampled rows" in figure or "CPU s" in figure


def _beside_others(name: str) -> list[str]:
    ours = peers.figures(results(peers.FILE), name, peers.OURS, "aim", "tv2_mean")
    other = peers.best_other(name)
    told = f"{said(other[1])} ({other[0]})" if other else NOT_RUN
    which = f"{titled(name)}, rows, all pairs: our AIM / the best of the other makers that finished"
    return [which, f"{said(ours)} / {told}"]


def _requests(rounds: int) -> list[str]:
    asked = rounds * len(USERS)
    which = f"four users, {asked} requests of epsilon {TOTAL_EPSILON / rounds:.3g}: granted by an "
    granted = [_granted(pool, rounds) for pool in ("epsilon", "zcdp")]
    return [which + "additive pool of 10 / by a zCDP pool of 10", " / ".join(granted)]


def _granted(pool: str, rounds: int) -> str:
    return mul.answers(pool, rounds)[0]


def with_block(text: str, name: str) -> str:
    """Return a page with the block between its markers made anew."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    pattern = re.compile(re.escape(begin) + r".*?" + re.escape(end), re.DOTALL)
    return pattern.sub(lambda _: f"{begin}\n{block(name)}\n{end}", text)
