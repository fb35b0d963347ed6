"""Each claim of the two papers with a verdict, computed from the results.

A verdict is one of: reproduced, partly, not reproduced, too few runs, not run, not tried. A claim
of less error counts as met where the difference is more than two standard errors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.evidence.figures import (
    NOT_RUN,
    Estimate,
    Series,
    change,
    mean,
    said_change,
    stored,
    table,
)
from benchmarks.evidence.len_bgt import LABEL, configurations, interest, workload
from benchmarks.evidence.mul import BY_ROUNDS, decisions, error
from benchmarks.paper.single import EPSILONS, MECHANISMS, MIDDLE, TABLES
from benchmarks.paper.world import TOTAL_EPSILON
from include.accounting import ONE, epsilon_from_rho, rho_from_epsilon

YES, PARTLY, NO = "reproduced", "partly", "not reproduced"
NOT_TRIED, TOO_FEW = "not tried", "too few runs"
FEW = 5
CAP = "the pool is never exceeded, even if all users collude"
HEADLINE, COMPARABLE = -0.67, 0.10


@dataclass(frozen=True)
class Claim:
    """A claim, what became of it, and the figure that says so."""

    said: str
    verdict: str
    figure: str


def cusyn() -> Iterator[Claim]:
    """Judge the claims of the CuSyn paper."""
    yield headline()
    yield comparable_workload()
    yield longer_helps_workload()
    yield _counted(
        "lower error on the interest queries in most configurations of LEN",
        [fall(*interest(*cell)) for cell in configurations(("1",))],
    )
    yield long_sequences_cost()
    yield budget_helps()
    yield _counted(
        "lower error on the interest queries in most configurations of BGT",
        [fall(*interest(*cell)) for cell in configurations(EPSILONS)],
    )
    yield _counted(
        "MUL: the advantage on the interest queries stays over 5, 10 and 15 rounds",
        [fall(*_mul(*cell, "interest")) for cell in _mul_cells()],
    )
    yield _counted(
        "MUL: the error on all pairs stays comparable (within 10% of a release without queries)",
        [_near(*_mul(*cell, "workload")) for cell in _mul_cells()],
    )
    yield additive_cap()
    yield free_of_charge()
    yield Claim("results on colorado", NOT_TRIED, "the table is not available here")


def headline() -> Claim:
    """Judge the 67%."""
    found = {m: fall(*interest("nltcs", m, "1", MIDDLE)) for m in MECHANISMS}
    met = [one is not None and one.mean - 2 * one.error <= HEADLINE for one in found.values()]
    return Claim(
        "NLTCS, 10 queries: about 67% less error on the interest queries",
        _verdict(met, list(found.values())),
        _by_mechanism(found),
    )


def comparable_workload() -> Claim:
    """Judge the error on all pairs beside the 67%."""
    found = {m: _workload_change("nltcs", m, MIDDLE) for m in MECHANISMS}
    met = [one is not None and one.mean <= COMPARABLE for one in found.values()]
    return Claim(
        "... while the error on all pairs stays comparable",
        _verdict(met, list(found.values())),
        _by_mechanism(found),
    )


def longer_helps_workload() -> Claim:
    """Judge 15 queries."""
    found = {m: _workload_change("nltcs", m, 15) for m in MECHANISMS}
    met = [one is not None and one.mean < -COMPARABLE and _sure(one) for one in found.values()]
    return Claim(
        "NLTCS, 15 queries: the error on all pairs is reduced substantially too",
        _verdict(met, list(found.values())),
        _by_mechanism(found),
    )


def long_sequences_cost() -> Claim:
    """Judge that many queries cost accuracy elsewhere."""
    found = {
        f"{name} {LABEL[m]}": _workload_change(name, m, 15) for name in TABLES for m in MECHANISMS
    }
    known = {name: one for name, one in found.items() if one is not None}
    worse = [name for name, one in known.items() if one.mean > 0 and _sure(one)]
    told = f"all pairs worse at 15 queries in {len(worse)} of {len(known)} configurations"
    return Claim(
        "a long sequence may compress the general rounds and raise the error on all pairs",
        NOT_RUN if not known else YES if worse else NO,
        f"{told}: {', '.join(f'{n} {said_change(known[n])}' for n in worse)}" if worse else told,
    )


def budget_helps() -> Claim:
    """Judge that the error falls with the budget."""
    falls = []
    for name in TABLES:
        for mechanism in MECHANISMS:
            points = [workload(name, mechanism, e, MIDDLE)[1] for e in sorted(EPSILONS, key=float)]
            known = [one.mean for one in map(mean, points) if one is not None]
            falls.append(known == sorted(known, reverse=True) if len(known) > 2 else None)
    known = [one for one in falls if one is not None]
    return Claim(
        "the error on all pairs falls as the budget grows",
        NOT_RUN if not known else YES if all(known) else PARTLY if any(known) else NO,
        f"with 10 queries, means fall from each epsilon to the next in {sum(known)} of "
        f"{len(known)} table and mechanism; {len(falls) - len(known)} not run",
    )


def additive_cap() -> Claim:
    """Judge that nothing beyond the cap is granted, whoever asks."""
    sequences = [(r, one) for r in BY_ROUNDS for one in decisions("epsilon", r)]
    totals = [sum(float(row["granted"]) for row in one) for _, one in sequences]
    if not totals:
        return Claim(CAP, NOT_RUN, NOT_RUN)
    told = (
        f"four users asked for 40 in all, {min(totals):.2f} to {max(totals):.2f} was granted in "
        f"{len(totals)} sequences"
    )
    return Claim(
        CAP,
        YES if max(totals) <= TOTAL_EPSILON else NO,
        told,
    )


def free_of_charge() -> Claim:
    """Judge the accounting of Algorithm 3."""
    rho = rho_from_epsilon(ONE, 9)
    twice, many = (epsilon_from_rho(times * rho, 9) / ONE for times in (2, 17))
    return Claim(
        "customisation has no additional privacy cost (Algorithm 3 as printed)",
        NO,
        f"as printed it spends epsilon {twice:.2f} to {many:.2f} where 1 is meant; the plans used "
        "here cost what was granted",
    )


def csa() -> Iterator[Claim]:
    """Read the verdicts that the CSAPrivBayes experiments wrote."""
    path = stored("csa.csv")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for line in lines:
        found = re.match(r"# (.*): (reproduced|NOT reproduced) \((.*)\)$", line)
        if found:
            yield Claim(found[1], found[2].lower(), found[3].replace("+-", "±"))
        elif line.startswith("# not tried: "):
            yield Claim(line.removeprefix("# not tried: "), NOT_TRIED, "-")
    if not lines:
        yield Claim("the figures of the paper", NOT_RUN, "`make bench-csa`")


def claims_section() -> str:
    """Write what reproduces and what does not."""
    head = ("claim", "verdict", "figure")

    def lines(claims: Callable[[], Iterator[Claim]]) -> list[tuple[str, str, str]]:
        return [(one.said, f"**{one.verdict}**", one.figure) for one in claims()]

    return f"""## What reproduces and what does not

