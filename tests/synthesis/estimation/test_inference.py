"""Message passing gives the marginals of the joint table, inside and outside the model."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.synthesis.estimation import propagation
from include.synthesis.estimation.contraction import Reduction
from include.synthesis.estimation.junction import JunctionTree
from include.synthesis.estimation.marginals import MarginalReader
from include.synthesis.estimation.measurement import Measurement, cells_of
from include.synthesis.estimation.objective import Objective
from include.synthesis.estimation.propagation import Propagation, Tables

from . import brute

SETTINGS = settings(max_examples=60, deadline=None, derandomize=True)


@pytest.fixture(params=[1 << 14, 0], ids=["small nodes", "large nodes"])
def either_path(request, monkeypatch):
    monkeypatch.setattr(propagation, "DENSE_CELLS", request.param)


def joint_of(objective, tree, theta):
    logs = np.zeros(tree.sizes)
    for columns, table in objective.factor_tables(theta):
        order = np.argsort(columns)
        shape = [tree.sizes[c] if c in columns else 1 for c in range(len(tree.sizes))]
        logs += table.transpose(order).reshape(shape)
    joint = np.exp(logs - logs.max())
    return joint / joint.sum()


def structure(domain, cliques):
    tree = JunctionTree(domain, cliques)
    zeros = [Measurement(c, np.zeros(cells_of(domain, c)), 1.0) for c in cliques]
    objective = Objective(tree, zeros)
    return tree, objective, Propagation(tree, objective.factors)


class TestAgainstTheJointTable:
    @pytest.mark.usefixtures("either_path")
    def test_every_marginal_from_log_tables_and_after_a_step(self):
        @SETTINGS
        @given(brute.problems(), st.sampled_from([1.0, 40.0]))
        def check(problem, scale):
            domain, cliques, seed = problem
            rng = np.random.default_rng(seed)
            tree, objective, plan = structure(domain, cliques)
            theta, move = rng.normal(0, scale, objective.size), rng.normal(size=objective.size)
            first, second = Tables(plan), Tables(plan)
            plan.start(theta, first)
            assert plan.step(first, move, second)
            for tables, point in ((first, theta), (second, theta + move)):
                joint = 100 * joint_of(objective, tree, point)
                factors = plan.distribute(tables, 100.0)
                expected = [
                    brute.marginal(joint, domain, [tree.names[c] for c in slot.columns])
                    for slot in objective.factors
                ]
                np.testing.assert_allclose(factors, np.concatenate([[], *expected]), atol=1e-9)
                reader = MarginalReader(tree, tables, plan.separators, 100.0)
                for clique in brute.subsets(domain, 3):
                    turned = clique[::-1]
                    np.testing.assert_allclose(
                        reader.read(tree.columns(turned)),
                        brute.marginal(joint, domain, turned),
                        atol=1e-9,
                    )

        check()

    @SETTINGS
    @given(brute.problems())
    def test_the_tree_holds_every_clique_and_has_the_running_intersection(self, problem):
        domain, cliques, _ = problem
        tree = JunctionTree(domain, cliques)
        assert all(tree.host(tree.mask(c)) >= 0 for c in cliques)
        assert sorted(tree.top) == list(range(len(domain)))
        for a, b in itertools.pairwise(range(len(tree.nodes))):
            assert tree.nodes[b].parent <= a
        for node in tree.nodes:
            if node.parent >= 0:
                parent = tree.nodes[node.parent]
                assert set(node.separator) == set(node.columns) & set(parent.columns)
        for column in range(len(domain)):
            holders = [i for i, node in enumerate(tree.nodes) if column in node.columns]
            tops = [i for i in holders if column in tree.nodes[i].rest]
            assert len(tops) == 1  # one connected subtree: all others hang below it
            assert all(tree.nodes[i].parent in holders for i in holders if i not in tops)


class TestReduction:
    @SETTINGS
    @given(st.lists(st.tuples(st.integers(1, 12), st.booleans()), max_size=5))
    def test_it_sums_over_any_axes(self, axes):
        shape = [cells for cells, _ in axes]
        table = np.random.default_rng(0).random(shape)
        dropped = tuple(i for i, (_, kept) in enumerate(axes) if not kept)
        found = Reduction(shape, [kept for _, kept in axes])(table)
        np.testing.assert_allclose(found, table.sum(axis=dropped).ravel(), rtol=1e-12)
