"""How close the synthetic table is to the noisy measurements, and how far those are from the truth.

The raw data are not consulted: every figure is computed from the sealed, noisy measurements and
the synthetic table, so it costs nothing and reveals nothing more. What cannot be known that way
(the error of a pair nobody measured) is reported as not measured, never guessed.

Total variation: half the L1 distance of two normalised marginals; 0 is equal, 1 is disjoint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from include.quality.facts import CheckOutcome, ColumnFacts, InterestQuery, Measurement
from include.quality.marginals import (
    CellBar,
    SyntheticTable,
    cell_bars,
    measured_share,
    total_variation,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONFIDENCE = 0.95


@dataclass(frozen=True)
class MarginalFidelity:
    """One measured marginal compared with the synthetic table.

    Privacy: post-processing.
    """

    clique: tuple[str, ...]
    purpose: str
    cells: int
    sigma: float | None  # None, as the errors: not measured
    distance_tv: float | None  # synthetic table to noisy measurement
    typical_tv: float | None  # noisy measurement to truth: expected
    bound95_tv: float | None  # noisy measurement to truth: in 95 of 100 releases
    predicted_tv: float | None = None
    warning: str = ""
    bars: tuple[CellBar, ...] = ()


@dataclass(frozen=True)
class ColumnFidelity:
    """The one-way marginal of a column.

    Privacy: post-processing.
    """

    name: str
    bars: tuple[CellBar, ...]
    distance_tv: float | None  # None: no measurement holds this column
    source: tuple[str, ...] = ()  # the measurement it was summed from


@dataclass(frozen=True)
class Fidelity:
    """Everything the report and the gate need to know.

    Privacy: post-processing.
    """

    rows: int  # rows of the synthetic table
    noisy_total: float
    interest: tuple[MarginalFidelity, ...]
    measured: tuple[MarginalFidelity, ...]
    columns: tuple[ColumnFidelity, ...]


@dataclass(frozen=True)
class Thresholds:
    """What the steward asks of a release before it may be published; None asks nothing.

    Privacy: ledger only.
    """

    require_checks: bool = True
    max_interest_distance_tv: float | None = None  # synthetic table to noisy measurement
    max_interest_bound95_tv: float | None = None  # noisy measurement to truth
    max_measured_distance_tv: float | None = None

    @classmethod
    def from_mapping(cls, gate: Mapping[str, Any]) -> Thresholds:
        """Read the `gate` block of a release file.

        Args:
            gate: keys as the fields of this class.

        Returns:
            The thresholds.

        Raises:
            include.quality.checks.QualityError: a key is not known or a value is no share.

        Privacy: ledger only.
        """
        from include.quality.checks import QualityError

        known = list(cls.__dataclass_fields__)
        for key, value in gate.items():
            if key not in known:
                raise QualityError(f"gate: '{key}' is not a threshold; use {', '.join(known)}.")
            share = isinstance(value, int | float) and not isinstance(value, bool)
            if key == "require_checks":
                good = isinstance(value, bool)
            else:
                good = value is None or (share and 0 < value <= 1)
            if not good:
                wanted = "true or false" if key == "require_checks" else "a share above 0, up to 1"
                raise QualityError(f"gate: {key} must be {wanted}.")
        return cls(**gate)


@dataclass(frozen=True)
class Verdict:
    """Whether the release may be published, and why not.

    Privacy: post-processing.
    """

    passed: bool
    reasons: tuple[str, ...] = field(default=())


def noise_tv(sigma: float, cells: int, total: float) -> tuple[float, float]:
    """Error of a noisy marginal in total variation, from its noise alone.

    Args:
        sigma: scale of the Gaussian noise of one cell, in rows.
        cells: number of cells.
        total: noisy number of rows.

    Returns:
        (expected, 95% bound), each a share capped at 1. The expectation is half the mean of the
        noise's L1 norm over the total; the bound adds its Gaussian concentration
        (the norm is Lipschitz with constant sqrt(cells)).

    Source: Boucheron, Lugosi & Massart 2013, Theorem 5.6.

    Privacy: post-processing.
    """
    if total <= 0:
        return 1.0, 1.0
    mean = cells * sigma * math.sqrt(2 / math.pi)
    tail = sigma * math.sqrt(2 * cells * math.log(1 / (1 - CONFIDENCE)))
    return min(1.0, mean / (2 * total)), min(1.0, (mean + tail) / (2 * total))


def noisy_total(measurements: Sequence[Measurement]) -> float:
    """Estimate the number of rows from the measurements, weighted by their noise.

    Args:
        measurements: noisy marginals of one transcript.

    Returns:
        A non-negative number of rows; 0 without measurements.

    Privacy: post-processing.
    """
    weights = [1 / (len(m.counts) * m.sigma**2) for m in measurements]
    if not weights:
        return 0.0
    sums = [float(sum(m.counts)) for m in measurements]
    estimate = sum(w * s for w, s in zip(weights, sums, strict=True)) / sum(weights)
    return max(0.0, estimate)


def assess(
    codes: NDArray[np.integer[Any]],
    columns: Sequence[ColumnFacts],
    measurements: Sequence[Measurement],
    interest: Sequence[InterestQuery],
) -> Fidelity:
    """Compare a synthetic table with the noisy measurements it was fitted to.

    Args:
        codes: synthetic rows, shape (rows, columns), codes in the order of `columns`.
        columns: the declared columns; keys have no codes and are passed over.
        measurements: noisy marginals of the sealed transcript.
        interest: the named queries with their errors from the noise.

    Returns:
        Distances per measured marginal, per interest query and per column.

    Privacy: post-processing.
    """
    total = noisy_total(measurements)
    columns = [column for column in columns if column.type != "key"]
    table = SyntheticTable(codes, columns)
    measured = tuple(_compare(table, m, total) for m in measurements if m.clique)
    named = tuple(_interest(table, query, measurements, total) for query in interest)
    singles = tuple(_column(table, column.name, measurements, total) for column in columns)
    return Fidelity(int(codes.shape[0]), total, named, measured, singles)


def gate(
    fidelity: Fidelity, checks: Sequence[CheckOutcome], thresholds: Thresholds | None = None
) -> Verdict:
    """Decide whether a release may be published.

    Args:
        fidelity: what `assess` found.
        checks: what `check_synthetic` found.
        thresholds: the steward's; the default asks only that every rule holds.

    Returns:
        The verdict with one sentence per reason to withhold.

    Privacy: post-processing.
    """
    limits = thresholds or Thresholds()
    reasons = []
    if limits.require_checks:
        reasons += [_failed(check) for check in checks if not check.passed]
    for query in fidelity.interest:
        name = f"the interest query {' x '.join(query.clique)}"
        gap, bound = query.distance_tv, query.bound95_tv
        reasons += _above(_DISTANCE + name, gap, limits.max_interest_distance_tv)
        reasons += _above(_BOUND + name, bound, limits.max_interest_bound95_tv)
    for marginal in fidelity.measured:
        name = f"the marginal {' x '.join(marginal.clique)}"
        reasons += _above(_DISTANCE + name, marginal.distance_tv, limits.max_measured_distance_tv)
    return Verdict(not reasons, tuple(reasons))


def _failed(check: CheckOutcome) -> str:
    place = "the table" if check.column is None else f"column '{check.column}'"
    how = "could not be evaluated" if check.raised else "does not hold"
    return f"On {place} the rule '{check.rule}' {how}."


_DISTANCE = "The distance of the synthetic table from the measurement of "
_BOUND = "The 95% error bound of "


def _above(subject: str, value: float | None, limit: float | None) -> list[str]:
    if limit is None or (value is not None and value <= limit):
        return []
    if value is None:
        return [f"{subject} is not known: it was not measured."]
    return [f"{subject} is {value:.4f}, above the declared limit {limit:g}."]


def _compare(table: SyntheticTable, m: Measurement, total: float) -> MarginalFidelity:
    typical, bound = noise_tv(m.sigma, len(m.counts), total)
    gap = total_variation(table.share(m.clique), measured_share(m, total))
    return MarginalFidelity(m.clique, m.purpose, len(m.counts), m.sigma, gap, typical, bound)


def _interest(
    table: SyntheticTable, query: InterestQuery, measurements: Sequence[Measurement], total: float
) -> MarginalFidelity:
    candidates = [m for m in measurements if m.clique == query.clique]
    # The dedicated measurement first, then the least noisy one.
    candidates.sort(key=lambda m: (m.purpose != "interest", m.sigma))
    share = table.share(query.clique)
    measured = measured_share(candidates[0], total) if candidates else None
    sigma = candidates[0].sigma if candidates else 0.0
    return MarginalFidelity(
        query.clique,
        "interest",
        len(share),
        query.sigma,
        total_variation(share, measured) if measured is not None else None,
        query.typical_tv,
        query.bound95_tv,
        query.predicted_tv,
        query.warning,
        cell_bars(table, query.clique, share, measured, sigma, total),
    )


def _column(
    table: SyntheticTable, name: str, measurements: Sequence[Measurement], total: float
) -> ColumnFidelity:
    """Sum the least noisy measurement that holds the column down to it."""
    import numpy as np

    share = table.share((name,))
    holding = [m for m in measurements if name in m.clique]
    if not holding or total <= 0:
        bars = cell_bars(table, (name,), share, None, 0.0, total)
        return ColumnFidelity(name, bars, None)

    def spread(m: Measurement) -> float:  # deviation of one summed cell
        return m.sigma * math.sqrt(len(m.counts) / len(table.labels[name]))

    best = min(holding, key=spread)
    counts = np.asarray(best.counts, dtype=np.float64).reshape(table.shape(best.clique))
    others = tuple(i for i, other in enumerate(best.clique) if other != name)
    measured = counts.sum(axis=others) / total
    # The total is known better than this one sum: spread the difference evenly (least squares).
    measured += (1 - measured.sum()) / len(measured)
    bars = cell_bars(table, (name,), share, measured, spread(best), total)
    return ColumnFidelity(name, bars, total_variation(share, measured), best.clique)
