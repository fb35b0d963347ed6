"""MWEM-PGM with interest queries: interest first, then rounds that repair the worst marginal.

Departures from the paper's Algorithm 3, each measured or proven: the budget is split between
selection and measurement before anything runs (as printed it overspends), the interest queries are
measured first (the workload error falls by a third), and the row count is estimated, not known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from include.accounting import ONE, Cost, Event, ExponentialMechanism, Gaussian, compose
from include.options import MWEM_PGM, Option
from include.synthesis.mechanisms.base import Policy, Step, Synthesizer
from include.synthesis.mechanisms.common import (
    check_fits,
    interest_step,
    measure_step,
    noise_l1,
    plan_of,
    workload_candidates,
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

MEASURE_PART = Fraction(9, 10)
"""Part of the budget for measuring; the rest selects."""
TOTAL_PART = Fraction(1, 100)
"""Part paid for a noisy row count, where the interest queries do not give one."""


def reduced_rounds(rounds: int, queries: int) -> int:
    """Reduce the number of general rounds for a long interest sequence.

    Up to half as many queries as rounds cost nothing; beyond, every two further queries take the
    place of one round, down to a quarter of the rounds.

    Args:
        rounds: Rounds asked for, T.
        queries: Interest queries, L.

    Returns:
        Rounds to run.

    Privacy: ledger only.
    """
    return max(math.ceil(rounds / 4), rounds - max(0, queries - rounds // 2) // 2)


@dataclass(frozen=True)
class _Layout:
    """The part of a plan that does not depend on the grant."""

    task: SynthesisTask
    options: dict[str, Any]
    rounds: int
    selects: bool  # False where every candidate gets a round: nothing is selected then
    share: Fraction | None  # None: one noise scale for all measurements

    def parameters(self, rho_pico: int) -> dict[str, Any]:
        """Divide a budget. The division is exact; only scales are rounded, toward less cost."""
        rho = Fraction(rho_pico, ONE)
        queries, rows = len(self.task.interest), self.task.max_rows
        total = TOTAL_PART * rho if self.selects and self._needs_total(rho) else Fraction(0)
        rest = rho - total
        measuring = MEASURE_PART * rest if self.selects else rest
        share = self.share
        if share is None or self.rounds == 0 or queries == 0:
            share = Fraction(queries, queries + self.rounds)
        return {
            "rounds": self.rounds,
            "selects": self.selects,
            "sigma_total": sigma_within(total, 1, rows) if total else None,
            "sigma_interest": sigma_within(share * measuring, queries, rows) if queries else None,
            "sigma_general": (
                sigma_within((1 - share) * measuring, self.rounds, rows) if self.rounds else None
            ),
            "epsilon_select": (
                selection_epsilon_within(rest - measuring, self.rounds) if self.selects else None
            ),
        }

    def _needs_total(self, rho: Fraction) -> bool:
        """Tell whether a bought count is over twice as exact as what the queries' sums give."""
        precision = sum(1 / self.task.cells(query) for query in self.task.interest)
        share = self.share or Fraction(
            len(self.task.interest), len(self.task.interest) + self.rounds
        )
        if not precision:
            return True
        per_query = float(2 * share * MEASURE_PART * rho) / len(self.task.interest)
        return per_query * precision < float(2 * TOTAL_PART * rho) / 4


def _events(parameters: dict[str, Any], queries: int, rows: int) -> tuple[Event, ...]:
    """List everything a plan does to the data."""
    events: list[Event] = []
    if parameters["sigma_total"] is not None:
        events.append(Gaussian(parameters["sigma_total"], rows, "total"))
    if queries:
        events += [Gaussian(parameters["sigma_interest"], rows, "interest")] * queries
    events += list(_round_events(parameters, rows)) * parameters["rounds"]
    return tuple(events)


def _round_events(parameters: dict[str, Any], rows: int) -> tuple[Event, ...]:
    if parameters["sigma_general"] is None:
        return ()
    measuring = Gaussian(parameters["sigma_general"], rows, "selected")
    if parameters["epsilon_select"] is None:
        return (measuring,)
    return (ExponentialMechanism(parameters["epsilon_select"], "selection"), measuring)


