"""AIM with interest queries: adaptive rounds, then each interest query by itself.

The rounds' noise scales depend on earlier noisy answers, so the plan holds them as one adaptive
block: a zCDP filter of a fixed size, whose every event is journalled before it runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from include.accounting import (
    ONE,
    AdaptiveBlock,
    Cost,
    Event,
    ExponentialMechanism,
    Gaussian,
    compose,
)
from include.options import AIM, Option
from include.synthesis.mechanisms.base import Policy, Step, Synthesizer
from include.synthesis.mechanisms.common import (
    check_fits,
    downward_closure,
    interest_step,
    measure_step,
    noise_l1,
    plan_of,
)
from include.synthesis.plan import (
    Plan,
    granted_rho,
    selection_epsilon_within,
    sigma_within,
)
from include.synthesis.spending import OpenRound
from include.synthesis.task import Clique, SynthesisTask
from include.synthesis.transcript import NoisyMarginal, Round

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from include.synthesis.estimation import GraphicalModel

DEFAULT_INTEREST_SHARE = Fraction(1, 2)
"""With 3/10 the queries gained nothing on a wide table; 1/2 costs the workload under a tenth."""
ROUNDS_PER_COLUMN, MEASURE_PART = 16, Fraction(9, 10)
"""As published, for a release without interest queries."""
ROUNDS_PER_COLUMN_WITH_INTEREST, MEASURE_PART_WITH_INTEREST = 8, Fraction(8, 10)
"""The interest queries take budget from the rounds; fewer, better aimed ones then serve both."""


@dataclass(frozen=True)
class _Layout:
    """The part of a plan that does not depend on the grant."""

    task: SynthesisTask
    share: Fraction
    rounds: int
    measure_part: Fraction  # of the adaptive budget; the rest selects

    def parameters(self, rho_pico: int) -> dict[str, Any]:
        """Divide a budget: one-way marginals and rounds alike, interest apart."""
        rho = Fraction(rho_pico, ONE)
        queries, rows = len(self.task.interest), self.task.max_rows
        interest = self.share * rho if queries else Fraction(0)
        general = rho - interest
        sigma = sigma_within(self.measure_part * general, self.rounds, rows)
        one_way = Gaussian(sigma, rows).rho * len(self.task.domain)
        return {
            "rounds": self.rounds,
            "sigma_start": sigma,
            "epsilon_start": selection_epsilon_within(
                (1 - self.measure_part) * general, self.rounds
            ),
            "block_rho_pico": math.floor((general - one_way) * ONE),
            "sigma_interest": sigma_within(interest, queries, rows) if queries else None,
        }


def _events(parameters: dict[str, Any], task: SynthesisTask) -> tuple[Event, ...]:
    """List everything a plan does to the data, the rounds as one block."""
    rows = task.max_rows
    events: list[Event] = [Gaussian(parameters["sigma_start"], rows, "one-way")] * len(task.domain)
    if parameters["block_rho_pico"]:
        events.append(AdaptiveBlock(parameters["block_rho_pico"], "adaptive rounds"))
    if task.interest:
        events += [Gaussian(parameters["sigma_interest"], rows, "interest")] * len(task.interest)
    return tuple(events)


class Aim(Synthesizer):
    """AIM with the CuSyn interest extension, in the paper's order: general, then specific.

    Source: McKenna, Mullins, Sheldon and Miklau 2022 (AIM), Algorithms 1 and 4; CuSyn, section on
        extending select-measure-generate mechanisms.

    Privacy: see `Synthesizer`.
    """

    name: ClassVar[str] = "aim"
    option_specs: ClassVar[Mapping[str, Option]] = AIM

    def plan(self, task: SynthesisTask, epsilon_pico: int, delta_exponent: int) -> Plan:
        """Plan one-way marginals, an adaptive block and interest queries; see `Synthesizer`."""
        layout = self._layout(task)
        parameters = layout.parameters(granted_rho(epsilon_pico, delta_exponent))
        events = _events(parameters, task)
        return plan_of(self.name, task, epsilon_pico, delta_exponent, parameters, events)

    def cost_of(self, task: SynthesisTask, delta_exponent: int) -> Callable[[int], Cost]:
        """Return the cost of `plan` as a function of epsilon; see `Synthesizer.cost_of`."""
        layout = self._layout(task)

        def cost(epsilon_pico: int) -> Cost:
            return compose(
                _events(layout.parameters(granted_rho(epsilon_pico, delta_exponent)), task)
            )

        return cost

    def _layout(self, task: SynthesisTask) -> _Layout:
        options = self.options(task)
        check_fits(task, options["max_model_mb"])
        share = options["interest_share"]
        columns = len(task.domain)
        each = ROUNDS_PER_COLUMN_WITH_INTEREST if task.interest else ROUNDS_PER_COLUMN
        return _Layout(
            task=task,
            share=DEFAULT_INTEREST_SHARE if share is None else Fraction(str(share)),
            rounds=max(columns + 1, options["rounds"] or each * columns),
            measure_part=_measure_part(task),
        )

    def _policy(self, plan: Plan, earlier: Sequence[NoisyMarginal]) -> Policy:
        return _AimPolicy(plan, self.options(plan.task), earlier)


class _AimPolicy(Policy):
    """One-way marginals, rounds until the block is used up, then the interest queries."""

    def __init__(
        self, plan: Plan, options: dict[str, Any], earlier: Sequence[NoisyMarginal]
    ) -> None:
        from include.synthesis.fitting import Fitter

        self._task = plan.task
        self._parameters = dict(plan.parameters)
        self._max_mb: float = options["max_model_mb"]
        self._open_queries = list(plan.task.interest)
        self._open_columns = list(plan.task.domain)
        self._weights = downward_closure(plan.task)
        for query in plan.task.interest:  # a round on what is measured by itself would be wasted
            self._weights.pop(query, None)
        self._sigma: float = self._parameters["sigma_start"]
        self._epsilon: float = self._parameters["epsilon_start"]
        self._last: Clique | None = None  # selected, and not yet looked at for annealing
        self._fitter = Fitter(plan.task.domain, self._max_mb, options["estimator"])
        self._fitter.add_earlier(earlier, room_for=plan.task.interest)
        for query in plan.task.interest:  # rounds must leave room for what comes last
            self._fitter.sizer.add(query)
        self._block = Fraction(plan.parameters["block_rho_pico"], ONE)

    def absorb(self, turn: Round) -> None:
        """Take note of an answered round."""
        if turn.purpose == "selected":
            self._anneal()  # an earlier selection that no later `next` has looked at
            self._last = turn.marginals[0].clique
            self._before = self._fit().marginal(self._last)
            for event in turn.events:  # the journal is right about the scales that were used
                if isinstance(event, Gaussian):
                    self._sigma = float(event.sigma)
                elif isinstance(event, ExponentialMechanism):
                    self._epsilon = float(event.epsilon)
        self._fitter.add(turn.marginals)
        self._stale = True
        for item in turn.marginals:
            if item.label == "interest":
                self._open_queries.remove(item.clique)
            elif item.label == "one-way":
                self._open_columns.remove(item.clique[0])

    def next(self, left: Fraction) -> Step | None:
        """Name the next round; where interruptions burned budget the rounds give way."""
        rows = self._task.max_rows
        reserved = Fraction(0)
        if self._open_queries:
            planned = Gaussian(self._parameters["sigma_interest"], rows)
            reserved = planned.rho * len(self._open_queries)
        if self._open_columns:
            event = Gaussian(self._parameters["sigma_start"], rows, "one-way")
            if event.rho * len(self._open_columns) <= left - reserved:
                cliques = [(name,) for name in self._open_columns]
                return measure_step("one-way", cliques, (event,) * len(cliques))
        step = self._round(left - reserved)
        if step is None and self._open_queries:
            sigma = self._parameters["sigma_interest"]
            step = interest_step(self._open_queries, sigma, rows, left)
        return step

    def _round(self, left: Fraction) -> Step | None:
        """Name the next adaptive round within what the block still holds."""
        rows = self._task.max_rows
        self._anneal()
        start = _cost(self._parameters["sigma_start"], self._parameters["epsilon_start"], rows)
        if left < start / 2:
            return None
        if left < 2 * _cost(self._sigma, self._epsilon, rows):
            part = _measure_part(self._task)
            self._sigma = sigma_within(part * left, 1, rows)
            self._epsilon = selection_epsilon_within((1 - part) * left, 1)
        used = 1 - (left - _cost(self._sigma, self._epsilon, rows)) / max(self._block, left)
        candidates = self._candidates(float(used))
        if not candidates:
            return None
        events = (
            ExponentialMechanism(self._epsilon, "selection"),
            Gaussian(self._sigma, rows, "selected"),
        )
        return Step("selected", events, lambda turn: self._select_and_measure(turn, candidates))

    def _candidates(self, used: float) -> list[Clique]:
        """Keep the candidates that leave the model within the share of memory due by now."""
        limit = max(self._fitter.sizer.size_mb, self._max_mb * used)
        return self._fitter.admissible(list(self._weights), limit)

    def _select_and_measure(self, turn: OpenRound, candidates: list[Clique]) -> None:
        expected = self._fit().marginals(candidates)
        index = turn.select(
            candidates,
            [expected[clique] for clique in candidates],
            [noise_l1(self._sigma, self._task.cells(clique)) for clique in candidates],
            [self._weights[clique] for clique in candidates],
        )
        turn.measure(self._fitter.settle(candidates[index]), "selected")

    def _anneal(self) -> None:
        """Halve the noise when the last answer changed the model by no more than its noise."""
        if self._last is None:
            return
        clique, self._last = self._last, None
        after = self._fit().marginal(clique)
        if float(abs(after - self._before).sum()) <= noise_l1(
            self._sigma, self._task.cells(clique)
        ):
            self._sigma /= 2
            self._epsilon *= 2

    def _fit(self) -> GraphicalModel:
        from include.synthesis.fitting import ROUND

        if self._stale or self._fitter.model is None:
            self._fitter.fit(ROUND)
            self._stale = False
        assert self._fitter.model is not None
        return self._fitter.model

    _stale: bool = True
    _before: NDArray[np.float64]  # the last selected marginal as it was before its answer


def _measure_part(task: SynthesisTask) -> Fraction:
    return MEASURE_PART_WITH_INTEREST if task.interest else MEASURE_PART


def _cost(sigma: float, epsilon: float, max_rows: int) -> Fraction:
    return Gaussian(sigma, max_rows).rho + ExponentialMechanism(epsilon).rho
