"""What every mechanism shares: plan -> measure -> fit -> sample, of which only one sees data.

A mechanism states its plan and a policy that names the next round from the rounds answered so far.
Everything else (journal, ceiling, resume, fit, sampling) is done here once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from include.accounting import Cost, Event
from include.options import Option
from include.synthesis.bins import ColumnBins
from include.synthesis.options import read_options
from include.synthesis.plan import Plan, PlanError
from include.synthesis.protected import Cells, ProtectedCounts, RoundLog
from include.synthesis.spending import OpenRound, SpendingSession
from include.synthesis.task import SynthesisTask
from include.synthesis.transcript import (
    NoisyMarginal,
    Round,
    Transcript,
    TranscriptError,
    merge_marginals,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from include.synthesis.model import Model


@dataclass(frozen=True)
class Step:
    """The next round: what it will spend and how it runs.

    Args:
        purpose: total, one-way, interest or selected.
        events: Its events, in the order in which `run` uses them.
        run: Does the round, given the primitives.
        cells: Bins through which it sees the table, from earlier answers; none by default.

    Privacy: ledger only.
    """

    purpose: str
    events: tuple[Event, ...]
    run: Callable[[OpenRound], None]
    cells: Cells = field(default_factory=dict)


class Policy(ABC):
    """Names the next round from public parameters and the rounds answered so far.

    Privacy: post-processing.
    """

    @abstractmethod
    def absorb(self, turn: Round) -> None:
        """Take note of an answered round, now or from an earlier try."""

    def burn(self, events: Sequence[Event]) -> None:  # noqa: B027  (most policies look at `left`)
        """Take note of a round that was begun and never answered; its events are spent."""

    @abstractmethod
    def next(self, left: Fraction) -> Step | None:
        """Name the next round.

        Args:
            left: Exact rho that may still be spent, burned rounds deducted.

        Returns:
            The step, or None when the measurement is finished.
        """


class Synthesizer(ABC):
    """A mechanism. Construct it without arguments; it keeps no state.

    Privacy: only `measure` reads raw data; everything else is ledger only or post-processing.
    """

    name: ClassVar[str]
    option_specs: ClassVar[Mapping[str, Option]]

    @abstractmethod
    def plan(self, task: SynthesisTask, epsilon_pico: int, delta_exponent: int) -> Plan:
        """Plan a measurement within a grant, as a pure function of public parameters.

        Args:
            task: What is asked for.
            epsilon_pico: Granted epsilon in units of 1e-12.
            delta_exponent: N of the budget pool's delta = 1e-N.

        Returns:
            A plan whose composed rho is at most that of (epsilon, delta).

        Raises:
            TaskError: An option or a query is wrong.
            PlanError: No plan exists within the grant or the memory bound; the sentence has the
                number.

        Privacy: ledger only.
        """

    @abstractmethod
    def cost_of(self, task: SynthesisTask, delta_exponent: int) -> Callable[[int], Cost]:
        """Return the cost of `plan` as a fast function of the granted epsilon.

        Args:
            task: What is asked for.
            delta_exponent: N of the budget pool's delta = 1e-N.

        Returns:
            Function from epsilon in units of 1e-12 to the composed cost of its plan.

        Raises:
            TaskError: An option or a query is wrong.
            PlanError: The task fits no grant.

        Privacy: ledger only.
        """

    @abstractmethod
    def _policy(self, plan: Plan, earlier: Sequence[NoisyMarginal]) -> Policy:
        """Start the policy of a plan."""

    def options(self, task: SynthesisTask) -> dict[str, Any]:
        """Check a task's options against this mechanism's.

        Raises:
            TaskError: An option is unknown, of the wrong type or out of range.

        Privacy: ledger only.
        """
        return read_options(task.options, self.name)

    def measure(
        self,
        data: ProtectedCounts,
        plan: Plan,
        log: RoundLog,
        *,
        resume_from: Sequence[Mapping[str, Any]] | None = None,
        interrupted: Sequence[Sequence[Event]] | None = None,
        earlier: Sequence[Transcript] = (),
    ) -> Transcript:
        """Run a plan against a protected table: the only step that sees data.

        Args:
            data: The protected table; its domain and bound on rows must be the plan's.
            plan: The plan the charge was opened for.
            log: The charge's journal.
            resume_from: Payloads of the answered rounds of an earlier try, in order; None for a
                first try.
            interrupted: Events of each round journalled after the last answered one; None when
                unknown, and then the next round counts as begun. Their budget is burned.
            earlier: Transcripts of the same snapshot whose answers selection may use.

        Returns:
            The transcript of all answered rounds.

        Raises:
            PlanError: The plan is another mechanism's or another table's.
            TranscriptError: A payload cannot be read.
            SpendingError: The journal and the plan do not fit together, or counting failed.

        Privacy: reads raw data (spends at most `plan.cost`).
        """
        self._check_fits(data, plan)
        ceiling = sum((event.rho for event in plan.events), Fraction(0))
        session = SpendingSession(data, log, ceiling, _pure_ceiling(plan))
        policy = self._policy(plan, merge_marginals(earlier))
        rounds: list[Round] = []
        if resume_from is not None:
            rounds = [Round.from_payload(payload) for payload in resume_from]
            _replay(session, policy, rounds, interrupted)
        while (step := policy.next(session.left)) is not None:
            with session.round(step.purpose, step.events, step.cells) as turn:
                step.run(turn)
            assert turn.result is not None
            rounds.append(turn.result)
            policy.absorb(turn.result)
        return Transcript(
            mechanism=self.name,
            plan_digest=plan.digest,
            rounds=tuple(rounds),
            burned=tuple(session.burned),
            earlier=tuple(item.digest for item in earlier),
        )

    def fit(
        self, transcript: Transcript, plan: Plan, *, earlier: Sequence[Transcript] = ()
    ) -> Model:
        """Fit the model to a transcript alone.

        Args:
            transcript: A finished measurement of `plan`.
            plan: Its plan.
            earlier: The earlier transcripts it was measured with, the same and in the same order.

        Returns:
            The fitted model, equal for equal arguments.

        Raises:
            TranscriptError: The transcript is of another plan, or `earlier` are others.

        Privacy: post-processing.
        """
        if transcript.plan_digest != plan.digest:
            raise TranscriptError("The transcript was measured under another plan; fit it there.")
        if transcript.earlier != tuple(item.digest for item in earlier):
            raise TranscriptError("The transcript was measured with other earlier transcripts.")
        return self._fitted(transcript, plan, earlier)

    def bins(self, transcript: Transcript, plan: Plan) -> tuple[ColumnBins, ...]:
        """Tell the bins whose edges a transcript selected privately; none for most mechanisms.

        Privacy: post-processing.
        """
        return ()

    def _fitted(self, transcript: Transcript, plan: Plan, earlier: Sequence[Transcript]) -> Model:
        return self._graphical(plan.task, transcript, earlier)

    def _graphical(
        self, task: SynthesisTask, transcript: Transcript, earlier: Sequence[Transcript]
    ) -> Model:
        """Fit a graphical model over the domain of a task."""
        from include.synthesis.fitting import Fitter

        options = self.options(task)
        fitter = Fitter(task.domain, options["max_model_mb"], options["estimator"])
        fitter.add_earlier(merge_marginals(earlier), room_for=task.interest)
        fitter.add(transcript.marginals)
        return fitter.fit_for_release()

    def sample(self, model: Model, rows: int, seed: bytes) -> NDArray[np.unsignedinteger]:
        """Sample synthetic rows from a model.

        Args:
            model: A fitted model.
            rows: How many, >= 0: the noisy row count or a public constant.
            seed: Public bytes, such as the transcript's digest: sampling is post-processing and
                repeatable; the noise never is.

        Returns:
            Codes, unsigned integers, shape (rows, columns), columns in the domain's order.

        Privacy: post-processing.
        """
        import hashlib

        import numpy as np

        digest = hashlib.sha256(b"cusyn-sample-1:" + seed).digest()
        generator = np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))
        return model.sample(rows, generator)

    def _check_fits(self, data: ProtectedCounts, plan: Plan) -> None:
        if plan.mechanism != self.name:
            raise PlanError(f"The plan is for {plan.mechanism}, not for {self.name}.")
        if list(data.domain.items()) != list(plan.task.domain.items()):
            raise PlanError("The table's columns are not those of the plan; plan again.")
        if data.max_rows != plan.task.max_rows:
            raise PlanError(
                f"The table admits {data.max_rows} rows a privacy unit and the plan "
                f"{plan.task.max_rows}; plan again."
            )


def _replay(
    session: SpendingSession,
    policy: Policy,
    rounds: Sequence[Round],
    interrupted: Sequence[Sequence[Event]] | None,
) -> None:
    """Bring session and policy to where an earlier try was interrupted."""
    for turn in rounds:
        session.replay(turn)
        policy.absorb(turn)
    if interrupted is None:
        step = policy.next(session.left)
        interrupted = [] if step is None else [step.events]
    for events in interrupted:
        session.burn(events, session.last_round + 1)
        policy.burn(events)


def _pure_ceiling(plan: Plan) -> Fraction | None:
    """Add up the pure epsilon of a plan; None once any event is not pure."""
    parts = [event.epsilon_pure for event in plan.events]
    return None if None in parts else sum((part or Fraction(0) for part in parts), Fraction(0))
