"""Sensitivities by brute force: every small table, every row that could be added."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from include.synthesis.selection import (
    SCALE_BITS,
    dependence_score,
    dependence_sensitivity,
    l1_score,
    score_sensitivity,
)
from tests.synthesis.tables import CountsTable

NODE = ("x", ("p",))
CLIQUE = ("x", "p")


def small_tables(cells: int, most: int) -> Iterator[np.ndarray]:
    """List all histograms of at most so many rows."""
    for counts in itertools.product(range(most + 1), repeat=cells):
        if sum(counts) <= most:
            yield np.array(counts, dtype=np.int64)


def score(counts: np.ndarray, domain: dict[str, int]) -> int:
    return dependence_score(counts, CLIQUE, NODE, domain)


def exact(counts: np.ndarray, shape: tuple[int, int]) -> Fraction:
    """Compute sum |c_xp - c_x c_p / n| in rows, in fractions."""
    table = counts.reshape(shape).tolist()
    rows = sum(map(sum, table))
    if rows == 0:
        return Fraction(0)
    across = [sum(row) for row in table]
    down = [sum(column) for column in zip(*table, strict=True)]
    return sum(
        (
            abs(table[i][j] - Fraction(across[i] * down[j], rows))
            for i in range(shape[0])
            for j in range(shape[1])
        ),
        Fraction(0),
    )


@pytest.mark.parametrize(("shape", "most"), [((2, 2), 9), ((2, 3), 6), ((3, 3), 3), ((4, 2), 4)])
def test_the_dependence_score_moves_less_than_four_rows(shape: tuple[int, int], most: int) -> None:
    """All tables, all rows: the score of n R (twice, in 2^-20 rows) stays within its bound."""
    domain = dict(zip(CLIQUE, shape, strict=True))
    cells = shape[0] * shape[1]
    bound = dependence_sensitivity([NODE], domain, 1)
    assert bound == (4 << SCALE_BITS) + 2 * cells
    for counts in small_tables(cells, most):
        before = score(counts, domain)
        real = exact(counts, shape)
        assert abs(Fraction(before, 1 << SCALE_BITS) - real) <= Fraction(cells, 2 << SCALE_BITS)
        for cell in range(cells):
            after = counts.copy()
            after[cell] += 1
            assert abs(score(after, domain) - before) <= bound
            assert abs(exact(after, shape) - real) < 4


@pytest.mark.parametrize("max_rows", [2, 3])
def test_a_unit_of_several_rows_moves_it_so_many_times_as_much(max_rows: int) -> None:
    domain = {"x": 2, "p": 2}
    bound = dependence_sensitivity([NODE], domain, max_rows)
    assert bound == ((4 * max_rows) << SCALE_BITS) + 8
    for counts in small_tables(4, 4):
        for added in itertools.combinations_with_replacement(range(4), max_rows):
            after = counts + np.bincount(added, minlength=4)
            assert abs(score(after, domain) - score(counts, domain)) <= bound


def test_the_bound_is_nearly_reached_by_large_tables() -> None:
    """Two values in perfect agreement, one row more: the sum grows by 4 n / (n + 1) x shares."""
    domain = {"x": 2, "p": 2}
    counts = np.array([10**6, 0, 0, 1], dtype=np.int64)
    after = counts + np.array([0, 0, 0, 1])
    moved = score(after, domain) - score(counts, domain)
    assert moved >= 0.9999 * (4 << SCALE_BITS)


def test_any_row_of_a_large_table_moves_it_within_the_bound() -> None:
    """Random tables of up to 2^33 rows, where careless products of counts would pass 63 bits."""
    rng = np.random.default_rng(5)
    for size in (10**3, 10**6, 10**9, 2**31 - 2, 2**33):
        for shape in ((2, 2), (5, 7)):
            domain = dict(zip(CLIQUE, shape, strict=True))
            cells = shape[0] * shape[1]
            counts = (rng.dirichlet(np.full(cells, 0.3)) * size).astype(np.int64)
            bound = dependence_sensitivity([NODE], domain, 1)
            before = score(counts, domain)
            real = exact(counts, shape)
            assert abs(Fraction(before, 1 << SCALE_BITS) - real) <= Fraction(cells, 2 << SCALE_BITS)
            for cell in range(cells):
                after = counts.copy()
                after[cell] += 1
                assert abs(score(after, domain) - before) <= bound


def test_no_rows_no_parents_and_constants_score_zero() -> None:
    domain = {"x": 2, "p": 2}
    assert score(np.zeros(4, dtype=np.int64), domain) == 0
    assert score(np.array([7, 0, 0, 0]), domain) == 0
    assert dependence_score(np.array([3, 4]), ("x",), ("x", ()), domain) == 0


def test_the_axes_follow_the_clique_not_the_pair() -> None:
    """Child and parents may lie in any order in the table."""
    domain = {"a": 2, "b": 3, "c": 2}
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 9, 12).astype(np.int64)
    moved = counts.reshape(2, 3, 2).transpose(1, 0, 2).reshape(-1)
    one = dependence_score(counts, ("a", "b", "c"), ("b", ("a", "c")), domain)
    other = dependence_score(moved, ("b", "a", "c"), ("b", ("a", "c")), domain)
    assert one == other
    assert abs(Fraction(one, 1 << SCALE_BITS) - exact(moved, (3, 4))) <= Fraction(
        12, 2 << SCALE_BITS
    )


@pytest.mark.parametrize("max_rows", [1, 2])
def test_the_distance_score_moves_by_at_most_its_bound(max_rows: int) -> None:
    """The score of AIM and MWEM-PGM against every small model, every small table."""
    models = [np.array(m, dtype=np.float64) for m in itertools.product((0, 0.7, 2), repeat=3)]
    for weight in (1, 1024):
        bound = score_sensitivity([weight], max_rows)
        for counts in small_tables(3, 3):
            for added in itertools.combinations_with_replacement(range(3), max_rows):
                after = counts + np.bincount(added, minlength=3)
                for model in models:
                    moved = l1_score(after, model, 1.5, weight) - l1_score(
                        counts, model, 1.5, weight
                    )
                    assert abs(moved) <= bound


def test_a_unit_moves_every_marginal_by_at_most_its_rows() -> None:
    """L1 (for Laplace) and L2 (for Gaussian), the row count included."""
    domain = {"a": 2, "b": 3}
    rng = np.random.default_rng(3)
    for max_rows in (1, 2, 4):
        for _ in range(50):
            table = rng.integers(0, 2, (int(rng.integers(0, 6)), 2))
            unit = rng.integers(0, 2, (max_rows, 2))
            for clique in (("a",), ("b", "a")):
                found = []
                for codes in (table, np.vstack([table, unit])):
                    counted = CountsTable(codes, domain)
                    with counted.spending():
                        found.append(counted.counts(clique))
                moved = found[1] - found[0]
                assert np.abs(moved).sum() == max_rows
                assert (moved**2).sum() <= max_rows**2
