"""Scores and their sensitivity, by brute force on small tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.synthesis.selection import (
    SCALE_BITS,
    integer_weights,
    l1_score,
    score_sensitivity,
)


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=6),
    st.data(),
    st.integers(1, 4),
    st.integers(1, 1024),
)
def test_one_unit_moves_a_score_by_at_most_its_sensitivity(
    cells: list[int], data: st.DataObject, max_rows: int, weight: int
) -> None:
    """Add one unit with up to max_rows rows, anywhere."""
    counts = np.array(cells, dtype=np.int64)
    size = len(cells)
    expected = np.array(
        data.draw(st.lists(st.floats(0, 100), min_size=size, max_size=size)), dtype=np.float64
    )
    rows = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=max_rows))
    neighbour = counts + np.bincount(rows, minlength=size)
    penalty = data.draw(st.floats(0, 50))
    before = l1_score(counts, expected, penalty, weight)
    after = l1_score(neighbour, expected, penalty, weight)
    assert abs(after - before) <= score_sensitivity([1, weight], max_rows)


def test_the_bound_is_reached() -> None:
    zero = np.zeros(4)
    for weight, max_rows in itertools.product((1, 7), (1, 3)):
        before = l1_score(np.array([5, 0, 0, 0]), zero, 0, weight)
        after = l1_score(np.array([5 + max_rows, 0, 0, 0]), zero, 0, weight)
        assert after - before == score_sensitivity([weight], max_rows)


def test_scores_are_the_distance_less_the_penalty() -> None:
    score = l1_score(np.array([3, 0], dtype=np.int64), np.array([1.5, 0.25]), 0.5, 2)
    assert score == round(2 * (1.5 + 0.25 - 0.5) * (1 << SCALE_BITS))


def test_huge_tables_clamp_instead_of_wrapping_round() -> None:
    counts = np.array([2**41, 0], dtype=np.int64)
    assert l1_score(counts, np.zeros(2), 0, 1024) == 2**62
    assert l1_score(np.zeros(2, dtype=np.int64), np.zeros(2), 2.0**60, 1024) == -(2**62)


@pytest.mark.parametrize(
    ("weights", "integers"),
    [([3.0, 3.0], (1, 1)), ([1.0, 2.0], (512, 1024)), ([1e-6, 1e6], (1, 1024))],
)
def test_weights_become_small_integers(weights: list[float], integers: tuple[int, ...]) -> None:
    assert integer_weights(weights) == integers
