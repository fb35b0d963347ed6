"""The conversion: tight, in the stated direction, and equal to two independent implementations."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.accounting import ONE, epsilon_from_rho, rho_from_epsilon

deltas = st.integers(5, 15)


def tight_epsilon(rho: float, exponent: int) -> float:
    """Corollary 13 minimised by brute force in floats: no code shared with the product."""
    best = math.inf
    for step in range(-4000, 9000):
        t = math.exp(step / 500)
        bound = (1 + t) * rho + math.log(t / (1 + t))
        best = min(best, bound + (exponent * math.log(10) - math.log1p(t)) / t)
    return best


@pytest.mark.parametrize(
    ("epsilon", "rho", "classic"),
    [(0.1, 0.000177, 0.000120), (1, 0.01497, 0.01178), (5, 0.3117, 0.2699), (10, 1.0908, 0.9812)],
)
def test_published_figures(epsilon: float, rho: float, classic: float) -> None:
    ours = rho_from_epsilon(round(epsilon * ONE), 9) / ONE
    assert float(f"{ours:.4g}") == pytest.approx(rho, rel=6e-3)
    assert ours > classic * 1.1


def test_a_pool_of_ten_holds_seventy_two_releases_of_one() -> None:
    assert rho_from_epsilon(10 * ONE, 9) // rho_from_epsilon(ONE, 9) == 72


@settings(max_examples=30)
@given(st.integers(10**8, 10**14), deltas)
def test_tight_against_brute_force(rho_pico: int, exponent: int) -> None:
    ours = epsilon_from_rho(rho_pico, exponent) / ONE
    assert ours == pytest.approx(tight_epsilon(rho_pico / ONE, exponent), rel=1e-5, abs=1e-9)


@given(st.integers(1, 10**15), deltas)
def test_round_trip_from_epsilon_never_gains(epsilon_pico: int, exponent: int) -> None:
    rho_pico = rho_from_epsilon(epsilon_pico, exponent)
    assert epsilon_from_rho(rho_pico, exponent) <= epsilon_pico
    assert epsilon_from_rho(rho_pico + 1, exponent) >= epsilon_pico  # and wastes below one unit


@given(st.integers(10**6, 10**15), deltas)
def test_round_trip_from_rho_never_gains(rho_pico: int, exponent: int) -> None:
    assert rho_from_epsilon(epsilon_from_rho(rho_pico, exponent), exponent) == rho_pico


@given(st.integers(1, 10**14), st.integers(0, 10**13), deltas)
def test_monotone(amount: int, more: int, exponent: int) -> None:
    assert rho_from_epsilon(amount, exponent) <= rho_from_epsilon(amount + more, exponent)
    assert epsilon_from_rho(amount, exponent) <= epsilon_from_rho(amount + more, exponent)
    if exponent > 5:
        assert rho_from_epsilon(amount, exponent) <= rho_from_epsilon(amount, exponent - 1)


@given(st.lists(st.integers(10**9, 2 * 10**12), min_size=2, max_size=10), deltas)
def test_superadditive_so_epsilon_charges_add_up(parts: list[int], exponent: int) -> None:
    whole = rho_from_epsilon(sum(parts), exponent)
    assert sum(rho_from_epsilon(part, exponent) for part in parts) <= whole


def test_ends_of_the_range() -> None:
    assert rho_from_epsilon(0, 9) == 0
    assert epsilon_from_rho(0, 9) == 0
    assert rho_from_epsilon(1, 15) == 0
    assert epsilon_from_rho(1, 15) >= 1
    assert 0 < rho_from_epsilon(10**18 - 1, 15) < 10**18


@pytest.mark.parametrize("exponent", [5, 9, 15])
@pytest.mark.parametrize("rho", [1e-6, 0.0001, 0.015, 0.3, 1.1, 7.0])
def test_agrees_with_opendp(rho: float, exponent: int) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=int)
    gaussian = dp.m.make_gaussian(*space, scale=1 / math.sqrt(2 * rho))
    theirs = dp.c.make_zCDP_to_approxDP(gaussian).map(1).epsilon(10.0**-exponent)
    ours = epsilon_from_rho(round(rho * ONE), exponent) / ONE
    assert ours == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize("exponent", [5, 9, 15])
@pytest.mark.parametrize("rho", [0.0001, 0.015, 0.3, 1.1, 7.0])
def test_agrees_with_dp_accounting(rho: float, exponent: int) -> None:
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    orders = [1 + math.exp(k / 200) for k in range(-400, 2000)]
    accountant = RdpAccountant(orders)
    accountant.compose(dp_event.ZCDpEvent(rho))
    theirs = accountant.get_epsilon(10.0**-exponent)
    ours = epsilon_from_rho(round(rho * ONE), exponent) / ONE
    assert ours <= theirs * (1 + 1e-9)
    assert ours == pytest.approx(theirs, rel=1e-4)


def test_import_is_light() -> None:
    code = (
        "import sys, include.accounting; "
        "heavy = {'numpy', 'opendp', 'pandas', 'pydantic'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
