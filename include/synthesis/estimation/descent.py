"""Mirror descent with an adaptive step and Anderson acceleration.

The mirror step moves the factors' log tables against the gradient of the loss in the marginals.
Plain steps converge slowly once the rare cells matter. As the loss is quadratic in the marginals,
its minimum over the affine span of the last few marginals is a small linear system; the same
combination of log tables is the accelerated step. A step that does not lower the loss is
discarded, so the loss never rises.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.synthesis.estimation.measurement import FloatArray
from include.synthesis.estimation.objective import Objective
from include.synthesis.estimation.propagation import Propagation, Views

MEMORY = 8
"""Marginals remembered by the acceleration."""
WINDOW = 10
"""Iterations over which the loss must fall by more than the tolerance to go on."""
_LONGEST = 50.0  # no log table moves further in one step: exp stays far from overflow


@dataclass(eq=False)
class Point:
    """One iterate.

    Args:
        theta: log tables of the factors, float64, shape (size,).
        loss: half the chi-square.
        gradient: in the factors' marginals, shape (size,).
        marginals: of the factors, shape (size,).

    Privacy: post-processing.
    """

    theta: FloatArray
    loss: float
    gradient: FloatArray
    marginals: FloatArray


class Descent:
    """The state of one fit.

    Args:
        plan: propagation over the tree.
        objective: the loss on the same tree.
        total: rows the marginals sum to.

    Source: McKenna, Sheldon and Miklau 2019, algorithm 1 (mirror descent); Anderson 1965 and
    Walker and Ni 2011 (acceleration of fixed-point iterations).

    Privacy: post-processing.
    """

    def __init__(self, plan: Propagation, objective: Objective, total: float) -> None:
        self._plan, self._objective, self._total = plan, objective, total
        self.conditionals = plan.views(plan.new_table())
        self._trial = plan.views(plan.new_table())
        self._marginals = plan.views(plan.new_table())
        self._step = 2.0 / (objective.lipschitz * total)
        self._past: list[Point] = []
        self.iterations = 0

    def run(self, theta: FloatArray, iterations: int, tolerance: float) -> Point:
        """Descend from some log tables.

        Args:
            theta: where to start, shape (size,).
            iterations: at most so many steps.
            tolerance: stop when `WINDOW` steps lower the loss by no more than this.

        Returns:
            The best point; `conditionals` hold its distribution.
        """
        point = self._start(theta)
        losses = [point.loss]
        while self.iterations < iterations and self._objective.size:
            self.iterations += 1
            point = self._advance(point)
            losses.append(point.loss)
            if len(losses) > WINDOW and losses[-1 - WINDOW] - point.loss <= tolerance:
                break
        return point

    def marginals(self) -> Views:
        """Compute the node marginals of the present distribution."""
        self._plan.distribute(self.conditionals, self._total, self._marginals)
        return self._marginals

    def _start(self, theta: FloatArray) -> Point:
        self._objective.add_to_tables(theta, self.conditionals)
        self._plan.collect_logs(self.conditionals)
        return Point(theta, *self._objective.evaluate(self.marginals()))

    def _advance(self, point: Point) -> Point:
        """Try an accelerated step, or else a plain one; return the better of old and new."""
        accelerated = len(self._past) > 1
        move = self._anderson(point) if accelerated else -self._step * point.gradient
        found = self._evaluate(point, np.clip(move, -_LONGEST, _LONGEST))
        if found is not None and found.loss <= point.loss:
            self._past = [*self._past[1 - MEMORY :], point]
            self.conditionals, self._trial = self._trial, self.conditionals
            if not accelerated:
                self._step *= 1.5
            return found
        self._past = []
        if not accelerated:
            self._step *= 0.5
        return point

    def _evaluate(self, point: Point, move: FloatArray) -> Point | None:
        self._objective.multiply(self.conditionals, move, self._trial)
        if not self._plan.collect(self._trial):
            return None
        self._plan.distribute(self._trial, self._total, self._marginals)
        return Point(point.theta + move, *self._objective.evaluate(self._marginals))

    def _anderson(self, point: Point) -> FloatArray:
        """Combine past points so that the loss over their span is least, then step from there."""
        thetas = np.array([point.theta - past.theta for past in self._past])
        gradients = np.array([point.gradient - past.gradient for past in self._past])
        marginals = np.array([point.marginals - past.marginals for past in self._past])
        gram = marginals @ gradients.T
        gram[np.diag_indices_from(gram)] += 1e-10 * np.trace(gram) + 1e-300
        weights = np.linalg.lstsq(gram, marginals @ point.gradient, rcond=None)[0]
        move: FloatArray = -(weights @ thetas)
        move -= self._step * (point.gradient - weights @ gradients)
        return move