With plans that cost what was granted, at delta 1e-9. A change is that of the mean; it counts where
it is more than two standard errors. Where seeds are few or a table was not run, the figure says so.

CuSyn (Tan, Nie, Zhao and Li 2026):

{table(head, lines(cusyn))}

CSAPrivBayes (Chen Siyang):

{table(head, lines(csa))}"""


def fall(plain: Series, custom: Series) -> Estimate | None:
    """Return the change that naming the queries makes."""
    return change(custom, plain)


def _near(plain: Series, custom: Series) -> Estimate | None:
    """Turn `within 10%` into a change that is negative where it holds."""
    found = change(custom, plain)
    return None if found is None else Estimate(found.mean - COMPARABLE, 0.0, found.seeds)


def _workload_change(name: str, mechanism: str, length: int) -> Estimate | None:
    return fall(*workload(name, mechanism, "1", length))


def _mul_cells() -> Iterator[tuple[str, str, int]]:
    yield from ((n, m, r) for n in TABLES for m in MECHANISMS for r in BY_ROUNDS)


def _mul(name: str, mechanism: str, rounds: int, field: str) -> list[Series]:
    return [error(name, mechanism, rounds, kind, f"{field}_rows") for kind in ("plain", "off")]


def _sure(one: Estimate) -> bool:
    return abs(one.mean) > 2 * one.error


def _counted(claim: str, changes: list[Estimate | None]) -> Claim:
    """Count the configurations in which a change is below zero; one seed alone judges nothing."""
    known = [one for one in changes if one is not None]
    judged = [one for one in known if one.seeds > 1]
    met = sum(one.mean < 0 and (one.error == 0 or _sure(one)) for one in judged)
    told = [f"{met} of {len(judged)} configurations"]
    few = sum(one.seeds < FEW for one in judged)
    told += [f"{few} of these with fewer than {FEW} seeds"] if few else []
    alone = [one for one in known if one.seeds == 1]
    below = sum(one.mean < 0 for one in alone)
    told += [f"with one seed only, not judged: {below} of {len(alone)}"] if alone else []
    told += [f"{changes.count(None)} not run"] if None in changes else []
    return Claim(claim, _share(met, judged, known), "; ".join(told))


def _share(met: int, judged: list[Estimate], known: list[Estimate]) -> str:
    if not judged:
        return TOO_FEW if known else NOT_RUN
    return YES if met > len(judged) / 2 else PARTLY if met else NO


def _verdict(met: list[bool], found: list[Estimate | None]) -> str:
    if not any(found):
        return NOT_RUN
    return YES if all(met) else PARTLY if any(met) else NO


def _by_mechanism(found: dict[str, Estimate | None]) -> str:
    return ", ".join(f"{LABEL[m]} {said_change(one)}" for m, one in found.items())
