"""The figures of the documents, computed again."""

from __future__ import annotations

import math

import pytest

from include.accounting import ONE, epsilon_from_rho, rho_from_epsilon
from include.accounting.accountant import MIN_ZCDP_CHARGE_PICO
from include.accounting.amounts import DELTA_EXPONENTS
from include.budget.ledger import LIFETIME
from include.config.columns import MAX_LEVELS
from include.options import MAX_MODEL_MB
from include.synthesis.mechanisms.aim import (
    DEFAULT_INTEREST_SHARE,
    ROUNDS_PER_COLUMN,
    ROUNDS_PER_COLUMN_WITH_INTEREST,
)
from include.synthesis.mechanisms.mwem_pgm import MEASURE_PART, TOTAL_PART
from include.synthesis.plan import MIN_EPSILON_PICO
from tests.docs.pages import flat, section, text

GUARANTEE, MECHANISMS = "docs/guarantee.md", "docs/mechanisms.md"


def test_what_the_algorithm_as_printed_spends() -> None:
    rho = rho_from_epsilon(ONE, 9)
    assert f"{epsilon_from_rho(2 * rho, 9) / ONE:.2f}" == "1.44"
    assert f"{epsilon_from_rho(17 * rho, 9) / ONE:.2f}" == "4.48"
    page = section(MECHANISMS, "What is wrong with it")
    assert "| 2 rho | 1.44 |" in page
    assert "| 17 rho | 4.48 |" in page


def test_conversion_table() -> None:
    row = [f"{rho_from_epsilon(round(e * ONE), 9) / ONE:.4g}" for e in (0.1, 1, 5, 10)]
    assert row == ["0.0001771", "0.01497", "0.3117", "1.091"]
    assert "| rho, tight (used) | .000177 | .01497 | .3117 | 1.0908 |" in text(GUARANTEE)
    classic = []
    for epsilon in (0.1, 1, 5, 10):  # epsilon = rho + 2 sqrt(rho log(1 / delta))
        log = 9 * math.log(10)
        classic.append(f"{(math.sqrt(epsilon + log) - math.sqrt(log)) ** 2:.3g}")
    assert classic == ["0.00012", "0.0118", "0.27", "0.981"]


def test_a_pool_of_ten_holds_seventy_two() -> None:
    assert rho_from_epsilon(10 * ONE, 9) // rho_from_epsilon(ONE, 9) == 72


@pytest.mark.parametrize("exponent", DELTA_EXPONENTS)
def test_the_one_number_under_the_sum_of_epsilon_charges(exponent: int) -> None:
    """f(2m) > 2 f(m) at the floor m, with f rounded down by less than one unit."""
    floor = MIN_ZCDP_CHARGE_PICO
    assert floor == MIN_EPSILON_PICO == ONE // 1000
    assert rho_from_epsilon(2 * floor, exponent) > 2 * (rho_from_epsilon(floor, exponent) + 1)


def test_it_fails_near_zero() -> None:
    """Below the floor charges need not add: f(0) is above 0."""
    assert min(tight_epsilon(1e-14, 1e-5, step) for step in range(500, 20_000)) < 0


def tight_epsilon(rho: float, delta: float, step: int) -> float:
    t = math.exp(step / 500)
    bound = (1 + t) * rho + math.log(t / (1 + t))
    return bound + (math.log(1 / delta) - math.log1p(t)) / t


def test_one_delta_a_pool() -> None:
    """Ten requests of (0.1, delta 0.1) against the rho of a pool (1, 1e-9)."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        epsilon = min(tight_epsilon(middle, 0.1, step) for step in range(-2000, 8000, 4))
        low, high = (middle, high) if epsilon < 0.1 else (low, middle)
    assert 10 * low / (rho_from_epsilon(ONE, 9) / ONE) == pytest.approx(20, abs=1)


def budget_eval_in_floats(need: float, pool: float) -> float:
    """Algorithm 1 as printed, one pool; returns what is left of it."""
    return pool if pool == 0 else pool - min(need, pool)


def test_budget_eval_in_floats() -> None:
    assert budget_eval_in_floats(-5.0, 10.0) == 15.0
    assert budget_eval_in_floats(-math.inf, 10.0) == math.inf
    pool = 1.0
    for _ in range(10):
        pool = budget_eval_in_floats(0.1, pool)
    assert f"{pool:.1e}" == "1.4e-16"
    page = section(MECHANISMS, "What is wrong with it")
    assert "becomes 15" in page
    assert "1.4e-16" in page


def test_limits_that_are_quoted() -> None:
    assert f"{MAX_LEVELS:,} levels" in flat("docs/known-limitations.md")
    assert f"{MAX_LEVELS:,} levels" in flat("docs/configuration.md")
    assert LIFETIME.days == 7
    assert "seven days" in flat("docs/steward-guide.md")
    assert f"| `max_model_mb` | all | {MAX_MODEL_MB.default} |" in text(MECHANISMS)


def test_defaults_that_are_quoted() -> None:
    rounds = (
        f"{ROUNDS_PER_COLUMN} a column, {ROUNDS_PER_COLUMN_WITH_INTEREST} with interest queries"
    )
    assert rounds in flat(MECHANISMS)
    assert f"aim: {float(DEFAULT_INTEREST_SHARE)} |" in text(MECHANISMS)
    assert f"by default {DEFAULT_INTEREST_SHARE}, and 0" in flat(GUARANTEE)
    assert float(MEASURE_PART) == 0.9
    assert float(TOTAL_PART) == 0.01
    assert "`a` = 9/10 goes to measuring" in flat(GUARANTEE)
    assert "`t` is 1/100 if a noisy row count is bought" in flat(GUARANTEE)
