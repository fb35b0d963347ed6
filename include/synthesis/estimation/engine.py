"""From noisy marginals to a graphical model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from include.synthesis.estimation.descent import Descent
from include.synthesis.estimation.junction import JunctionTree
from include.synthesis.estimation.measurement import (
    TOTAL_FLOOR,
    Clique,
    EstimationError,
    FloatArray,
    Measurement,
    check_clique,
    check_domain,
    check_measurements,
    estimate_total,
)
from include.synthesis.estimation.model import GraphicalModel, Potentials
from include.synthesis.estimation.objective import Objective
from include.synthesis.estimation.propagation import Propagation

DEFAULT_ITERATIONS = 1000
"""Far beyond what a warm start needs; the tolerance usually stops much earlier."""
EXACT_TOLERANCE = 1e-9
"""Without a tolerance of the caller's: a fall of the loss that no later step can make up."""
BACKENDS = ("numpy", "private_pgm")


def estimate(
    domain: Mapping[str, int],
    measurements: Sequence[Measurement],
    *,
    total: float | None = None,
    warm_start: GraphicalModel | Potentials | None = None,
    iterations: int = DEFAULT_ITERATIONS,
    tolerance: float | None = None,
    extra_cliques: Iterable[Clique] = (),
    backend: str = "numpy",
) -> GraphicalModel:
    """Fit the graphical model of the measured cliques to noisy marginals.

    Of all distributions with the least chi-square the fit approaches the one of largest entropy
    (or nearest to the warm start).

    Args:
        domain: column name to number of cells, in column order.
        measurements: noisy marginals; more than one of a clique, and of its parts, is welcome.
        total: rows of the model, or None to estimate them from the measurements.
        warm_start: an earlier model, or its potentials, that the fit starts from where its cliques
            are inside the present ones.
        iterations: at most so many steps, at least 0.
        tolerance: stop when ten steps lower half the chi-square by no more than this; None
            descends to about 1e-9 of the minimum.
        extra_cliques: cliques that must lie inside one node though they are not measured.
        backend: `numpy`, or `private_pgm` for the reference implementation.

    Returns:
        The fitted model; the same arguments give the same bits.

    Raises:
        EstimationError: for a measurement, clique, domain or backend that does not fit.

    Source: McKenna, Sheldon and Miklau 2019 (Private-PGM).

    Privacy: post-processing.
    """
    if backend not in BACKENDS:
        raise EstimationError(f"no estimation backend {backend}; use {' or '.join(BACKENDS)}")
    extra = [tuple(clique) for clique in extra_cliques]
    check_domain(domain)
    check_measurements(domain, measurements)
    for clique in extra:
        check_clique(domain, clique)
    rows = _rows(measurements, total)
    start = [] if warm_start is None else _tables(domain, warm_start)
    stop = EXACT_TOLERANCE if tolerance is None else tolerance
    if backend == "private_pgm":
        from include.synthesis.estimation.private_pgm import fitted_tables

        start = fitted_tables(domain, measurements, rows, iterations, tolerance, start)
        iterations = 0
    tree = JunctionTree(domain, [m.clique for m in measurements] + extra)
    objective = Objective(tree, measurements)
    plan = Propagation(tree, objective.factors)
    descent = Descent(plan, objective, rows)
    point = descent.run(starting_tables(objective, tree, start), iterations, stop)
    return GraphicalModel(
        domain,
        tree,
        descent.conditionals,
        descent.finish(),
        factors=objective.factor_tables(point.theta),
        total=rows,
        loss=point.loss,
        iterations=descent.iterations,
    )


def _rows(measurements: Sequence[Measurement], total: float | None) -> float:
    rows = estimate_total(measurements) if total is None else float(total)
    if not np.isfinite(rows):
        raise EstimationError("the total of a model must be a finite number of rows")
    return max(TOTAL_FLOOR, rows)


def starting_tables(
    objective: Objective, tree: JunctionTree, tables: Iterable[tuple[Clique, FloatArray]]
) -> FloatArray:
    """Lay log tables on the factors that contain them; others have no place and are dropped.

    Args:
        objective: the present factors.
        tree: the present junction tree.
        tables: columns and log table, one axis a column.

    Returns:
        float64, shape (objective.size,).

    Privacy: post-processing.
    """
    theta = np.zeros(objective.size)
    factors = [
        (tree.mask(tree.names[c] for c in present), present, target)
        for present, target in objective.factor_tables(theta)
    ]
    for clique, table in tables:
        columns, mask = tree.columns(clique), tree.mask(clique)
        for larger, present, target in factors:
            if mask & ~larger == 0:
                order = sorted(range(len(columns)), key=lambda i: present.index(columns[i]))
                shape = [tree.sizes[c] if c in columns else 1 for c in present]
                target += table.transpose(order).reshape(shape)
                break
    return theta


def _tables(
    domain: Mapping[str, int], model: GraphicalModel | Potentials
) -> list[tuple[Clique, FloatArray]]:
    if list(model.domain.items()) != list(domain.items()):
        raise EstimationError("the model to start from is over another domain; fit from scratch")
    names = list(domain)
    # A constant added to a log table changes nothing; without it a long chain cannot drift.
    return [(tuple(names[c] for c in axes), table - table.max()) for axes, table in model.factors]
