"""Events and their composition: exact sums, one rounding, both currencies."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.accounting import (
    ONE,
    AdaptiveBlock,
    Cost,
    DiscreteLaplace,
    Event,
    EventError,
    ExponentialMechanism,
    Gaussian,
    compose,
    cost_in_currency,
    epsilon_from_rho,
    event_from_dict,
    rho_from_epsilon,
)

positive = st.floats(1e-3, 1e6) | st.integers(1, 10**6)
epsilons = st.floats(1e-4, 50)
events = st.one_of(
    st.builds(Gaussian, positive, st.integers(1, 30), st.text(max_size=5)),
    st.builds(ExponentialMechanism, epsilons, st.text(max_size=5)),
    st.builds(DiscreteLaplace, epsilons, st.text(max_size=5)),
    st.builds(
        AdaptiveBlock,
        st.integers(1, 10**12),
        st.text(max_size=5),
        st.none() | st.integers(1, 10**13),
    ),
)


def test_textbook_costs() -> None:
    assert Gaussian(2).rho == Fraction(1, 8)
    assert Gaussian(2, sensitivity=3).rho == Fraction(9, 8)
    assert Gaussian(2).epsilon_pure is None
    assert ExponentialMechanism(2).rho == Fraction(1, 2)
    assert ExponentialMechanism(2).epsilon_pure == 2
    assert DiscreteLaplace(1.5).epsilon_pure == Fraction(3, 2)


@given(epsilons)
def test_discrete_laplace_is_an_upper_bound_and_tight(epsilon: float) -> None:
    rho = DiscreteLaplace(epsilon).rho
    assert float(rho) == pytest.approx(epsilon * math.tanh(epsilon / 2), rel=1e-12)
    assert rho <= Fraction(epsilon) ** 2 / 2
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(80):
        exact = mpmath.mpf(epsilon) * mpmath.tanh(mpmath.mpf(epsilon) / 2)
        assert mpmath.mpf(rho.numerator) / rho.denominator >= exact


@given(st.floats(0.01, 3))
def test_discrete_laplace_bound_is_attained_by_the_mechanism(epsilon: float) -> None:
    """Renyi divergence of order near 1 between neighbours, summed over the integers."""
    q = math.exp(-epsilon)
    mass = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-3000, 3001)]
    pairs = zip(mass[1:], mass[:-1], strict=True)
    divergence = sum(a * math.log(a / b) for a, b in pairs if min(a, b) > 0)
    assert divergence <= float(DiscreteLaplace(epsilon).rho) * (1 + 1e-9)
    assert divergence == pytest.approx(float(DiscreteLaplace(epsilon).rho), rel=1e-6)


@given(st.lists(events, max_size=30))
def test_compose_is_exact_and_rounded_up_once(listed: list[Event]) -> None:
    cost = compose(listed)
    exact = sum((event.rho for event in listed), Fraction(0)) * ONE
    assert exact <= cost.rho_pico < exact + 1
    assert compose(reversed(listed)) == cost
    assert (cost.epsilon_pure_pico is None) == any(
        isinstance(e, Gaussian) or (isinstance(e, AdaptiveBlock) and e.epsilon_pico is None)
        for e in listed
    )


@given(events)
def test_json_round_trip_is_exact(event: Event) -> None:
    again = event_from_dict(json.loads(json.dumps(event.to_dict())))
    assert again == event
    assert again.rho == event.rho


def test_pure_composition_adds_to_the_last_digit() -> None:
    assert compose([DiscreteLaplace(0.5)] * 3).epsilon_pure_pico == 3 * ONE // 2
    assert compose([]) == Cost(0, 0)


def test_the_corrected_plan_costs_its_target() -> None:
    """MWEM-PGM with T=16, L=10 at eps 1: the plan of the design, against dp-accounting."""
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    rho = rho_from_epsilon(ONE, 9) / ONE
    sigma = math.sqrt(26 / (2 * 0.9 * rho))
    epsilon_t = math.sqrt(8 * 0.1 * rho / 16)
    ours = compose([Gaussian(sigma)] * 26 + [ExponentialMechanism(epsilon_t)] * 16)
    accountant = RdpAccountant([1 + math.exp(k / 100) for k in range(-200, 1000)])
    accountant.compose(dp_event.GaussianDpEvent(sigma), 26)
    accountant.compose(dp_event.ZCDpEvent(epsilon_t**2 / 8), 16)
    assert epsilon_from_rho(ours.rho_pico, 9) / ONE == pytest.approx(1, abs=1e-6)
    assert accountant.get_epsilon(1e-9) == pytest.approx(1, abs=1e-4)


def test_as_printed_the_plan_overspends() -> None:
    rho = rho_from_epsilon(ONE, 9) / ONE
    sigma = math.sqrt(26 / (2 * rho))
    printed = compose([Gaussian(sigma)] * 26 + [ExponentialMechanism(1 / 26)] * 16)
    assert printed.rho_pico > rho_from_epsilon(ONE, 9)


def test_agrees_with_opendp_maps() -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=int)
    assert dp.m.make_gaussian(*space, scale=7.25).map(1) == pytest.approx(float(Gaussian(7.25).rho))
    assert dp.m.make_gaussian(*space, scale=7.25).map(3) == pytest.approx(
        float(Gaussian(7.25, 3).rho)
    )


def test_currencies() -> None:
    gaussian = compose([Gaussian(10)])
    assert cost_in_currency(gaussian, "zcdp", 9) == gaussian.rho_pico
    assert cost_in_currency(gaussian, "epsilon", 9) == epsilon_from_rho(gaussian.rho_pico, 9)
    pure = compose([DiscreteLaplace(1.5), ExponentialMechanism(0.25)])
    assert cost_in_currency(pure, "epsilon", 9) == 7 * ONE // 4
    assert cost_in_currency(pure, "zcdp", 9) == pure.rho_pico
    tiny = compose([Gaussian(10**6)])
    assert cost_in_currency(tiny, "epsilon", 9) == ONE // 1000
    with pytest.raises(ValueError, match="accounting"):
        cost_in_currency(pure, "renyi", 9)  # type: ignore[arg-type]


@given(st.lists(st.integers(10**9, 10**12), min_size=1, max_size=8), st.integers(5, 15))
def test_epsilon_pool_covers_what_it_sums(parts: list[int], exponent: int) -> None:
    """Charges in the additive currency never promise less than the rho they stand for."""
    costs = [Cost(rho_from_epsilon(part, exponent), None) for part in parts]
    charged = sum(cost_in_currency(cost, "epsilon", exponent) for cost in costs)
    spent_rho = sum(cost.rho_pico for cost in costs)
    assert epsilon_from_rho(spent_rho, exponent) <= charged


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"kind": "laplace", "epsilon": 1},
        {"kind": "gaussian"},
        {"kind": "gaussian", "sigma": 1, "seed": 3},
        {"kind": "gaussian", "sigma": 0, "label": ""},
        {"kind": "gaussian", "sigma": float("nan")},
        {"kind": "gaussian", "sigma": True},
        {"kind": "gaussian", "sigma": 1, "sensitivity": 0},
        {"kind": "exponential_mechanism", "epsilon": -1},
        {"kind": "discrete_laplace", "epsilon": "1"},
        {"kind": ["gaussian"], "sigma": 1},
        {"kind": "adaptive_block", "rho_pico": 0},
        {"kind": "adaptive_block", "rho_pico": 0.5},
    ],
)
def test_impossible_events_are_refused(record: dict[str, object]) -> None:
    with pytest.raises(EventError):
        event_from_dict(record)


def test_a_block_of_pure_rounds_has_a_ceiling_in_both_currencies() -> None:
    pure = AdaptiveBlock(10**9, "table", 7 * 10**11)
    selection = ExponentialMechanism(0.25)
    assert compose([pure, selection]) == Cost(10**9 + 7_812_500_000, 95 * 10**10)
    assert compose([AdaptiveBlock(10**9), selection]).epsilon_pure_pico is None
    for wrong in (0, -1, 1.0, True):
        with pytest.raises(EventError, match="epsilon_pico"):
            AdaptiveBlock(10**9, "", wrong)  # type: ignore[arg-type]
