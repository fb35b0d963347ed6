"""Marginal-based inference: a graphical model from noisy marginals, without seeing any data.

`estimate` fits, `GraphicalModel` answers marginals and samples rows, `model_size_mb` and
`ModelSizer` tell the size of a junction tree before it is built.
"""

from __future__ import annotations

from include.synthesis.estimation.engine import DEFAULT_ITERATIONS, estimate
from include.synthesis.estimation.measurement import (
    TOTAL_FLOOR,
    EstimationError,
    Measurement,
    estimate_total,
)
from include.synthesis.estimation.model import GraphicalModel
from include.synthesis.estimation.sizing import ModelSizer, model_size_mb

__all__ = [
    "DEFAULT_ITERATIONS",
    "TOTAL_FLOOR",
    "EstimationError",
    "GraphicalModel",
    "Measurement",
    "ModelSizer",
    "estimate",
    "estimate_total",
    "model_size_mb",
]
