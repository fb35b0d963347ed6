"""The reference implementation, private-pgm (`mbi`), as a second backend and as the tests' oracle.

It compiles every new set of cliques (seconds) and is therefore not the default.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from include.synthesis.estimation.measurement import Clique, FloatArray, Measurement

LogTables = Sequence[tuple[Clique, FloatArray]]


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
    start: LogTables = (),
) -> Any:
    """Fit by private-pgm's mirror descent.

    Args:
        domain: column name to number of cells.
        measurements: noisy marginals.
        total: rows of the model.
        iterations: steps; private-pgm rounds them up to a multiple of 50.
        tolerance: stop when 50 steps lower half the chi-square by no more than this.
        start: log tables to start from; those outside the measured cliques are dropped.

    Returns:
        An `mbi.MarkovRandomField`.

    Source: McKenna, Sheldon and Miklau 2019, algorithm 1, as published in mbi 2.

    Privacy: post-processing.
    """
    mbi = load_mbi()
    columns = mbi.Domain(tuple(domain), tuple(domain.values()))
    linear = [mbi.LinearMeasurement(m.values, m.clique, m.sigma) for m in measurements]
    loss = mbi.marginal_loss.from_linear_measurements(linear, columns)
    scale = max(1.0, 0.5 * sum(m.values.size for m in measurements))
    return mbi.estimation.MirrorDescent().estimate(
        columns,
        loss,
        known_total=total,
        iters=iterations,
        warm_start=_potentials(mbi, columns, loss, start) if start else None,
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


def fitted_tables(
    domain: Mapping[str, int],
    measurements: Sequence[Measurement],
    total: float,
    iterations: int,
    tolerance: float | None,
    start: LogTables,
) -> list[tuple[Clique, FloatArray]]:
    """Fit by private-pgm and return only its log potentials; see `fit_reference`.

    Privacy: post-processing.
    """
    return tables_of(
        fit_reference(
            domain,
            measurements,
            total=total,
            iterations=iterations,
            tolerance=tolerance,
            start=start,
        )
    )


def _potentials(mbi: Any, columns: Any, loss: Any, start: LogTables) -> Any:
    inside = {}
    for clique, table in start:
        if any(set(clique) <= set(larger) for larger in loss.cliques):
            inside[clique] = mbi.Factor(columns.project(clique), table)
    return mbi.CliqueVector(columns, list(inside), inside).expand(loss.cliques)
