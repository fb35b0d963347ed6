"""The fit reaches the least chi-square, keeps the entropy large, and repeats to the bit."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from include.errors import CuSynError
from include.synthesis.estimation import (
    TOTAL_FLOOR,
    EstimationError,
    Measurement,
    estimate,
    estimate_total,
)

from . import brute

DOMAIN = {"a": 3, "b": 2, "c": 4, "d": 1, "e": 2, "f": 3}
CLIQUES = [("a",), ("b", "a"), ("c", "b"), ("e", "c"), ("a", "e"), ("f",), ("d", "f")]


def problem(seed=0, sigma=5.0, cliques=CLIQUES, domain=DOMAIN, total=1000.0):
    rng = np.random.default_rng(seed)
    joint = brute.random_joint(domain, total, rng)
    return joint, brute.measure(joint, domain, cliques, sigma, rng)


def full_table(model):
    return model.marginal(tuple(model.domain)).reshape(tuple(model.domain.values()))


class TestOptimum:
    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(brute.problems())
    def test_no_distribution_fits_better(self, drawn):
        domain, cliques, seed = drawn
        _, noisy = problem(seed, sigma=3.0, cliques=cliques, domain=domain, total=200.0)
        model = estimate(domain, noisy, total=200.0, iterations=2000)
        joint = full_table(model)
        assert joint.sum() == pytest.approx(200.0)
        assert model.loss == pytest.approx(brute.chi_square_half(joint, domain, noisy), abs=1e-9)
        # The gap bounds the loss above the optimum; an optimum with empty cells is approached
        # slowly, so it is held against the noise (one half per measured cell), not zero.
        cells = sum(m.values.size for m in noisy)
        assert brute.optimality_gap(joint, domain, noisy) <= 1e-3 * (1 + cells)

    def test_exact_marginals_are_recovered(self):
        joint, exact = problem(sigma=5.0)
        exact = [Measurement(m.clique, brute.marginal(joint, DOMAIN, m.clique), 5.0) for m in exact]
        model = estimate(DOMAIN, exact)
        assert model.loss < 1e-6
        for m in exact:
            np.testing.assert_allclose(model.marginal(m.clique), m.values, atol=0.02)

    def test_what_was_not_measured_is_conditionally_independent(self):
        domain = {"a": 3, "b": 4, "c": 2}
        _, noisy = problem(domain=domain, cliques=[("a", "b"), ("b", "c")])
        model = estimate(domain, noisy)
        ab, bc = (model.marginal(c).reshape(-1, n) for c, n in ((("a", "b"), 4), (("b", "c"), 2)))
        independent = ab[:, :, None] * bc[None] / bc.sum(axis=1)[None, :, None]
        np.testing.assert_allclose(full_table(model), independent, atol=1e-9)

    def test_more_steps_never_fit_worse(self):
        _, noisy = problem()
        losses = [
            estimate(DOMAIN, noisy, iterations=n, tolerance=0.0).loss for n in range(0, 60, 3)
        ]
        assert losses == sorted(losses, reverse=True)

    def test_noise_scales_far_apart_and_a_large_table(self):
        # private-pgm needs 10,000 of its steps for this one: half the chi-square 3.8768
        domain = {"c0": 2, "c1": 4}
        pair = np.array([869.2, 55694.1, 46515.8, 28195.6, 19685.4, 4166.0, 5815.9, 3256.8])
        noisy = [
            Measurement(("c1",), np.array([20515.2, 59872.7, 52359.2, 31512.1]), 10.6),
            Measurement(("c1",), np.array([20514.2, 59856.7, 52361.9, 31510.2]), 4.9),
            Measurement(("c0",), np.array([131303.6, 32939.3]), 16.1),
            Measurement(("c0", "c1"), pair, 40.9),
        ]
        model = estimate(domain, noisy)
        again = estimate(domain, noisy, warm_start=model, iterations=20_000)
        assert model.iterations < 1000
        assert model.loss <= again.loss + 1e-6
        assert brute.optimality_gap(full_table(again), domain, noisy) < 0.01

    def test_the_tolerance_bounds_what_is_left(self):
        _, noisy = problem()
        best = estimate(DOMAIN, noisy).loss
        early = estimate(DOMAIN, noisy, tolerance=0.1)
        assert best <= early.loss <= best + 0.2
        assert early.iterations < estimate(DOMAIN, noisy).iterations


class TestMeasurements:
    def test_repeated_measurements_count_as_their_weighted_mean(self):
        joint, _ = problem()
        rng = np.random.default_rng(3)
        low = brute.measure(joint, DOMAIN, [("a", "b")], 4.0, rng)[0]
        high = brute.measure(joint, DOMAIN, [("b", "a")], 2.0, rng)[0]
        turned = high.values.reshape(2, 3).T.ravel()
        mean = Measurement(("a", "b"), (low.values + 4 * turned) / 5, np.sqrt(1 / (1 / 16 + 1 / 4)))
        both = estimate(DOMAIN, [low, high], total=1000.0)
        once = estimate(DOMAIN, [mean], total=1000.0)
        np.testing.assert_allclose(both.marginal(("a", "b")), once.marginal(("a", "b")), atol=1e-4)
        gap = (low.values - turned) @ (low.values - turned) / (2 * (16 + 4))
        assert both.loss == pytest.approx(once.loss + gap)

    def test_a_part_of_a_measured_clique_adds_its_information(self):
        joint, noisy = problem(sigma=50.0, cliques=[("a", "b")])
        exact = Measurement(("b",), brute.marginal(joint, DOMAIN, ("b",)), 0.01)
        model = estimate(DOMAIN, [*noisy, exact])
        np.testing.assert_allclose(model.marginal(("b",)), exact.values, atol=0.5)

    def test_a_negative_cell_is_emptied(self):
        noisy = [Measurement(("a",), np.array([46.0, -3.5, 157.0]), 3.0)]
        model = estimate({"a": 3}, noisy, total=200.0)
        least = 0.5 * (1.5**2 + 3.5**2 + 1.5**2) / 9  # the projection on the simplex
        assert model.loss == pytest.approx(least + 0.0, abs=2e-3)

    def test_nothing_measured_is_uniform(self):
        model = estimate(DOMAIN, [], total=144.0)
        np.testing.assert_allclose(full_table(model), 1.0)
        assert model.loss == 0.0

    def test_the_empty_clique_measures_the_total(self):
        model = estimate(DOMAIN, [Measurement((), np.array([77.0]), 1.0)])
        assert model.total == 77.0
        assert model.marginal(()) == pytest.approx([77.0])
        assert model.marginal(("a",)) == pytest.approx([77 / 3] * 3)

    def test_extra_cliques_share_a_node(self):
        _, noisy = problem()
        model = estimate(DOMAIN, noisy, extra_cliques=[("b", "f", "e")])
        assert any({"b", "e", "f"} <= set(clique) for clique in model.cliques)


class TestTotal:
    def test_it_is_the_inverse_variance_mean(self):
        found = estimate_total(
            [
                Measurement(("a",), np.array([10.0, 20.0, 40.0]), 1.0),  # 70, variance 3
                Measurement(("b",), np.array([30.0, 46.0]), 3.0),  # 76, variance 18
            ]
        )
        assert found == pytest.approx((70 / 3 + 76 / 18) / (1 / 3 + 1 / 18))

    @pytest.mark.parametrize("total", [0.0, -50.0, 1e-300, None])
    def test_it_never_falls_below_the_floor(self, total):
        noisy = [Measurement(("a",), np.array([-30.0, 4.0, -9.0]), 10.0)]
        model = estimate(DOMAIN, noisy, total=total)
        assert model.total == TOTAL_FLOOR
        assert model.marginal(("a", "b")).sum() == pytest.approx(TOTAL_FLOOR)
        assert np.isfinite(model.marginal(("a", "b"))).all()

    def test_a_huge_total_is_fitted(self):
        joint, noisy = problem(total=1e9, sigma=1e3)
        model = estimate(DOMAIN, noisy)
        assert model.total == pytest.approx(1e9, rel=1e-4)
        assert model.loss <= brute.chi_square_half(joint, DOMAIN, noisy)

    def test_it_must_be_finite(self):
        with pytest.raises(EstimationError, match="finite number of rows"):
            estimate(DOMAIN, [], total=float("nan"))


class TestWarmStart:
    def test_it_ends_where_a_cold_start_ends(self):
        _, noisy = problem()
        before = estimate(DOMAIN, noisy[:4], tolerance=0.1)
        warm = estimate(DOMAIN, noisy, warm_start=before, iterations=5000)
        cold = estimate(DOMAIN, noisy, iterations=5000)
        assert warm.loss == pytest.approx(cold.loss, abs=1e-6)
        for clique in brute.subsets(DOMAIN, 2):
            np.testing.assert_allclose(warm.marginal(clique), cold.marginal(clique), atol=0.05)

    def test_without_a_step_it_is_the_same_distribution_in_a_larger_tree(self):
        _, noisy = problem()
        before = estimate(DOMAIN, noisy[:4])
        after = estimate(DOMAIN, noisy, warm_start=before, iterations=0, total=before.total)
        assert after.cliques != before.cliques
        np.testing.assert_allclose(full_table(after), full_table(before), atol=1e-9)

    def test_cliques_without_a_place_are_dropped(self):
        _, noisy = problem()
        model = estimate(DOMAIN, noisy[:1], warm_start=estimate(DOMAIN, noisy))
        assert model.loss == pytest.approx(estimate(DOMAIN, noisy[:1]).loss, abs=1e-6)

    def test_another_domain_is_refused(self):
        other = estimate({"a": 2}, [], total=5.0)
        with pytest.raises(EstimationError, match="another domain"):
            estimate(DOMAIN, [], warm_start=other)


class TestShapes:
    def test_one_column(self):
        model = estimate({"a": 4}, [Measurement(("a",), np.array([5.0, -2.0, 30.0, 7.0]), 2.0)])
        assert model.cliques == (("a",),)
        assert model.marginal(("a",))[1] < 0.05

    def test_one_value(self):
        domain = {"only": 1, "also": 1, "b": 2}
        noisy = [Measurement(("only", "b"), np.array([5.0, 15.0]), 1.0)]
        model = estimate(domain, noisy)
        np.testing.assert_allclose(model.marginal(("b", "also")), [5, 15], atol=1e-3)
        assert model.marginal(("only",)) == pytest.approx([20.0])

    def test_seventy_binary_columns(self):
        names = [f"c{i}" for i in range(70)]
        domain = dict.fromkeys(names, 2)
        assert np.prod([float(v) for v in domain.values()]) > 2**63
        pair = np.array([450.0, 50.0, 50.0, 450.0])
        chain = [Measurement((a, b), pair, 1.0) for a, b in pairwise(names)]
        model = estimate(domain, chain)
        for distance in (1, 2, 10):
            kept = 0.5 + 0.5 * 0.8**distance
            expected = 500 * np.array([kept, 1 - kept, 1 - kept, kept])
            found = model.marginal((names[5], names[5 + distance]))
            np.testing.assert_allclose(found, expected, atol=0.01)
        assert model.marginal((names[0], names[69])).sum() == pytest.approx(1000)
        assert model.sample(10, np.random.default_rng(0)).shape == (10, 70)

    def test_large_nodes(self):
        domain = {"a": 40, "b": 30, "c": 25, "d": 3}
        cliques = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("b",)]
        _, noisy = problem(domain=domain, cliques=cliques, sigma=20.0, total=1e5)
        model = estimate(domain, noisy, tolerance=0.1)
        assert model.size_mb * 2**20 / 8 > 1 << 14  # so that a node is scanned
        assert model.loss == pytest.approx(
            brute.chi_square_half(full_table(model), domain, noisy), abs=1e-6
        )
        cells = sum(m.values.size for m in noisy)
        assert model.loss < 0.6 * cells
        for clique in brute.subsets(domain, 3):
            np.testing.assert_allclose(
                model.marginal(clique), brute.marginal(full_table(model), domain, clique), atol=1e-6
            )


class TestAnswers:
    def test_many_marginals_equal_single_ones(self):
        _, noisy = problem()
        model = estimate(DOMAIN, noisy)
        cliques = list(brute.subsets(DOMAIN, 3))
        answers = model.marginals(cliques)
        assert list(answers) == cliques
        for clique in cliques:
            np.testing.assert_array_equal(answers[clique], model.marginal(clique))

    def test_the_same_arguments_give_the_same_bits(self):
        _, noisy = problem()
        one, two = (estimate(DOMAIN, noisy, tolerance=0.1) for _ in range(2))
        assert one.loss == two.loss
        assert full_table(one).tobytes() == full_table(two).tobytes()
        rows = [m.sample(500, np.random.default_rng(9)).tobytes() for m in (one, two)]
        assert rows[0] == rows[1]


def test_the_bits_do_not_depend_on_the_process():
    program = (
        "import numpy as np; from include.synthesis.estimation import Measurement, estimate;"
        "noisy = [Measurement(c, np.arange(6.0) * 7 % 5, 1.0) for c in (('a', 'b'), ('b', 'c'))];"
        "model = estimate({'a': 2, 'b': 3, 'c': 2, 'd': 4}, noisy);"
        "print(model.marginal(('a', 'c', 'd')).tobytes().hex())"
    )
    outputs = set()
    for seed, threads in (("0", "1"), ("1", "2")):
        surroundings = {**os.environ, "PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": threads}
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=Path(__file__).parents[3],
            env=surroundings,
            check=True,
            stdout=subprocess.PIPE,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Measurement(("a",), np.zeros(3), 0.0), "noise scale above zero"),
        (lambda: Measurement(("a",), np.zeros(3), np.inf), "finite noise scale"),
        (lambda: estimate(DOMAIN, [Measurement(("z",), np.zeros(3), 1.0)]), "column z is not"),
        (lambda: estimate(DOMAIN, [Measurement(("a",), np.zeros(4), 1.0)]), "has 4 values where"),
        (lambda: estimate(DOMAIN, [Measurement(("a",), np.full(3, np.nan), 1.0)]), "not finite"),
        (lambda: estimate(DOMAIN, [], extra_cliques=[("q",)]), "column q is not"),
        (lambda: estimate(DOMAIN, [], backend="other"), "no estimation backend other"),
        (lambda: estimate(DOMAIN, [], total=1.0).marginal(("q",)), "column q is not"),
    ],
)
def test_a_fault_is_told_in_one_sentence(call, words):
    with pytest.raises(EstimationError, match=words) as caught:
        call()
    assert isinstance(caught.value, CuSynError)
    assert "\n" not in str(caught.value)
