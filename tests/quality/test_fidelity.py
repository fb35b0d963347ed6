"""Fidelity comes from the noisy measurements alone, and its error bars hold."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

from include.quality import fidelity as module
from include.quality.checks import QualityError
from include.quality.facts import CheckOutcome, InterestQuery, Measurement
from include.quality.fidelity import Thresholds, assess, gate, noise_tv, noisy_total
from tests.quality.facts_example import codes, columns, measure

COLS = columns()


def test_equal_tables_are_at_distance_zero():
    table = codes(COLS)
    exact = Measurement(("educ", "income"), 1e-9, _counts(table, (0, 1)), "interest")
    found = assess(table, COLS, [exact], [InterestQuery(("educ", "income"), 1e-9, 0.0, 0.0)])
    assert found.interest[0].distance_tv == pytest.approx(0, abs=1e-12)
    assert found.noisy_total == pytest.approx(len(table))


def test_disjoint_tables_are_at_distance_one():
    table = np.zeros((10, 4), dtype=np.uint8)
    other = (0,) * 19 + (10,)
    found = assess(table, COLS, [Measurement(("educ", "income"), 1.0, other)], [])
    assert found.measured[0].distance_tv == pytest.approx(1)


@pytest.mark.parametrize(("cells", "sigma", "total"), [(4, 3.0, 500), (40, 9.0, 4000)])
def test_error_bars_hold_in_95_of_100_draws(cells, sigma, total):
    rng = np.random.default_rng(7)
    errors = np.abs(rng.normal(0, sigma, (4000, cells))).sum(axis=1) / (2 * total)
    typical, bound = noise_tv(sigma, cells, total)
    assert errors.mean() == pytest.approx(typical, rel=0.02)
    assert (errors > bound).mean() <= 0.05
    assert bound < 3 * typical  # loose by the concentration inequality, but of use


def test_no_rows_means_no_claim():
    assert noise_tv(1.0, 4, 0) == (1.0, 1.0)
    table = np.zeros((0, 4), dtype=np.uint8)
    found = assess(table, COLS, [Measurement(("educ",), 2.0, (1, -1, 0, -2, 0))], [])
    assert found.rows == 0
    assert found.noisy_total == 0
    assert math.isfinite(found.measured[0].distance_tv)
    assert all(column.distance_tv is None for column in found.columns)


def test_the_total_weighs_measurements_by_their_noise():
    precise = Measurement(("a",), 1.0, (60, 40))
    vague = Measurement(("b",), 1000.0, (500, 500))
    assert noisy_total([precise, vague]) == pytest.approx(100, abs=0.01)
    assert noisy_total([Measurement((), 5.0, (-30,))]) == 0


def test_a_column_is_summed_from_its_least_noisy_measurement():
    table = codes(COLS)
    vague = measure(COLS, table, ("educ", "happy"), "selected", 50.0)
    precise = Measurement(("educ", "income"), 1e-6, _counts(table, (0, 1)), "interest")
    found = assess(table, COLS, [vague, precise], [])
    educ = found.columns[0]
    assert educ.source == ("educ", "income")
    assert educ.distance_tv < 0.03
    assert [bar.labels for bar in educ.bars] == [(cell,) for cell in COLS[0].cells]
    assert found.columns[3].distance_tv is None  # workstat: nobody measured it
    assert found.columns[3].bars[0].measured is None


def test_a_query_that_was_not_measured_claims_nothing():
    query = InterestQuery(("educ", "income"), None, None, None)
    found = assess(codes(COLS), COLS, [], [query]).interest[0]
    assert (found.sigma, found.distance_tv, found.bound95_tv) == (None, None, None)
    verdict = gate(
        assess(codes(COLS), COLS, [], [query]), [], Thresholds(max_interest_bound95_tv=0.5)
    )
    assert verdict.reasons == (
        "The 95% error bound of the interest query educ x income is not known: "
        "it was not measured.",
    )


def test_the_gate_names_each_reason():
    measured = measure(COLS, codes(COLS, seed=9), ("educ", "income"), "interest", 9.0)
    found = assess(
        codes(COLS), COLS, [measured], [InterestQuery(("educ", "income"), 9.0, 0.03, 0.06)]
    )
    checks = [
        CheckOutcome("educ", "no empty cells", False),
        CheckOutcome(None, "number of columns", False, raised=True),
    ]
    limits = Thresholds(
        max_interest_distance_tv=1e-6,
        max_interest_bound95_tv=0.05,
        max_measured_distance_tv=1e-6,
    )
    verdict = gate(found, checks, limits)
    assert not verdict.passed
    assert len(verdict.reasons) == 5
    assert "column 'educ' the rule 'no empty cells' does not hold" in verdict.reasons[0]
    assert "could not be evaluated" in verdict.reasons[1]
    assert "above the declared limit 0.05" in verdict.reasons[3]
    assert gate(found, checks, Thresholds(require_checks=False)).passed
    assert gate(found, []).passed


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"max_tv": 0.1}, "'max_tv' is not a threshold"),
        ({"max_interest_bound95_tv": "0.1"}, "must be a share"),
        ({"max_interest_bound95_tv": True}, "must be a share"),
        ({"max_interest_bound95_tv": float("nan")}, "must be a share"),
        ({"require_checks": 1}, "must be true or false"),
    ],
)
def test_thresholds_are_read_strictly(block, words):
    with pytest.raises(QualityError, match=words):
        Thresholds.from_mapping(block)


def test_nothing_here_can_reach_raw_data():
    """The room's arguments are codes of the synthetic table and noisy measurements only."""
    assert list(inspect.signature(assess).parameters) == [
        "codes",
        "columns",
        "measurements",
        "interest",
    ]
    source = inspect.getsource(module)
    assert "include.data" not in source
    assert "snapshot" not in source


def _counts(table: np.ndarray, where: tuple[int, int]) -> tuple[int, ...]:
    shape = [len(COLS[i].cells) for i in where]
    flat = np.ravel_multi_index([table[:, i] for i in where], shape)
    return tuple(int(v) for v in np.bincount(flat, minlength=math.prod(shape)))
