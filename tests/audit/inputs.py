"""Worst-case tables and their neighbours, and the configurations of every mechanism."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from include.synthesis import SynthesisTask

NAMES = ("s", "x", "y")
DOMAIN = dict.fromkeys(NAMES, 2)
FINE = DOMAIN | {"y": 3}  # a third level of y that no row has: a grid to choose edges from
Pair = tuple[np.ndarray, np.ndarray]

SENSITIVE: dict[str, object] = {"sensitive": "s"}
CONFIGURATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "mwem_pgm": ("mwem_pgm", {"interest": [["s", "x"]], "options": {"rounds": 1}}),
    "mwem_pgm without interest": ("mwem_pgm", {"options": {"rounds": 2}}),
    "aim": ("aim", {"interest": [["s", "x"]], "options": {"rounds": 5}}),
    "privbayes": ("privbayes", {"options": {"degree": 1}}),
    "privbayes, selected root": ("privbayes", {"options": {"degree": 1, "root": "selected"}}),
    "privbayes, public rows": ("privbayes", {"options": {"degree": 2, "public_rows": 100}}),
    "csa": ("csa_privbayes", {"options": SENSITIVE | {"degree": 1}}),
    "csa, wide": ("csa_privbayes", {"options": SENSITIVE | {"degree": 2}}),
    "csa, forced": ("csa_privbayes", {"options": SENSITIVE | {"force_sensitive_parent": True}}),
    "csa, light region": (
        "csa_privbayes",
        {"options": SENSITIVE | {"degree": 1, "sensitive_weight": 0.05}},
    ),
    "csa, noisy regions": (
        "csa_privbayes",
        {"options": SENSITIVE | {"degree": 1, "regions": "noisy_information", "theta": 0.1}},
    ),
    "csa, selected root": (
        "csa_privbayes",
        {"options": SENSITIVE | {"degree": 1, "root": "selected"}},
    ),
    "csa, gaussian": (
        "csa_privbayes",
        {"options": SENSITIVE | {"degree": 1, "noise": "gaussian"}},
    ),
    "csa, gaussian, noisy regions, selected root": (
        "csa_privbayes",
        {
            "options": SENSITIVE
            | {
                "degree": 1,
                "noise": "gaussian",
                "regions": "noisy_information",
                "root": "selected",
            }
        },
    ),
    "csa, quantile bins": (
        "csa_privbayes",
        {
            "domain": FINE,
            "ordered": {"y": 3},
            "options": SENSITIVE | {"degree": 1, "quantile_bins": {"y": 2}},
        },
    ),
    "privbayes, quantile bins, gaussian": (
        "privbayes",
        {
            "domain": FINE,
            "ordered": {"y": 3},
            "options": {"degree": 1, "quantile_bins": {"y": 2}, "noise": "gaussian"},
        },
    ),
    "csa, graphical model": ("csa_privbayes", {"options": SENSITIVE | {"fit": "pgm"}}),
}


def task_of(configuration: str, **changes: Any) -> tuple[str, SynthesisTask]:
    """Return the mechanism and the task of a configuration."""
    name, asked = CONFIGURATIONS[configuration]
    return name, SynthesisTask.build(**({"domain": DOMAIN} | asked | changes))


def rows(*blocks: tuple[int, tuple[int, ...]]) -> np.ndarray:
    """Write a table as (how many, row) blocks."""
    parts = [np.tile(np.array(row, dtype=np.int64), (count, 1)) for count, row in blocks]
    return np.concatenate([np.zeros((0, len(NAMES)), dtype=np.int64), *parts])


def plus(table: np.ndarray, *row: int) -> Pair:
    """Pair a table with the same and one row more."""
    return table, np.vstack([table, np.array([row], dtype=np.int64)])


def pairs() -> Iterator[tuple[str, Pair]]:
    """List neighbours on which some published implementation has failed, or could."""
    yield "empty", plus(rows(), 1, 1, 1)
    yield "one row", plus(rows((1, (0, 1, 0))), 1, 1, 1)
    for count in (10, 10_000):
        yield f"{count} zeros and one (1, 1, 1)", plus(rows((count, (0, 0, 0))), 1, 1, 1)
    # S = 1 on 100 of 10,000 rows, x copies S, y has 100 ones disjoint from S; a row ties them.
    two_sided = rows((9800, (0, 0, 0)), (100, (1, 1, 0)), (100, (0, 0, 1)))
    yield "two-sided", plus(two_sided, 1, 1, 0)
    yield "two-sided, all ones", plus(two_sided, 1, 1, 1)
    xor = rows((50, (0, 0, 0)), (50, (1, 1, 0)), (50, (1, 0, 1)), (50, (0, 1, 1)))
    yield "xor", plus(xor, 1, 1, 1)
    yield "ties", plus(rows((20, (0, 0, 0)), (20, (1, 1, 1))), 0, 1, 0)
    yield "a rare category", plus(rows((500, (0, 0, 0)), (500, (0, 1, 1))), 1, 0, 0)
    near_theta = rows((60, (0, 0, 0)), (40, (0, 1, 0)), (38, (1, 0, 0)), (62, (1, 1, 0)))
    yield "information at theta", plus(near_theta, 1, 1, 0)


PAIRS = dict(pairs())
