"""private-pgm is the oracle: the same loss, the same marginals, from code that is not ours."""

from __future__ import annotations

import numpy as np
import pytest

from include.synthesis.estimation import estimate, private_pgm

from . import brute

DOMAIN = {"a": 3, "b": 2, "c": 4, "d": 1, "e": 2}
CLIQUES = [("a",), ("b", "a"), ("c", "b"), ("c", "e"), ("e", "a")]
RANDOM = [(seed, columns) for seed, columns in enumerate((1, 2, 3, 4, 5, 6, 6, 6))]


def noisy_problem(domain, cliques, seed=0, sigma=4.0, total=1000.0):
    rng = np.random.default_rng(seed)
    joint = brute.random_joint(domain, total, rng)
    return brute.measure(joint, domain, cliques, sigma, rng)


def check_equal(domain, noisy, iterations=3000):
    pytest.importorskip("mbi")
    ours = estimate(domain, noisy, total=1000.0, iterations=iterations)
    theirs = private_pgm.fit_reference(domain, noisy, total=1000.0, iterations=iterations)
    loss = sum(
        0.5 * np.sum((theirs.project(m.clique).datavector() - m.values) ** 2) / m.sigma**2
        for m in noisy
    )
    assert ours.loss <= loss + 1e-6
    assert ours.loss == pytest.approx(float(loss), abs=1e-4)
    for m in noisy:
        reference = np.asarray(theirs.project(m.clique).datavector())
        np.testing.assert_allclose(ours.marginal(m.clique), reference, atol=0.1)
    return theirs


def test_loss_and_marginals_are_equal():
    noisy = noisy_problem(DOMAIN, CLIQUES)
    theirs = check_equal(DOMAIN, noisy)
    ours = estimate(DOMAIN, noisy, total=1000.0)
    outside = np.asarray(theirs.project(("a", "c")).datavector())
    np.testing.assert_allclose(ours.marginal(("a", "c")), outside, atol=0.1)


def test_the_backend_is_selectable_and_answers_alike():
    pytest.importorskip("mbi")
    noisy = noisy_problem(DOMAIN, CLIQUES)
    ours = estimate(DOMAIN, noisy)
    start = estimate(DOMAIN, noisy, tolerance=10.0)
    theirs = estimate(DOMAIN, noisy, backend="private_pgm", warm_start=start)
    assert theirs.total == ours.total
    assert theirs.loss == pytest.approx(ours.loss, abs=1e-4)
    for clique in brute.subsets(DOMAIN, 2):
        np.testing.assert_allclose(theirs.marginal(clique), ours.marginal(clique), atol=0.2)
    assert theirs.sample(10, np.random.default_rng(0)).shape == (10, 5)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "columns"), RANDOM)
def test_random_models_are_equal(seed, columns):
    rng = np.random.default_rng(100 + seed)
    names = [f"c{i}" for i in range(columns)]
    domain = {name: int(rng.integers(1, 5)) for name in names}
    cliques = [(name,) for name in names]
    for _ in range(columns):
        size = int(rng.integers(1, min(3, columns) + 1))
        cliques.append(tuple(rng.permutation(names)[:size].tolist()))
    check_equal(domain, noisy_problem(domain, cliques, seed))
