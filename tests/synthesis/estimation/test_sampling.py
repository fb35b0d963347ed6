"""Sampled rows follow the model: unbiased, less scattered than independent draws, uncorrelated."""

from __future__ import annotations

import numpy as np
import pytest

from include.synthesis.estimation import Measurement, estimate

from . import brute

DOMAIN = {"a": 3, "b": 2, "c": 4, "d": 1, "e": 2}


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(2)
    joint = brute.random_joint(DOMAIN, 1000.0, rng)
    cliques = [("a", "b"), ("b", "c"), ("c", "e"), ("d",)]
    return estimate(DOMAIN, brute.measure(joint, DOMAIN, cliques, 5.0, rng))


def counts(rows, domain, clique):
    columns = [rows[:, list(domain).index(c)] for c in clique]
    flat = np.ravel_multi_index(columns, [domain[c] for c in clique])
    return np.bincount(flat, minlength=int(np.prod([domain[c] for c in clique])))


def test_shape_type_and_range(model):
    rows = model.sample(137, np.random.default_rng(0))
    assert rows.shape == (137, 5)
    assert rows.dtype == np.uint8
    assert (rows.max(axis=0) < list(DOMAIN.values())).all()
    assert model.sample(0, np.random.default_rng(0)).shape == (0, 5)
    assert model.sample(1, np.random.default_rng(0)).shape == (1, 5)


def test_wide_columns_get_a_wider_type():
    found = estimate({"name": 501, "x": 2}, [], total=10.0).sample(20, np.random.default_rng(0))
    assert found.dtype == np.uint16


def test_the_largest_node_is_rounded_to_the_next_count(model):
    rows = 731
    root = [model.tree.names[c] for c in model.tree.nodes[0].columns]
    expected = model.marginal(root) * rows / model.total
    for seed in range(20):
        found = counts(model.sample(rows, np.random.default_rng(seed)), DOMAIN, root)
        assert np.abs(found - expected).max() < 1.0


def test_every_cell_of_the_joint_table_is_unbiased(model):
    rows, runs = 60, 3000
    rng = np.random.default_rng(11)
    names = tuple(DOMAIN)
    total = sum(counts(model.sample(rows, rng), DOMAIN, names) for _ in range(runs))
    share = model.marginal(names) / model.total
    expected = runs * rows * share
    # Systematic draws scatter less than independent ones, so the binomial scale is an upper bound.
    spread = np.sqrt(np.maximum(expected * (1 - share), 1.0))
    assert np.abs((total - expected) / spread).max() < 4.5


def test_pairs_scatter_less_than_independent_draws(model):
    rows, clique = 1000, ("b", "c")
    share = model.marginal(clique) / model.total
    rng = np.random.default_rng(5)
    found = [counts(model.sample(rows, rng), DOMAIN, clique) for _ in range(50)]
    ours = np.mean([np.sum((f - rows * share) ** 2) for f in found])
    independent = rows * np.sum(share * (1 - share))
    assert ours < 0.2 * independent


def test_independent_columns_stay_uncorrelated():
    domain = {f"c{i}": 2 for i in range(6)}
    one_way = [Measurement((c,), np.array([300.0, 700.0]), 1.0) for c in domain]
    rows = estimate(domain, one_way).sample(4000, np.random.default_rng(4)).astype(float)
    correlations = np.corrcoef(rows.T)[np.triu_indices(6, 1)]
    assert np.abs(correlations).max() < 0.08  # five times 1/sqrt(4000)


def test_columns_with_one_parent_stay_conditionally_independent():
    domain = {"p": 2, "x": 2, "y": 2}
    pair = np.array([400.0, 100.0, 100.0, 400.0])
    pairs = [Measurement((("p"), c), pair, 1.0) for c in ("x", "y")]
    rows = estimate(domain, pairs).sample(8000, np.random.default_rng(4)).astype(float)
    for value in (0, 1):
        x, y = rows[rows[:, 0] == value, 1:].T
        assert abs(np.corrcoef(x, y)[0, 1]) < 0.06


def test_the_order_of_rows_tells_nothing(model):
    rows = model.sample(5000, np.random.default_rng(8)).astype(float)
    place = np.arange(5000)
    for column in (0, 1, 2, 4):
        assert abs(np.corrcoef(rows[:, column], place)[0, 1]) < 0.06


def test_cells_without_mass_are_never_drawn():
    noisy = [Measurement(("a", "b"), np.array([100.0, -400.0, -400.0, 100.0]), 0.01)]
    model = estimate({"a": 2, "b": 2}, noisy)
    assert model.marginal(("a", "b"))[1:3].max() < 1e-9
    rows = model.sample(3000, np.random.default_rng(1))
    assert (rows[:, 0] == rows[:, 1]).all()
