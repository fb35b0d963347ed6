"""A small, complete example of the facts, with names that a careless page would trip over."""

from __future__ import annotations

import zlib

import numpy as np

from include.quality.checks import check_synthetic
from include.quality.facts import (
    BudgetFacts,
    BurnPoint,
    CheckOutcome,
    ColumnFacts,
    DatasetFacts,
    InterestQuery,
    Measurement,
    PoolFacts,
    PrivacyFacts,
    ReleaseFacts,
    Share,
)
from include.quality.fidelity import assess, gate
from include.quality.report import ReportInput

HOSTILE = ("<script>alert(1)</script>", "السن", " a,\"b\"\n'c'", "x‮evil", "&amp;{{7*7}}")


def columns(names: tuple[str, ...] = ("educ", "income", "happy", "workstat")) -> tuple:
    sizes = {0: 5, 1: 4, 2: 3, 3: 6}
    out = []
    for i, name in enumerate(names):
        size = sizes[i % 4]
        if i % 4 == 0:
            cells = tuple(f"{4 * k} to {4 * k + 3}" for k in range(size))
            out.append(ColumnFacts(name, "integer", cells, False, None, "0", str(4 * size - 1)))
        else:
            values = tuple(f"{name} {k}" for k in range(size - 1))
            out.append(ColumnFacts(name, "category", (*values, "(missing)"), True, values))
    return tuple(out)


def codes(cols: tuple, rows: int = 2000, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    parts = [
        np.minimum(rng.geometric(0.45, rows) - 1, len(c.cells) - 1).astype(np.uint8) for c in cols
    ]
    return np.stack(parts, axis=1)


def measure(cols: tuple, table: np.ndarray, clique: tuple[str, ...], purpose: str, sigma: float):
    rng = np.random.default_rng(zlib.crc32("|".join(clique).encode()))
    names = [c.name for c in cols]
    shape = [len(cols[names.index(n)].cells) for n in clique]
    index = np.ravel_multi_index([table[:, names.index(n)] for n in clique], shape)
    counts = np.bincount(index, minlength=int(np.prod(shape)))
    noisy = counts + np.rint(rng.normal(0, sigma, counts.shape)).astype(int)
    return Measurement(clique, sigma, tuple(int(v) for v in noisy), purpose)


def budget() -> BudgetFacts:
    history = tuple(
        BurnPoint(str(1994 + 2 * i), 14_970_000_000 * (i + 1), t)
        for i, t in enumerate(("1", "1.4366", "1.78"))
    )
    people = PoolFacts(
        "us_adults_gss",
        "dataset",
        "zcdp",
        1_090_800_000_000,
        29_940_000_000,
        14_970_000_000,
        "10",
        "1.4366",
        "1.78",
        "9.76",
        0,
        history,
    )
    user = PoolFacts(
        "labour_team on gss_happiness",
        "user",
        "zcdp",
        203_000_000_000,
        29_940_000_000,
        14_970_000_000,
        "4",
        "1.4366",
        "1.78",
        "3.5",
        14_970_000_000,
    )
    shares = (
        Share("interest", 4_042_000_000, "0.004042"),
        Share("general", 9_431_000_000, "0.009431"),
        Share("selection", 1_497_000_000, "0.001497"),
    )
    return BudgetFacts("1", "1", "0.5", "request", "Granted in full.", (people, user), shares)


def report(
    names: tuple[str, ...] = ("educ", "income", "happy", "workstat"), rows: int = 2000
) -> ReportInput:
    cols = columns(names)
    table = codes(cols, rows)
    wanted = [(names[0], names[1]), (names[2], names[3])]
    measured = [measure(cols, codes(cols, rows, 4), c, "interest", 9.4) for c in wanted]
    measured += [
        measure(cols, codes(cols, rows, 4), c, "selected", 14.0) for c in [(names[0], names[2])]
    ]
    interest = [
        InterestQuery(c, 9.4, 0.0375 + 0.01 * i, 0.062 + 0.01 * i, 0.04)
        for i, c in enumerate(wanted)
    ]
    fidelity = assess(table, cols, measured, interest)
    checks = (
        CheckOutcome(None, "number of columns", True),
        *tuple(CheckOutcome(c.name, "only declared values", True) for c in cols),
    )
    return ReportInput(
        ReleaseFacts(
            "happiness_by_wave", "1998-12-31", "labour_team", "2026-11-30T18:00:00Z", "Happiness"
        ),
        DatasetFacts(
            "gss_happiness",
            "General Social Survey: happiness",
            licence="CC-BY-4.0",
            licence_url="https://creativecommons.org/licenses/by/4.0/",
            citation="Davern et al.",
            publisher="Statistics office",
            contact="mailto:data@example.org",
            populations=("us_adults_gss",),
        ),
        PrivacyFacts("1", "1e-9", "person", "MWEM-PGM with interest queries", rho="0.01497"),
        budget(),
        cols,
        fidelity,
        checks,
        gate(fidelity, checks),
    )


__all__ = ["HOSTILE", "check_synthetic", "codes", "columns", "measure", "report"]
