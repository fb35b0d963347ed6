"""The spending session: the only code that reads protected counts, one journalled round at a time.

A round's events are written to the charge's journal before the data are read, and each primitive
takes the next event of the open round as its permission: what was not journalled cannot be done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

from include.accounting import DiscreteLaplace, Event, ExponentialMechanism, Gaussian
from include.errors import CuSynError
from include.synthesis import noise, selection
from include.synthesis.protected import Cells, ProtectedCounts, RoundLog
from include.synthesis.task import Clique
from include.synthesis.transcript import NoisyMarginal, Round

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EventT = TypeVar("EventT", Gaussian, ExponentialMechanism, DiscreteLaplace)


class SpendingError(CuSynError):
    """A primitive was asked for something that is not journalled, affordable or possible.

    Privacy: ledger only.
    """


class SpendingSession:
    """Runs rounds against a protected table under a ceiling.

    Args:
        data: The protected table.
        log: The charge's journal.
        ceiling: Exact rho that all rounds together, interrupted ones included, may spend.
        pure_ceiling: Exact pure epsilon they may spend; None where the plan claims none.

    Privacy: reads raw data, in the primitives of an open round.
    """

    def __init__(
        self,
        data: ProtectedCounts,
        log: RoundLog,
        ceiling: Fraction,
        pure_ceiling: Fraction | None = None,
    ) -> None:
        self._whole = self._data = data
        self._cells: Cells = {}
        self._log = log
        self._ceiling = ceiling
        self._pure_left = pure_ceiling
        self._counts: dict[Clique, NDArray[np.int64]] = {}
        self._dependences: dict[selection.Node, int] = {}
        self.spent = Fraction(0)
        self.last_round = 0
        self.burned: list[Event] = []

    @property
    def left(self) -> Fraction:
        """Exact rho that is still to be spent."""
        return self._ceiling - self.spent

    def replay(self, turn: Round) -> None:
        """Account for a round that an earlier try has answered."""
        self._spend(turn.burned)
        self._spend(turn.events)
        self.last_round = turn.number

    def burn(self, events: Sequence[Event], number: int) -> None:
        """Account for a round that was begun and never answered: it is spent."""
        self._spend(events)
        self.burned.extend(events)
        self.last_round = number

    @contextmanager
    def round(
        self, purpose: str, events: Sequence[Event], cells: Cells | None = None
    ) -> Iterator[OpenRound]:
        """Journal the events, let the primitives run, then journal their noisy answer.

        Args:
            purpose: total, one-way, interest or selected.
            events: What the round will spend, in the order of the primitives' calls.
            cells: Bins through which the round sees the table, a function of earlier answers.

        Yields:
            The open round; its `result` is set once it is closed.

        Raises:
            SpendingError: The ceiling would be passed, or an event was left unused.
        """
        self._spend(events)
        self.last_round += 1
        self._log.begin(self.last_round, tuple(events))
        turn = OpenRound(self, list(events))
        try:
            self._look_through(cells or {})
            yield turn
        except CuSynError:
            raise
        except Exception as fault:  # its text may quote counts
            raise SpendingError(
                f"A round failed ({type(fault).__name__}); its budget is spent and the charge can "
                "be resumed."
            ) from None
        if turn.pending:
            raise SpendingError(f"{len(turn.pending)} journalled events of a round were not used.")
        turn.result = Round(
            number=self.last_round,
            purpose=purpose,
            events=tuple(events),
            marginals=tuple(turn.marginals),
            burned=tuple(self.burned),
            choices=tuple(turn.choices),
            edges=tuple(turn.edges),
        )
        self._log.answer(self.last_round, turn.result.to_payload())
        self.burned = []

    def _spend(self, events: Sequence[Event]) -> None:
        cost = sum((event.rho for event in events), Fraction(0))
        if cost > self.left:
            raise SpendingError("The round would spend more than its charge holds.")
        if self._pure_left is not None:
            for event in events:
                pure = event.epsilon_pure
                if pure is None or pure > self._pure_left:
                    raise SpendingError("The round would spend more pure epsilon than planned.")
                self._pure_left -= pure
        self.spent += cost

    def _look_through(self, cells: Cells) -> None:
        """Gather the table's cells in bins: a recoding of each row by itself, inside a round."""
        if cells == self._cells:
            return
        with self._whole.spending():
            self._data = self._whole.gathered(cells) if cells else self._whole
        self._cells = dict(cells)
        self._counts, self._dependences = {}, {}

    def _exact(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """Count marginals, each once. Only `OpenRound` calls this, with an event in hand."""
        fresh = [clique for clique in dict.fromkeys(cliques) if clique not in self._counts]
        # Rows are counted through a column's marginal: a table need not answer ().
        asked = [clique or tuple(self._data.domain)[:1] for clique in fresh]
        try:
            with self._data.spending():
                found = self._data.counts_many(asked) if asked else []
        except Exception as fault:  # its text may quote rows
            raise SpendingError(
                f"Counting {len(asked)} marginals failed ({type(fault).__name__}); the budget of "
                "the round is spent and the charge can be resumed."
            ) from None
        for clique, counts in zip(fresh, found, strict=True):
            self._counts[clique] = counts if clique else counts.sum(keepdims=True)
        return [self._counts[clique] for clique in cliques]

    def _dependence(self, nodes: Sequence[selection.Node]) -> list[int]:
        """Score network nodes, each once and without keeping their tables."""
        fresh = [node for node in dict.fromkeys(nodes) if node not in self._dependences]
        domain = self._data.domain
        try:
            for batch in selection.batches(fresh, domain):
                with self._data.spending():
                    tables = self._data.counts_many(list(batch))
                for (clique, members), counts in zip(batch.items(), tables, strict=True):
                    for node in members:
                        score = selection.dependence_score(counts, clique, node, domain)
                        self._dependences[node] = score
        except Exception as fault:  # its text may quote rows
            raise SpendingError(
                f"Scoring {len(fresh)} candidates failed ({type(fault).__name__}); the budget of "
                "the round is spent and the charge can be resumed."
            ) from None
        return [self._dependences[node] for node in nodes]


class OpenRound:
    """The primitives of one journalled round. Each uses up the round's next event.

    Privacy: reads raw data.
    """

    def __init__(self, session: SpendingSession, events: list[Event]) -> None:
        self._session = session
        self.pending = events
        self.marginals: list[NoisyMarginal] = []
        self.choices: list[Clique] = []
        self.edges: list[tuple[str, int]] = []
        self.result: Round | None = None

    def measure(self, clique: Clique, label: str) -> NoisyMarginal:
        """Measure a marginal with the discrete Gaussian of the next event.

        Args:
            clique: Columns; the empty clique measures the row count.
            label: Purpose of the measurement.

        Returns:
            The noisy marginal, also kept for the round's answer.

        Raises:
            SpendingError: The next event is not Gaussian, or not for this table's units.

        Privacy: reads raw data (spends the event).
        """
        event = self._take(Gaussian)
        if event.sensitivity != self._session._data.max_rows:
            raise SpendingError("The event's sensitivity is not the table's bound on rows a unit.")
        counts = noise.discrete_gaussian(self._session._exact([clique])[0], event.sigma)
        result = NoisyMarginal(clique, event.sigma, tuple(counts.tolist()), label)
        self.marginals.append(result)
        return result

    def measure_laplace(self, clique: Clique, label: str) -> NoisyMarginal:
        """Measure a marginal, empty cells included, with the discrete Laplace of the next event.

        Args:
            clique: Columns; the empty clique measures the row count.
            label: Purpose of the measurement.

        Returns:
            The noisy marginal, also kept for the round's answer; its sigma is the deviation.

        Raises:
            SpendingError: The next event is no discrete Laplace.

        Privacy: reads raw data (spends the event).
        """
        event = self._take(DiscreteLaplace)
        scale = noise.laplace_scale(event.epsilon, self._session._data.max_rows)
        counts = noise.discrete_laplace(self._session._exact([clique])[0], scale)
        deviation = noise.laplace_deviation(scale)
        result = NoisyMarginal(clique, deviation, tuple(counts.tolist()), label, "laplace")
        self.marginals.append(result)
        return result

    def select_node(self, candidates: Sequence[selection.Node]) -> int:
        """Select a dependent (child, parents) pair, by the exponential mechanism of the next event.

        Args:
            candidates: Children with their parent sets, at least one.

        Returns:
            Index of the selected pair; the pair is also kept for the round's answer.

        Raises:
            SpendingError: The next event is no selection.

        Source: McSherry and Talwar 2007; scores as in `selection.dependence_score`.

        Privacy: reads raw data (spends the event).
        """
        import numpy as np

        event = self._take(ExponentialMechanism)
        data = self._session._data
        scores = np.asarray(self._session._dependence(candidates), dtype=np.int64)
        sensitivity = selection.dependence_sensitivity(candidates, data.domain, data.max_rows)
        index = noise.exponential_mechanism(scores, sensitivity, event.epsilon)
        child, parents = candidates[index]
        self.choices.append((child, *parents))
        return index

    def select_root(self, columns: Sequence[str]) -> int:
        """Select the column that the others depend on most, on average, as `select_node` does.

        Args:
            columns: The columns, at least two.

        Returns:
            Index of the selected column; the column is also kept for the round's answer.

        Raises:
            SpendingError: The next event is no selection.

        Privacy: reads raw data (spends the event).
        """
        import numpy as np

        event = self._take(ExponentialMechanism)
        data = self._session._data
        pairs = [(one, (other,)) for one in columns for other in columns if one != other]
        table = np.asarray(self._session._dependence(pairs), dtype=np.int64)
        scores = table.reshape(len(columns), len(columns) - 1).sum(axis=1)
        each = selection.dependence_sensitivity(pairs, data.domain, data.max_rows)
        index = noise.exponential_mechanism(scores, each * (len(columns) - 1), event.epsilon)
        self.choices.append((columns[index],))
        return index

    def select_edge(self, column: str, grid: int, part: int, parts: int) -> int:
        """Select the edge of a declared grid that is nearest to a quantile.

        Args:
            column: The column; its first `grid` cells are in order.
            grid: Cells in their order, at least 2.
            part: Which quantile, from 1 to parts - 1.
            parts: Of how many.

        Returns:
            The declared cell above the edge, 1 to grid - 1; also kept for the round's answer.

        Raises:
            SpendingError: The next event is no selection.

        Source: Smith 2011; scores as in `selection.quantile_scores`.

        Privacy: reads raw data (spends the event).
        """
        event = self._take(ExponentialMechanism)
        counts = self._session._exact([(column,)])[0]
        scores = selection.quantile_scores(counts, grid, part, parts)
        sensitivity = selection.quantile_sensitivity(part, parts, self._session._data.max_rows)
        edge = 1 + noise.exponential_mechanism(scores, sensitivity, event.epsilon)
        self.edges.append((column, edge))
        return edge

    def select(
        self,
        candidates: Sequence[Clique],
        expected: Sequence[NDArray[np.float64]],
        penalties: Sequence[float],
        weights: Sequence[float],
    ) -> int:
        """Select the worst-modelled candidate with the exponential mechanism of the next event.

        Args:
            candidates: Candidate marginals, at least one.
            expected: The model's counts for each, shape (cells,).
            penalties: Expected L1 error of each after measuring, in rows.
            weights: Weight of each, above 0.

        Returns:
            Index of the selected candidate.

        Raises:
            SpendingError: The next event is no selection.

        Source: McSherry and Talwar 2007; scores as in `selection.l1_score`.

        Privacy: reads raw data (spends the event).
        """
        import numpy as np

        event = self._take(ExponentialMechanism)
        integers = selection.integer_weights(weights)
        scores = [
            selection.l1_score(counts, model, penalty, weight)
            for counts, model, penalty, weight in zip(
                self._session._exact(candidates), expected, penalties, integers, strict=True
            )
        ]
        sensitivity = selection.score_sensitivity(integers, self._session._data.max_rows)
        return noise.exponential_mechanism(
            np.asarray(scores, dtype=np.int64), sensitivity, event.epsilon
        )

    def _take(self, kind: type[EventT]) -> EventT:
        if not self.pending or not isinstance(self.pending[0], kind):
            raise SpendingError(f"A {kind.__name__} was asked for that is not journalled.")
        event = self.pending.pop(0)
        assert isinstance(event, kind)
        return event
