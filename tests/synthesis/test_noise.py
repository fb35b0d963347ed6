"""The exact samplers: distribution, direction of rounding, entropy."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

from include.accounting import DiscreteLaplace, ExponentialMechanism, Gaussian
from include.synthesis import noise


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """Standardised chi-square: about normal(0, 1) under the hypothesis."""
    expected = probabilities * counts.sum()
    kept = expected > 10
    statistic = float(((counts - expected)[kept] ** 2 / expected[kept]).sum())
    freedom = int(kept.sum()) - 1
    return (statistic - freedom) / math.sqrt(2 * freedom)


@pytest.mark.parametrize("sigma", [0.7, 3.0, 12.5])
def test_gaussian_has_the_discrete_distribution(sigma: float) -> None:
    values = noise.discrete_gaussian(np.zeros(40_000, dtype=np.int64), sigma)
    reach = math.ceil(6 * sigma)
    support = np.arange(-reach, reach + 1)
    mass = np.exp(-((support / sigma) ** 2) / 2)
    counts = np.bincount(np.clip(values, -reach, reach) + reach, minlength=len(support))
    assert chi_square(counts, mass / mass.sum()) < 6


@pytest.mark.parametrize("scale", [0.5, 4.0])
def test_laplace_has_the_discrete_distribution(scale: float) -> None:
    values = noise.discrete_laplace(np.zeros(40_000, dtype=np.int64), scale)
    reach = math.ceil(20 * scale)
    support = np.arange(-reach, reach + 1)
    mass = np.exp(-np.abs(support) / scale)
    counts = np.bincount(np.clip(values, -reach, reach) + reach, minlength=len(support))
    assert chi_square(counts, mass / mass.sum()) < 6


def test_selection_has_the_exponential_distribution() -> None:
    scores = np.array([0, 300, 700, 1000])
    epsilon, sensitivity = 1.5, 500
    drawn = [noise.exponential_mechanism(scores, sensitivity, epsilon) for _ in range(20_000)]
    mass = np.exp(epsilon * scores / (2 * sensitivity))
    assert chi_square(np.bincount(drawn, minlength=4), mass / mass.sum()) < 6


def test_noise_is_integer_and_leaves_large_counts_alone() -> None:
    counts = np.array([2**50, 0, 17], dtype=np.int64)
    noisy = noise.discrete_gaussian(counts, 2.0)
    assert noisy.dtype == np.int64
    assert np.abs(noisy - counts).max() < 100


def test_opendp_states_the_costs_that_the_accountant_books() -> None:
    assert noise._gaussian(8.3).map(3) == pytest.approx(float(Gaussian(8.3, 3).rho), rel=1e-12)
    assert noise._laplace(4.0).map(1) == pytest.approx(float(DiscreteLaplace(0.25).epsilon))
    sensitivity, epsilon = 1 << 20, 0.123
    scale = 2 * sensitivity / epsilon
    booked = float(ExponentialMechanism(epsilon).rho)
    assert noise._noisy_max(scale).map(sensitivity) == pytest.approx(booked, rel=1e-12)


def test_two_fresh_processes_draw_differently() -> None:
    code = (
        "import numpy as np; from include.synthesis import noise; "
        "np.random.seed(1); "
        "print(noise.discrete_gaussian(np.zeros(20, dtype=np.int64), 100.0).tolist())"
    )
    drawn = {
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout
        for _ in range(2)
    }
    assert len(drawn) == 2
