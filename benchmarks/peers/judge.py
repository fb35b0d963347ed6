"""The one evaluator of all peers: total variation of normalised two-way and three-way marginals."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import Codes, read_codes


@dataclass(frozen=True)
class Score:
    """Mean total variation over all pairs and all triples, and the worst pair's."""

    tv2_mean: float
    tv3_mean: float
    tv2_worst: float


class Judge:
    """A research table that synthetic rows are held against."""

    def __init__(self, csv_path: Path, domain_path: Path) -> None:
        self.csv_path, self.domain_path = csv_path, domain_path
        self.codes, self.domain = read_codes(csv_path, domain_path)

    def score(self, synthetic: Path) -> Score:
        """Judge a file of synthetic codes; ends the command if its codes leave the domain."""
        codes, domain = read_codes(synthetic, self.domain_path)
        at = [list(domain).index(name) for name in self.domain]
        return judge(self.codes, codes[:, at], self.domain)


def judge(real: Codes, synthetic: Codes, domain: Mapping[str, int]) -> Score:
    """Compare two tables with the same columns over all pairs and triples."""
    pairs = distances(real, synthetic, domain, 2)
    triples = distances(real, synthetic, domain, 3)
    return Score(float(pairs.mean()), float(triples.mean()), float(pairs.max()))


def distances(
    real: Codes, synthetic: Codes, domain: Mapping[str, int], ways: int
) -> NDArray[np.float64]:
    """Half the L1 distance of normalised marginals, for every set of so many columns."""
    sizes = list(domain.values())
    found = []
    for columns in itertools.combinations(range(len(sizes)), ways):
        shares = [marginal(codes, columns, sizes) for codes in (real, synthetic)]
        found.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return np.array(found)


def marginal(codes: Codes, columns: tuple[int, ...], sizes: list[int]) -> NDArray[Any]:
    """Count a marginal and normalise it."""
    flat = np.zeros(len(codes), dtype=np.int64)
    for column in columns:
        flat = flat * sizes[column] + codes[:, column]
    cells = int(np.prod([sizes[column] for column in columns]))
    return np.bincount(flat, minlength=cells) / max(len(codes), 1)
