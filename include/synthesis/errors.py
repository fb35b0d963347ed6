"""Reached error of the interest queries, from the noise alone: never from the data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from include.synthesis.plan import Plan, noise_tv
from include.synthesis.task import Clique
from include.synthesis.transcript import NoisyMarginal, Transcript, noisy_total

if TYPE_CHECKING:
    from include.synthesis.model import Model

_NOISE_RISK = 0.04
_TOTAL_DEVIATIONS = 2.576  # two-sided 1% of a Gaussian: with the 4% above, 5% in all


@dataclass(frozen=True)
class InterestError:
    """How far a released interest query is from the truth.

    Args:
        clique: The interest query.
        cells: Cells of its marginal.
        sigma: Noise scale of each cell in rows; None where interruptions left it unmeasured.
        typical_tv: Expected total variation distance by noise alone, 0 to 1, or None.
        bound95_tv: Bound that holds in 95% of releases, 0 to 1, or None.

    Privacy: post-processing.
    """

    clique: Clique
    cells: int
    sigma: float | None
    typical_tv: float | None
    bound95_tv: float | None

    def to_dict(self) -> dict[str, Any]:
        """Describe the error in JSON types."""
        return {
            "columns": list(self.clique),
            "cells": self.cells,
            "sigma": self.sigma,
            "typical_tv": self.typical_tv,
            "bound95_tv": self.bound95_tv,
        }


def interest_errors(
    transcript: Transcript, plan: Plan, model: Model | None = None
) -> list[InterestError]:
    """State the error of each interest query, from the noise scales and noisy answers.

    Args:
        transcript: A finished measurement of `plan`.
        plan: Its plan.
        model: The fitted model; with it the bound is for the model's marginal, without it for
            the noisy answer itself.

    Returns:
        One entry for each interest query, in the order of the plan. The bound is on the total
        variation distance between normalised marginals:
        (|model - answer|_1 + 96% quantile of |noise|_1 + 99% quantile of the row count's error)
        over twice the noisy row count, by the union bound.

    Source: McKenna, Mullins, Sheldon and Miklau 2022 (AIM), section 6, with the exact moment
        generating function of the noise in place of its sub-Gaussian bound.

    Privacy: post-processing.
    """
    rows, deviation = noisy_total(transcript.marginals)
    measured = {item.clique: item for item in transcript.marginals if item.label == "interest"}
    errors = []
    for query in plan.task.interest:
        cells = plan.task.cells(query)
        item = measured.get(query)
        if item is None:
            errors.append(InterestError(query, cells, None, None, None))
            continue
        reach = noise_l1_quantile(item.sigma, cells, _NOISE_RISK) + _TOTAL_DEVIATIONS * deviation
        if model is not None:
            reach += _gap(model, item)
        bound = min(1.0, reach / (2 * max(rows, 1.0)))
        typical = noise_tv(item.sigma, cells, rows)
        errors.append(InterestError(query, cells, item.sigma, typical, bound))
    return errors


def noise_l1_quantile(sigma: float, cells: int, risk: float) -> float:
    """Bound the L1 norm of discrete Gaussian noise on a marginal.

    Args:
        sigma: Noise scale of each cell in rows, above 0.
        cells: Number of cells, >= 1.
        risk: Probability with which the bound may fail, in (0, 1).

    Returns:
        Bound in rows: Chernoff's, minimised over its free parameter.

    Privacy: ledger only.
    """
    best = math.inf
    for step in range(1, 161):
        tilt = 0.025 * step  # in units of 1 / sigma
        best = min(best, (cells * _log_moment(sigma, tilt) + math.log(1 / risk)) / tilt)
    return best * sigma


def _log_moment(sigma: float, tilt: float) -> float:
    """Compute log E exp(tilt |z| / sigma) for discrete Gaussian z."""
    if sigma >= 4:  # the lattice is invisible: equal to the continuous value within 1e-30
        return tilt * tilt / 2 + math.log1p(math.erf(tilt / math.sqrt(2)))
    reach = math.ceil(sigma * (tilt + 12)) + 1
    weights = [math.exp(-((k / sigma) ** 2) / 2) for k in range(-reach, reach + 1)]
    tilted = [
        math.exp(-((k / sigma) ** 2) / 2 + tilt * abs(k) / sigma) for k in range(-reach, reach + 1)
    ]
    return math.log(sum(tilted) / sum(weights))


def _gap(model: Model, item: NoisyMarginal) -> float:
    """Sum how far the model's marginal is from the noisy answer, in rows."""
    marginal = model.marginal(item.clique)
    return float(sum(abs(a - b) for a, b in zip(marginal.tolist(), item.counts, strict=True)))
