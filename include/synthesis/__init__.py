"""Synthesis: plan -> measure -> fit -> sample, of which only `measure` sees data.

Importing this package is light: numpy and the samplers are loaded when a mechanism first runs.
"""

from include.synthesis.errors import InterestError, interest_errors
from include.synthesis.mechanisms.base import Synthesizer
from include.synthesis.plan import Plan, PlanError, Prediction
from include.synthesis.protected import ProtectedCounts, RoundLog
from include.synthesis.registry import MECHANISM_NAMES, cost_of, synthesizer
from include.synthesis.spending import SpendingError
from include.synthesis.task import Clique, SynthesisTask, TaskError
from include.synthesis.transcript import (
    NoisyMarginal,
    Round,
    Transcript,
    TranscriptError,
    noisy_rows,
)

__all__ = [
    "MECHANISM_NAMES",
    "Clique",
    "InterestError",
    "NoisyMarginal",
    "Plan",
    "PlanError",
    "Prediction",
    "ProtectedCounts",
    "Round",
    "RoundLog",
    "SpendingError",
    "SynthesisTask",
    "Synthesizer",
    "TaskError",
    "Transcript",
    "TranscriptError",
    "cost_of",
    "interest_errors",
    "noisy_rows",
    "synthesizer",
]
