"""The size of a model is known exactly before it is built."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from include.synthesis.estimation import EstimationError, ModelSizer, model_size_mb
from include.synthesis.estimation.junction import JunctionTree
from include.synthesis.estimation.propagation import Propagation, Tables

from . import brute

SETTINGS = settings(max_examples=80, deadline=None, derandomize=True)


@SETTINGS
@given(brute.problems(columns=8, cliques=12))
def test_the_size_is_that_of_the_allocated_tables(problem):
    domain, cliques, _ = problem
    plan = Propagation(JunctionTree(domain, cliques), [])
    assert model_size_mb(domain, cliques) * 2**20 == Tables(plan).flat.nbytes


@SETTINGS
@given(brute.problems(columns=8, cliques=8), brute.problems(columns=8, cliques=8))
def test_candidates_get_the_size_they_would_have(problem, other):
    domain, cliques, _ = problem
    candidates = [c for c in other[1] if set(c) <= set(domain)] + list(brute.subsets(domain, 2))
    sizer = ModelSizer(domain, cliques)
    expected = [model_size_mb(domain, [*cliques, c]) for c in candidates]
    assert sizer.sizes_with_mb(candidates).tolist() == expected
    sizer.add(candidates[-1])
    assert sizer.size_mb == expected[-1]
    assert sizer.size_with_mb(candidates[0]) == model_size_mb(
        domain, [*cliques, candidates[-1], candidates[0]]
    )


def test_a_loop_costs_its_fill_in():
    domain = dict.fromkeys("abcd", 10)
    loop = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    assert model_size_mb(domain, loop) == 2 * 10**3 * 8 / 2**20
    assert model_size_mb(domain, loop[:3]) == 3 * 10**2 * 8 / 2**20


def test_columns_without_a_clique_cost_their_own_cells():
    assert model_size_mb({"a": 3, "b": 500}, []) == 503 * 8 / 2**20


def test_seventy_columns_and_a_hopeless_clique_have_a_size():
    domain = {f"c{i}": 2 for i in range(70)}
    chain = [(f"c{i}", f"c{i + 1}") for i in range(69)]
    sizer = ModelSizer(domain, chain)
    assert sizer.size_mb == 69 * 4 * 8 / 2**20
    closed = sizer.sizes_with_mb([("c0", "c69"), ("c0", "c1")])
    assert closed.tolist() == [68 * 8 * 8 / 2**20, sizer.size_mb]
    assert model_size_mb(domain, [tuple(domain)]) == 2.0**70 * 8 / 2**20
    vast = {f"c{i}": 10**6 for i in range(70)}
    assert model_size_mb(vast, [tuple(vast)]) == math.inf
    assert np.isinf(ModelSizer(vast).size_with_mb(tuple(vast)))


@pytest.mark.parametrize(
    ("domain", "clique", "words"),
    [
        ({"a": 2}, ("b",), "column b is not in the domain"),
        ({"a": 2}, ("a", "a"), "column a stands twice"),
        ({"a": 0}, ("a",), "column a needs at least one cell"),
        ({}, (), "the domain has no column"),
    ],
)
def test_a_wrong_clique_or_domain_is_named(domain, clique, words):
    with pytest.raises(EstimationError, match=words):
        model_size_mb(domain, [clique])
