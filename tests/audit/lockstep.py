"""Two runs in lockstep: the second, on a neighbour, is handed the noisy answers of the first.

What each primitive was asked on either table is kept. So the privacy loss of every single answer
is known exactly, with no sampling error, and anything else that depends on the rows (another call,
another scale, another list of candidates) shows as two different runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from include.accounting import Event
from include.synthesis import Plan, SynthesisTask, noise, synthesizer
from tests.synthesis.tables import CountsTable, Journal


@dataclass
class Call:
    """One call of a sampler: what it was asked and what it answered."""

    kind: str
    amount: float  # sigma, scale or epsilon
    values: np.ndarray  # exact counts or scores
    sensitivity: int = 0
    answer: np.ndarray | int = 0

    @property
    def log_probabilities(self) -> np.ndarray:
        """Of each index of a selection, exactly."""
        logits = np.array([float(v) for v in self.values]) * self.amount / (2 * self.sensitivity)
        logits -= logits.max()
        found: np.ndarray = logits - math.log(np.exp(logits).sum())
        return found


@dataclass
class Recorder:
    """Stands in for the three samplers: the real ones first, then their recorded answers."""

    script: list[Call] | None = None
    calls: list[Call] = field(default_factory=list)

    def _keep(self, call: Call, draw: object) -> np.ndarray | int:
        if self.script is None:
            call.answer = draw()  # type: ignore[operator]
        else:
            call.answer = self.script[len(self.calls)].answer
        self.calls.append(call)
        return call.answer


def record(
    patch: pytest.MonkeyPatch,
    name: str,
    plan: Plan,
    codes: np.ndarray,
    script: list[Call] | None = None,
) -> tuple[list[Call], tuple[Event, ...]]:
    """Run a plan's measurement with the samplers recorded; return their calls and the events."""
    keeper = Recorder(script)
    gaussian, laplace = noise.discrete_gaussian, noise.discrete_laplace
    choose = noise.exponential_mechanism
    with patch.context() as inside:
        inside.setattr(
            noise,
            "discrete_gaussian",
            lambda counts, sigma: keeper._keep(
                Call("gaussian", sigma, counts.copy()), lambda: gaussian(counts, sigma)
            ),
        )
        inside.setattr(
            noise,
            "discrete_laplace",
            lambda counts, scale: keeper._keep(
                Call("laplace", scale, counts.copy()), lambda: laplace(counts, scale)
            ),
        )
        inside.setattr(
            noise,
            "exponential_mechanism",
            lambda scores, sensitivity, epsilon: keeper._keep(
                Call("selection", epsilon, scores.copy(), sensitivity),
                lambda: choose(scores, sensitivity, epsilon),
            ),
        )
        table = CountsTable(codes, plan.task.domain, max_rows=plan.task.max_rows)
        transcript = synthesizer(name).measure(table, plan, Journal())
    return keeper.calls, transcript.events


@dataclass
class Loss:
    """The worst privacy loss of one answer, and what its event says it may be."""

    kind: str
    worst: float
    allowed: float


def losses(
    patch: pytest.MonkeyPatch,
    name: str,
    task: SynthesisTask,
    pair: tuple[np.ndarray, np.ndarray],
    epsilon_pico: int,
) -> tuple[list[Loss], Plan]:
    """Run both tables in lockstep and state every answer's worst loss.

    For Gaussian noise, which has no worst loss, the L2 distance of the exact counts stands against
    the sensitivity.
    """
    plan = synthesizer(name).plan(task, epsilon_pico, 9)
    first, events = record(patch, name, plan, pair[0])
    second, same = record(patch, name, plan, pair[1], script=first)
    assert events == same
    asked = [(c.kind, c.amount, c.values.shape, c.sensitivity) for c in first]
    assert asked == [(c.kind, c.amount, c.values.shape, c.sensitivity) for c in second]
    found = []
    for one, other, event in zip(first, second, events, strict=True):
        if one.kind == "selection":
            worst = float(np.abs(one.log_probabilities - other.log_probabilities).max())
            found.append(Loss(one.kind, worst, float(event.epsilon_pure or 0)))
        elif one.kind == "laplace":
            distance = float(np.abs(one.values - other.values).sum())
            found.append(Loss(one.kind, distance / one.amount, float(event.epsilon_pure or 0)))
        else:
            distance = float(np.sqrt(((one.values - other.values) ** 2).sum()))
            found.append(Loss(one.kind, distance, float(task.max_rows)))
    return found, plan