class MwemPgm(Synthesizer):
    """MWEM-PGM with the CuSyn interest extension.

    Source: Liu, Vietri and Wu 2021 (MWEM-PGM after Hardt, Ligett and McSherry 2012); CuSyn,
        Algorithm 3, with corrected accounting.

    Privacy: see `Synthesizer`.
    """

    name: ClassVar[str] = "mwem_pgm"
    option_specs: ClassVar[Mapping[str, Option]] = MWEM_PGM

    def plan(self, task: SynthesisTask, epsilon_pico: int, delta_exponent: int) -> Plan:
        """Plan total, interest queries and rounds; see `Synthesizer.plan`."""
        layout = self._layout(task)
        parameters = layout.parameters(granted_rho(epsilon_pico, delta_exponent))
        events = _events(parameters, len(task.interest), task.max_rows)
        return plan_of(self.name, task, epsilon_pico, delta_exponent, parameters, events)

    def cost_of(self, task: SynthesisTask, delta_exponent: int) -> Callable[[int], Cost]:
        """Return the cost of `plan` as a function of epsilon; see `Synthesizer.cost_of`."""
        layout = self._layout(task)

        def cost(epsilon_pico: int) -> Cost:
            parameters = layout.parameters(granted_rho(epsilon_pico, delta_exponent))
            return compose(_events(parameters, len(task.interest), task.max_rows))

        return cost

    def _layout(self, task: SynthesisTask) -> _Layout:
        options = self.options(task)
        check_fits(task, options["max_model_mb"])
        candidates = workload_candidates(task, options["max_model_mb"])
        asked = len(task.domain) if options["rounds"] is None else options["rounds"]
        if not task.interest:
            asked = max(asked, 1)
        rounds = min(reduced_rounds(asked, len(task.interest)), len(candidates))
        share = options["interest_share"]
        return _Layout(
            task=task,
            options=options,
            rounds=rounds,
            selects=0 < rounds < len(candidates),
            share=None if share is None else Fraction(str(share)),
        )

    def _policy(self, plan: Plan, earlier: Sequence[NoisyMarginal]) -> Policy:
        return _MwemPolicy(plan, self.options(plan.task), earlier)


class _MwemPolicy(Policy):
    """Row count, interest queries, then rounds while the budget lasts."""

    def __init__(
        self, plan: Plan, options: dict[str, Any], earlier: Sequence[NoisyMarginal]
    ) -> None:
        from include.synthesis.fitting import Fitter

        self._task = plan.task
        self._parameters = dict(plan.parameters)
        self._max_mb: float = options["max_model_mb"]
        self._open_queries = list(plan.task.interest)
        self._candidates = workload_candidates(plan.task, self._max_mb)
        self._needs_total = self._parameters["sigma_total"] is not None
        self._rounds_done = 0
        self._fitter = Fitter(plan.task.domain, self._max_mb, options["estimator"])
        self._fitter.add_earlier(earlier, room_for=plan.task.interest)

    def absorb(self, turn: Round) -> None:
        """Take note of an answered round."""
        self._fitter.add(turn.marginals)
        cliques = [item.clique for item in turn.marginals]
        self._open_queries = [query for query in self._open_queries if query not in cliques]
        self._candidates = [clique for clique in self._candidates if clique not in cliques]
        self._needs_total = self._needs_total and turn.purpose != "total"
        self._rounds_done += turn.purpose == "selected"

    def next(self, left: Fraction) -> Step | None:
        """Name the next round; where interruptions burned budget the last rounds give way."""
        rows = self._task.max_rows
        if self._needs_total:
            event = Gaussian(self._parameters["sigma_total"], rows, "total")
            if event.rho <= left:
                return measure_step("total", [()], (event,))
        if self._open_queries:
            step = interest_step(self._open_queries, self._parameters["sigma_interest"], rows, left)
            if step is not None:
                return step
        events = _round_events(self._parameters, rows)
        cost = sum((event.rho for event in events), Fraction(0))
        if not events or self._rounds_done >= self._parameters["rounds"] or cost > left:
            return None
        fitting = self._fitter.admissible(self._candidates, self._max_mb)
        if not fitting:
            return None
        if not self._parameters["selects"]:
            return measure_step("selected", [self._fitter.settle(fitting[0])], events)
        return Step("selected", events, lambda turn: self._select_and_measure(turn, fitting))

    def _select_and_measure(self, turn: OpenRound, candidates: list[Clique]) -> None:
        from include.synthesis.fitting import ROUND

        model = self._fitter.fit(ROUND)
        expected = model.marginals(candidates)
        sigma = self._parameters["sigma_general"]
        weights = dict(self._task.workload)
        index = turn.select(
            candidates,
            [expected[clique] for clique in candidates],
            [noise_l1(sigma, self._task.cells(clique)) for clique in candidates],
            [weights[clique] for clique in candidates],
        )
        turn.measure(self._fitter.settle(candidates[index]), "selected")
