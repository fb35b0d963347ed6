"""Mirror descent with an adaptive step length, accelerated, and never uphill.

The mirror step moves the factors' log tables against the gradient of the loss in the marginals.
Plain steps converge slowly once rare cells matter, so most steps are accelerated. A step that does
not lower the loss is discarded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from include.synthesis.estimation.acceleration import Acceleration
from include.synthesis.estimation.measurement import FloatArray
from include.synthesis.estimation.objective import Objective
from include.synthesis.estimation.propagation import Propagation, Tables

WINDOW = 10
"""Iterations over which the loss must fall by more than the tolerance to go on."""
_LONGEST = 10.0
"""No log table moves further in one step: a combination of nearly parallel steps may point far
away and empty a cell beyond recovery. Cut short, it also tells that the remembered steps are stale
(a cell is dying, where the marginals stop answering in proportion): they are forgotten."""
_GROW, _SHRINK = 1.5, 0.5
_CUTS, _CUT = 2, 0.3
"""Far from the minimum a combination goes in a good direction, only too far."""


@dataclass(frozen=True, eq=False)
class Point:
    """One iterate.

    Args:
        theta: log tables of the factors, float64, shape (size,).
        marginals: of the factors, shape (size,).
        loss: half the chi-square.
        gradient: in the factors' marginals, shape (size,).

    Privacy: post-processing.
    """

    theta: FloatArray
    marginals: FloatArray
    loss: float
    gradient: FloatArray


class Descent:
    """The state of one fit.

    Args:
        plan: propagation over the tree.
        objective: the loss on the same factors.
        total: rows the marginals sum to.

    Source: McKenna, Sheldon and Miklau 2019, algorithm 1 (mirror descent).

    Privacy: post-processing.
    """

    def __init__(self, plan: Propagation, objective: Objective, total: float) -> None:
        self._plan, self._objective, self._total = plan, objective, total
        self.conditionals = Tables(plan)
        self._trial = Tables(plan)
        self._step = 2.0 / (objective.curvature * total)
        self._acceleration = Acceleration(objective.size)
        self.iterations = 0

    def run(self, theta: FloatArray, iterations: int, tolerance: float) -> Point:
        """Descend from some log tables.

        Args:
            theta: where to start, shape (size,).
            iterations: about so many evaluations at most (the last step may take two more).
            tolerance: stop when `WINDOW` steps lower the loss by no more than this.

        Returns:
            The last point, which is the best; `conditionals` hold its distribution.
        """
        point = self.begin(theta)
        losses = [point.loss]
        while self.iterations < iterations and self._objective.size:
            point = self.advance(point)
            losses.append(point.loss)
            if len(losses) > WINDOW and losses[-1 - WINDOW] - point.loss <= tolerance:
                break
        return point

    def finish(self) -> list[FloatArray]:
        """Compute the separators' marginals of the present distribution."""
        self._plan.distribute(self.conditionals, self._total)
        return [separator.copy() for separator in self._plan.separators]

    def begin(self, theta: FloatArray) -> Point:
        """Evaluate the point to start from."""
        self._plan.start(theta, self.conditionals)
        marginals = self._plan.distribute(self.conditionals, self._total)
        return Point(theta, marginals, *self._objective.evaluate(marginals))

    def advance(self, point: Point) -> Point:
        """Take an accelerated step, or else a plain one; return the old point if it only rises."""
        accelerated = self._acceleration.ready
        if accelerated:
            move = self._acceleration.move(point.gradient, self._step)
        else:
            move = -self._step * point.gradient
        furthest = float(np.abs(move).max())
        if furthest > _LONGEST:
            move *= _LONGEST / furthest
        found = self._search(point, move, _CUTS if accelerated else 0)
        if found is None or furthest > _LONGEST:
            self._acceleration.forget()
        if not accelerated:
            self._step *= _SHRINK if found is None else _GROW
        if found is None:
            return point
        self._acceleration.remember(
            found.theta - point.theta,
            found.marginals - point.marginals,
            found.gradient - point.gradient,
        )
        self.conditionals, self._trial = self._trial, self.conditionals
        return found

    def _search(self, point: Point, move: FloatArray, cuts: int) -> Point | None:
        """Shorten a step until the loss falls; None if it does not."""
        for _ in range(cuts + 1):
            self.iterations += 1
            found = self._evaluate(point, move)
            if found is not None and found.loss < point.loss:
                return found
            move = move * _CUT
        return None

    def _evaluate(self, point: Point, move: FloatArray) -> Point | None:
        if not self._plan.step(self.conditionals, move, self._trial):
            return None
        marginals = self._plan.distribute(self._trial, self._total)
        return Point(point.theta + move, marginals, *self._objective.evaluate(marginals))
