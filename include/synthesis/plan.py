"""The plan: what a mechanism will do to the data, decided before it sees them.

A plan is a pure function of public parameters. The accountant composes its events and refuses a
plan above the grant; the ledger keeps the plan beside the charge.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_UP, Context, Decimal
from fractions import Fraction
from typing import Any

from include.accounting import (
    ONE,
    Cost,
    Event,
    compose,
    epsilon_from_rho,
    event_from_dict,
    format_amount,
    format_delta,
    rho_from_epsilon,
)
from include.errors import CuSynError
from include.synthesis.task import Clique, SynthesisTask

MIN_EPSILON_PICO = ONE // 1000
"""Below epsilon 1e-3 charges of an epsilon pool are not proven to add up."""

USABLE_TV = 0.1
"""A marginal whose noise alone moves more than this share of the rows is called swamped."""

_DIGITS = 9


class PlanError(CuSynError, ValueError):
    """No plan exists for this task within this budget and these bounds.

    Privacy: ledger only.
    """


@dataclass(frozen=True)
class Prediction:
    """What an interest query can be expected to cost in accuracy, from public parameters only.

    Args:
        clique: The interest query.
        cells: Cells of its marginal.
        sigma: Noise scale of each cell, in rows.
        expected_tv: Expected total variation distance by noise alone, 0 to 1; None without a
            public row count.
        usable_epsilon: Smallest epsilon (decimal text) at which `expected_tv` is `USABLE_TV`,
            everything else equal; None without a public row count.
        warning: One sentence where noise will swamp the query, else "".

    Privacy: ledger only.
    """

    clique: Clique
    cells: int
    sigma: float
    expected_tv: float | None
    usable_epsilon: str | None
    warning: str

    def to_dict(self) -> dict[str, Any]:
        """Describe the prediction in JSON types."""
        return {
            "columns": list(self.clique),
            "cells": self.cells,
            "sigma": self.sigma,
            "expected_tv": self.expected_tv,
            "usable_epsilon": self.usable_epsilon,
            "warning": self.warning,
        }


@dataclass(frozen=True)
class Plan:
    """A mechanism's plan.

    Args:
        mechanism: Registered name of the mechanism.
        task: The task it is for.
        epsilon_pico: Granted epsilon in units of 1e-12.
        delta_exponent: N of delta = 1e-N.
        parameters: The mechanism's derived settings, JSON types.
        events: Everything that will touch the data; an adaptive block stands for rounds whose
            scales depend on earlier answers.
        cost: The composed cost of `events`; its rho is at most that of the grant.
        predictions: One for each interest query.

    Privacy: ledger only.
    """

    mechanism: str
    task: SynthesisTask
    epsilon_pico: int
    delta_exponent: int
    parameters: Mapping[str, Any]
    events: tuple[Event, ...]
    cost: Cost
    predictions: tuple[Prediction, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings of all predictions, for logs and forms."""
        return tuple(item.warning for item in self.predictions if item.warning)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of the plan."""
        return hashlib.sha256(canonical_json(self.to_dict())).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Describe the plan in JSON types that read back exactly."""
        return {
            "mechanism": self.mechanism,
            "task": self.task.to_dict(),
            "epsilon": format_amount(self.epsilon_pico),
            "epsilon_pico": self.epsilon_pico,
            "delta": format_delta(self.delta_exponent),
            "delta_exponent": self.delta_exponent,
            "parameters": dict(self.parameters),
            "events": [event.to_dict() for event in self.events],
            "cost": self.cost.to_dict(),
            "predictions": [item.to_dict() for item in self.predictions],
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Plan:
        """Read a plan back from what `to_dict` wrote, and compose its cost anew.

        Raises:
            PlanError: The stated cost is not the cost of the stated events.
        """
        events = tuple(event_from_dict(item) for item in record["events"])
        cost = compose(events)
        if cost.to_dict() != record["cost"]:
            raise PlanError("The stored plan states another cost than its events have.")
        predictions = tuple(
            Prediction(
                clique=tuple(item["columns"]),
                **{key: value for key, value in item.items() if key != "columns"},
            )
            for item in record["predictions"]
        )
        return cls(
            mechanism=record["mechanism"],
            task=SynthesisTask.from_dict(record["task"]),
            epsilon_pico=record["epsilon_pico"],
            delta_exponent=record["delta_exponent"],
            parameters=record["parameters"],
            events=events,
            cost=cost,
            predictions=predictions,
        )


def canonical_json(value: object) -> bytes:
    """Write JSON in the one form digests are taken of.

    Privacy: ledger only.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def granted_rho(epsilon_pico: int, delta_exponent: int) -> int:
    """Find the rho a grant pays for, refusing grants too small to account for.

    Args:
        epsilon_pico: Granted epsilon in units of 1e-12.
        delta_exponent: N of delta = 1e-N.

    Returns:
        Rho in units of 1e-12, rounded down, at least 1.

    Raises:
        PlanError: Epsilon is below 0.001.

    Privacy: ledger only.
    """
    if epsilon_pico < MIN_EPSILON_PICO:
        raise PlanError(
            f"epsilon: {format_amount(epsilon_pico)} is below the smallest release, 0.001; ask "
            "for more."
        )
    return rho_from_epsilon(epsilon_pico, delta_exponent)


def sigma_within(rho: Fraction, count: int, sensitivity: int) -> float:
    """Find the smallest short noise scale at which some Gaussian measurements fit a budget.

    Args:
        rho: Budget of all of them together, exact, above 0.
        count: How many measurements, >= 1.
        sensitivity: L2 sensitivity of each, in rows.

    Returns:
        Sigma in rows, rounded up to 9 digits, so that the exact cost is never above `rho`.

    Privacy: ledger only.
    """
    square = Fraction(count * sensitivity**2) / (2 * rho)
    context = Context(prec=40)
    root = context.sqrt(context.divide(Decimal(square.numerator), Decimal(square.denominator)))
    sigma = float(Context(prec=_DIGITS, rounding=ROUND_UP).create_decimal(root))
    while Fraction(sigma) ** 2 < square:  # the float may lie below the decimal
        sigma = math.nextafter(sigma, math.inf)
    return sigma


def selection_epsilon_within(rho: Fraction, count: int) -> float:
    """Find the largest short epsilon at which some selections fit a budget.

    Args:
        rho: Budget of all of them together, exact, above 0.
        count: How many selections by the exponential mechanism, >= 1.

    Returns:
        Epsilon of each, rounded down to 9 digits, so that the exact cost is never above `rho`.

    Privacy: ledger only.
    """
    square = 8 * rho / count
    context = Context(prec=40)
    root = context.sqrt(context.divide(Decimal(square.numerator), Decimal(square.denominator)))
    epsilon = float(Context(prec=_DIGITS, rounding=ROUND_DOWN).create_decimal(root))
    while Fraction(epsilon) ** 2 > square:
        epsilon = math.nextafter(epsilon, 0.0)
    return epsilon


def noise_tv(sigma: float, cells: int, rows: float) -> float:
    """Expect the total variation distance that Gaussian noise puts into a marginal.

    Args:
        sigma: Noise scale of each cell, in rows.
        cells: Number of cells.
        rows: Number of rows (public or noisy); below 1 counts as 1.

    Returns:
        Half the expected L1 noise over the row count, at most 1.

    Privacy: post-processing.
    """
    return min(1.0, math.sqrt(2 / math.pi) * sigma * cells / (2 * max(rows, 1.0)))


def predict(
    task: SynthesisTask, clique: Clique, sigma: float, cost: Cost, delta: int
) -> Prediction:
    """Predict what noise will do to an interest query, before anything is spent.

    Args:
        task: The task; without `expected_rows` only the noise scale is known.
        clique: The interest query.
        sigma: Its noise scale in rows.
        cost: Cost of the whole plan, to scale to the smallest usable epsilon.
        delta: N of delta = 1e-N.

    Returns:
        The prediction, with a warning where noise alone exceeds `USABLE_TV`.

    Source: mean absolute value of a Gaussian, sigma sqrt(2 / pi), over all cells.

    Privacy: ledger only.
    """
    cells = task.cells(clique)
    if task.expected_rows is None:
        return Prediction(clique, cells, sigma, None, None, "")
    rows = max(task.expected_rows, 1)
    raw = math.sqrt(2 / math.pi) * sigma * cells / (2 * rows)
    needed_rho = math.ceil(cost.rho_pico * (raw / USABLE_TV) ** 2)
    usable = _short_epsilon(epsilon_from_rho(needed_rho, delta))
    warning = ""
    if raw > USABLE_TV:
        warning = (
            f"Noise will swamp the interest query {' x '.join(clique)}: with about {rows} rows it "
            f"alone moves about {min(raw, 1.0):.0%} of them between the {cells} cells; it becomes "
            f"usable ({USABLE_TV:.0%}) at epsilon {usable}, or with fewer and coarser cells."
        )
    return Prediction(clique, cells, sigma, noise_tv(sigma, cells, rows), usable, warning)


def _short_epsilon(pico: int) -> str:
    """Round an epsilon up to two digits, as text a person can ask for."""
    text = Context(prec=2, rounding=ROUND_UP).create_decimal(max(pico, MIN_EPSILON_PICO)) / ONE
    return format(text.normalize(), "f")
