"""What a mechanism hands to the engine: noisy marginals, and the total they imply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from include.errors import CuSynError

Clique = tuple[str, ...]
FloatArray = NDArray[np.float64]

TOTAL_FLOOR = 1.0
"""The smallest total of a model: with less the chi-square of any measurement is degenerate."""


class EstimationError(CuSynError, ValueError):
    """A measurement, clique or domain the engine cannot use, said in one sentence.

    Privacy: post-processing.
    """


@dataclass(frozen=True, eq=False)
class Measurement:
    """A marginal with Gaussian-like noise of a known scale.

    Args:
        clique: column names, without repetition.
        values: noisy counts, float64, shape (cells,), C order over the clique as given.
        sigma: standard deviation of the noise of each cell, in rows, above zero.

    Source: McKenna, Sheldon and Miklau 2019, section 2 (the measurement log).

    Privacy: post-processing.
    """

    clique: Clique
    values: FloatArray
    sigma: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "clique", tuple(self.clique))
        values = np.ascontiguousarray(self.values, dtype=np.float64).reshape(-1)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "sigma", float(self.sigma))
        if not 0 < self.sigma < np.inf:
            raise EstimationError(
                f"the measurement of {label(self.clique)} needs a finite noise scale above zero"
            )


def label(clique: Iterable[str]) -> str:
    """Write a clique for a message, as `a x b`.

    Privacy: ledger only.
    """
    return " x ".join(clique) or "the empty clique"


def check_domain(domain: Mapping[str, int]) -> None:
    """Refuse a domain without columns or with a column that has no cell.

    Args:
        domain: column name to number of cells.

    Raises:
        EstimationError: naming the column.

    Privacy: ledger only.
    """
    if not domain:
        raise EstimationError("the domain has no column; declare at least one")
    for name, cells in domain.items():
        if int(cells) != cells or cells < 1:
            raise EstimationError(f"column {name} needs at least one cell in the domain")


def check_clique(domain: Mapping[str, int], clique: Iterable[str]) -> None:
    """Refuse a clique with an unknown or repeated column.

    Args:
        domain: column name to number of cells.
        clique: column names.

    Raises:
        EstimationError: naming the column.

    Privacy: ledger only.
    """
    seen = set()
    for name in clique:
        if name not in domain:
            raise EstimationError(f"column {name} is not in the domain; name a declared column")
        if name in seen:
            raise EstimationError(f"column {name} stands twice in one clique; name it once")
        seen.add(name)


def check_measurements(domain: Mapping[str, int], measurements: Sequence[Measurement]) -> None:
    """Refuse measurements that do not fit the domain or are not finite.

    Args:
        domain: column name to number of cells.
        measurements: noisy marginals.

    Raises:
        EstimationError: naming the clique.

    Privacy: post-processing.
    """
    for item in measurements:
        check_clique(domain, item.clique)
        cells = cells_of(domain, item.clique)
        if item.values.size != cells:
            raise EstimationError(
                f"the measurement of {label(item.clique)} has {item.values.size} values "
                f"where the domain has {cells} cells"
            )
        if not np.isfinite(item.values).all():
            raise EstimationError(f"the measurement of {label(item.clique)} is not finite")


def cells_of(domain: Mapping[str, int], clique: Iterable[str]) -> int:
    """Count the cells of a clique exactly (a Python integer never overflows).

    Privacy: ledger only.
    """
    cells = 1
    for name in clique:
        cells *= int(domain[name])
    return cells


def estimate_total(measurements: Sequence[Measurement]) -> float:
    """Estimate the number of rows as the inverse-variance mean of the measured totals.

    Args:
        measurements: noisy marginals; each one's sum estimates the total with variance
            sigma^2 x cells.

    Returns:
        The estimate in rows, at least `TOTAL_FLOOR`; the floor itself without measurements.

    Source: McKenna, Sheldon and Miklau 2019 (minimum variance unbiased total).

    Privacy: post-processing.
    """
    weights = np.array([1.0 / (m.sigma**2 * m.values.size) for m in measurements])
    sums = np.array([m.values.sum() for m in measurements])
    if not weights.size:
        return TOTAL_FLOOR
    return max(TOTAL_FLOOR, float(sums @ weights / weights.sum()))
