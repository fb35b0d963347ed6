"""The whole joint table: slow, obvious, and independent of the engine."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from include.synthesis.estimation import Measurement


def marginal(joint, domain, clique):
    """Sum a joint table onto a clique, C order over the clique as given."""
    names = list(domain)
    return np.einsum(joint, range(len(names)), [names.index(c) for c in clique]).ravel()


def random_joint(domain, total, rng):
    shape = tuple(domain.values())
    joint = rng.gamma(0.5, size=shape) + 1e-3
    return joint * (total / joint.sum())


def measure(joint, domain, cliques, sigma, rng):
    found = []
    for clique in cliques:
        truth = marginal(joint, domain, clique)
        found.append(Measurement(clique, truth + rng.normal(0, sigma, truth.size), sigma))
    return found


def chi_square_half(joint, domain, measurements):
    return sum(
        0.5 * np.sum((marginal(joint, domain, m.clique) - m.values) ** 2) / m.sigma**2
        for m in measurements
    )


def optimality_gap(joint, domain, measurements):
    """Bound how far the loss of a joint table is above the least possible (Frank-Wolfe)."""
    names, shape = list(domain), tuple(domain.values())
    gradient = np.zeros(shape)
    for m in measurements:
        axes = sorted(range(len(m.clique)), key=lambda i: names.index(m.clique[i]))
        residual = (marginal(joint, domain, m.clique) - m.values) / m.sigma**2
        table = residual.reshape([domain[c] for c in m.clique]).transpose(axes)
        gradient += table.reshape([domain[c] if c in m.clique else 1 for c in names])
    return float(np.sum(joint * gradient) - joint.sum() * gradient.min())


def subsets(names, largest):
    for size in range(1, largest + 1):
        yield from itertools.combinations(names, size)


@st.composite
def problems(draw, columns=5, cells=4, cliques=6):
    """A small domain and cliques over it, in any order of columns."""
    names = [f"c{i}" for i in range(draw(st.integers(1, columns)))]
    domain = {name: draw(st.integers(1, cells)) for name in names}
    clique = st.lists(st.sampled_from(names), min_size=0, max_size=3, unique=True).map(tuple)
    return domain, draw(st.lists(clique, max_size=cliques)), draw(st.integers(0, 2**32 - 1))
