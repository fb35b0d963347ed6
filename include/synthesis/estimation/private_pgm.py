"""The reference implementation, private-pgm (`mbi`), as a second backend and as the tests' oracle.

It compiles every new set of cliques (seconds) and is therefore not the default.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from include.synthesis.estimation.measurement import Clique, FloatArray, Measurement
from include.synthesis.estimation.model import GraphicalModel


def load_mbi() -> Any:
    """Import mbi with double precision and without JAX's compilation cache on disk.

    Returns:
        The module.

    Privacy: ledger only.
    """
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    import mbi

    return mbi


def fit_reference(
    domain: Mapping[str, int],
    measurements: Sequence[Measurement],
    *,
    total: float,
    iterations: int,
    tolerance: float | None = None,
    warm_start: GraphicalModel | None = None,
) -> Any:
    """Fit by private-pgm's mirror descent.

    Args:
        domain: column name to number of cells.
        measurements: noisy marginals.
        total: rows of the model.
        iterations: steps; private-pgm rounds them up to a multiple of 50.
        tolerance: stop when 50 steps lower half the chi-square by no more than this.
        warm_start: where to start, with its cliques inside the present ones.

    Returns:
        An `mbi.MarkovRandomField`.

    Source: McKenna, Sheldon and Miklau 2019, algorithm 1, as published in mbi 2.

    Privacy: post-processing.
    """
    mbi = load_mbi()
    columns = mbi.Domain(tuple(domain), tuple(domain.values()))
    linear = [mbi.LinearMeasurement(m.values, m.clique, m.sigma) for m in measurements]
    loss = mbi.marginal_loss.from_linear_measurements(linear, columns)
    start = None if warm_start is None else _potentials(mbi, columns, loss, warm_start)
    scale = max(1.0, 0.5 * sum(m.values.size for m in measurements))
    return mbi.estimation.MirrorDescent().estimate(
        columns,
        loss,
        known_total=total,
        iters=iterations,
        warm_start=start,
        # private-pgm's tolerance is relative to the loss, which for a good fit is about half the
        # number of measured cells.
        tol=None if tolerance is None else tolerance / scale,
        patience=1,
    )


def tables_of(model: Any) -> list[tuple[Clique, FloatArray]]:
    """Read the log potentials of a private-pgm model.

    Args:
        model: an `mbi.MarkovRandomField`.

    Returns:
        Clique and float64 table with one axis a column, per potential.

    Privacy: post-processing.
    """
    factors = [model.potentials[clique] for clique in model.potentials.cliques]
    return [
        (tuple(f.domain.attributes), np.array(f.datavector(flatten=False), dtype=np.float64))
        for f in factors
    ]


def _potentials(mbi: Any, columns: Any, loss: Any, warm_start: GraphicalModel) -> Any:
    names = warm_start.tree.names
    inside = {}
    for clique, table in warm_start.factors:
        axes = tuple(names[c] for c in clique)
        if any(set(axes) <= set(larger) for larger in loss.cliques):
            inside[axes] = mbi.Factor(columns.project(axes), table)
    return mbi.CliqueVector(columns, list(inside), inside).expand(loss.cliques)
