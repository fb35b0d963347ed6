"""The session: nothing is read without a journalled event, nothing is spent over the ceiling."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from include.accounting import ExponentialMechanism, Gaussian
from include.synthesis import SpendingError
from include.synthesis.spending import SpendingSession
from tests.synthesis.tables import CountsTable, Journal

DOMAIN = {"a": 2, "b": 3}


def open_session(ceiling: float = 10.0) -> tuple[SpendingSession, Journal]:
    journal = Journal()
    table = CountsTable(np.array([[0, 1], [1, 2], [1, 2]]), DOMAIN)
    return SpendingSession(table, journal, Fraction(ceiling)), journal


def test_the_journal_is_written_before_the_table_is_read() -> None:
    session, journal = open_session()
    reads: list[int] = []
    exact = session._exact

    def spy(cliques: list[tuple[str, ...]]) -> list[np.ndarray]:
        reads.append(len(journal.begun))
        return exact(cliques)

    session._exact = spy  # type: ignore[method-assign]
    with session.round("interest", [Gaussian(1.0)]) as turn:
        assert not reads
        turn.measure(("a", "b"), "interest")
    assert reads == [1]
    assert [payload["round"] for payload in journal.answers] == [1]


def test_a_round_over_the_ceiling_is_refused_before_the_journal() -> None:
    session, journal = open_session(0.4)
    with pytest.raises(SpendingError, match="more than"), session.round("x", [Gaussian(1.0)]):
        pass
    assert not journal.begun
    assert session.spent == 0


def test_the_ceiling_is_exact() -> None:
    session, _ = open_session(0.5)
    with session.round("x", [Gaussian(1.0)]) as turn:
        turn.measure(("a",), "x")
    assert session.left == 0


def test_a_primitive_needs_the_next_event() -> None:
    session, _ = open_session()
    with (
        pytest.raises(SpendingError, match="not journalled"),
        session.round("x", [ExponentialMechanism(1.0)]) as turn,
    ):
        turn.measure(("a",), "x")
    with (
        pytest.raises(SpendingError, match="not journalled"),
        session.round("x", [Gaussian(1.0)]) as turn,
    ):
        turn.measure(("a",), "x")
        turn.measure(("b",), "x")


def test_an_unused_event_is_an_error() -> None:
    session, journal = open_session()
    with pytest.raises(SpendingError, match="not used"), session.round("x", [Gaussian(1.0)]):
        pass
    assert not journal.answers


def test_noise_for_another_bound_on_rows_is_refused() -> None:
    session, _ = open_session()
    with (
        pytest.raises(SpendingError, match="sensitivity"),
        session.round("x", [Gaussian(1.0, 2)]) as turn,
    ):
        turn.measure(("a",), "x")


def test_the_row_count_is_measured_through_a_column() -> None:
    session, _ = open_session(10**6)
    with session.round("total", [Gaussian(0.01)]) as turn:
        total = turn.measure((), "total")
    assert total.counts == (3,)


def test_burned_rounds_are_named_by_the_next_answer() -> None:
    session, journal = open_session()
    session.burn([Gaussian(1.0)], 1)
    journal.begun[1] = (Gaussian(1.0),)
    with session.round("x", [Gaussian(2.0)]) as turn:
        turn.measure(("a",), "x")
    assert session.spent == Fraction(1, 2) + Fraction(1, 8)
    assert journal.answers[0]["burned"] == [Gaussian(1.0).to_dict()]
    assert turn.result is not None
    assert turn.result.number == 2
