"""What a model takes from earlier releases: the strongest dependences, in little memory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from include.accounting import ONE
from include.synthesis import NoisyMarginal, Transcript, synthesizer
from include.synthesis.fitting import EARLIER_MB, Fitter
from tests.synthesis.check_synthesizer import make_table, make_task
from tests.synthesis.tables import Journal

WIDE = {"a": 130, "b": 130, "c": 130, "d": 130, "e": 2}
"""A pair of the wide columns takes 0.13 MB; three that close a triangle take 17 MB."""


def marginal(clique: tuple[str, ...], counts: np.ndarray) -> NoisyMarginal:
    return NoisyMarginal(clique, 2.0, tuple(counts.ravel().tolist()), "selected")


def independent(first: str, second: str) -> NoisyMarginal:
    return marginal((first, second), np.full((WIDE[first], WIDE[second]), 5))


def equal(first: str, second: str) -> NoisyMarginal:
    return marginal((first, second), np.diag(np.full(WIDE[first], 1000)))


def taken(fitter: Fitter) -> list[tuple[str, ...]]:
    return [item.clique for item in fitter._measurements]


def test_the_strongest_dependence_comes_before_what_was_measured_first() -> None:
    weak = [independent("a", "b"), independent("b", "c")]
    fitter = Fitter(WIDE, 80, "numpy")
    fitter.add_earlier([*weak, equal("a", "c")])
    assert taken(fitter) == [("a", "c"), ("a", "b")], "b-c would close the triangle"


def test_columns_and_the_row_count_always_have_room() -> None:
    single = marginal(("e",), np.array([30, 12]))
    total = marginal((), np.array([42]))
    fitter = Fitter(WIDE, 0.4, "numpy")
    fitter.add_earlier([equal("a", "b"), single, total])
    assert taken(fitter) == [("e",), ("a", "b")]
    assert fitter._rows() > 42, "the row count was measured too, and counts in the mean"


def test_earlier_answers_make_the_model_larger_by_little() -> None:
    pairs = list(itertools.combinations("abcd", 2))
    fitter = Fitter(WIDE, 4096, "numpy")
    before = fitter.sizer.size_mb
    fitter.add_earlier(equal(*pair) for pair in pairs)
    assert len(taken(fitter)) == 3, "a tree of pairs"
    assert before < fitter.sizer.size_mb <= before + EARLIER_MB


def test_room_is_left_for_the_interest_queries() -> None:
    fitter = Fitter(WIDE, 0.4, "numpy")
    fitter.add_earlier([equal("a", "b"), equal("a", "c")], room_for=[("b", "c"), ("c", "d")])
    assert taken(fitter) == [("a", "b")], "with a-c the model with both queries passes 0.4 MB"
    assert fitter.sizer.size_with_mb(("b", "c")) <= 0.4


@pytest.mark.parametrize("name", ["mwem_pgm", "aim"])
def test_the_release_knows_what_selection_took_as_known(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a dependence that was not measured again, being known, is missing at the end."""
    mechanism = synthesizer(name)
    plan = mechanism.plan(make_task(), ONE, 9)
    first = mechanism.measure(make_table(), plan, Journal())
    calls: list[tuple[str, object]] = []
    add_earlier, add = Fitter.add_earlier, Fitter.add

    def seen_earlier(self: Fitter, marginals: object, room_for: object = ()) -> None:
        add_earlier(self, marginals, room_for)  # type: ignore[arg-type]
        calls.append((f"earlier {room_for}", taken(self)))

    def seen(self: Fitter, marginals: object) -> None:
        add(self, marginals)  # type: ignore[arg-type]
        calls.append(("own", None))

    monkeypatch.setattr(Fitter, "add_earlier", seen_earlier)
    monkeypatch.setattr(Fitter, "add", seen)
    second: Transcript = mechanism.measure(make_table(), plan, Journal(), earlier=[first])
    measured, calls = [call for call in calls if call[0] != "own"], []
    mechanism.fit(second, plan, earlier=[first])
    released = [call for call in calls if call[0] != "own"]
    assert measured == released
    assert measured[0][1], "it did draw on the first"
    assert calls[-1][0] == "own", "its own answers come after the earlier ones"
