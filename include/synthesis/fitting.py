"""From noisy marginals to a model: the one place where mechanisms meet the estimation engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from include.synthesis.estimation import GraphicalModel, Measurement, ModelSizer, estimate
from include.synthesis.task import Clique
from include.synthesis.transcript import NoisyMarginal, noisy_total


@dataclass(frozen=True)
class Effort:
    """How long a fit may take.

    Args:
        iterations: Most steps.
        tolerance: Fall of half the chi-square in ten steps that counts as done.

    Privacy: post-processing.
    """

    iterations: int
    tolerance: float


ROUND = Effort(iterations=200, tolerance=0.1)
"""Between rounds: under 50 steps hurt selection; a finer tolerance changed nothing measured."""
FINAL = Effort(iterations=2000, tolerance=0.01)


class Fitter:
    """Collects measurements and fits one model to them, warm where it can.

    Args:
        domain: Cells of each column.
        max_model_mb: Memory bound of the model's tables.
        backend: numpy or private_pgm.

    Privacy: post-processing.
    """

    def __init__(self, domain: Mapping[str, int], max_model_mb: float, backend: str) -> None:
        self._domain = dict(domain)
        self._backend = backend
        self._max_model_mb = max_model_mb
        self._all: list[NoisyMarginal] = []
        self._measurements: list[Measurement] = []
        self.sizer = ModelSizer(domain, [(column,) for column in domain])
        self.model: GraphicalModel | None = None

    def add(self, marginals: Iterable[NoisyMarginal]) -> None:
        """Take in measurements of this charge; the policy has kept them within the bound."""
        for item in marginals:
            self._all.append(item)
            if item.clique:
                values = np.asarray(item.counts, dtype=np.float64)
                self._measurements.append(Measurement(item.clique, values, item.sigma))
                self.sizer.add(item.clique)

    def add_where_it_fits(
        self, marginals: Iterable[NoisyMarginal], room_for: Iterable[Clique] = ()
    ) -> None:
        """Take in earlier measurements, in order, leaving out what would pass the memory bound.

        Args:
            marginals: Measurements of earlier transcripts.
            room_for: Cliques that must still fit afterwards.
        """
        cliques: list[Clique] = [(column,) for column in self._domain]
        cliques += [item.clique for item in self._measurements]
        trial = ModelSizer(self._domain, [*cliques, *room_for])
        for item in marginals:
            if not item.clique or trial.size_with_mb(item.clique) <= self._max_model_mb:
                if item.clique:
                    trial.add(item.clique)
                self.add([item])

    def fit(self, effort: Effort) -> GraphicalModel:
        """Fit all measurements taken in so far, from the last fitted model on.

        Args:
            effort: How long it may take.

        Returns:
            The model, over the noisy row count.

        Privacy: post-processing.
        """
        self.model = estimate(
            self._domain,
            self._measurements,
            total=max(1.0, noisy_total(self._all)[0]),
            warm_start=self.model,
            iterations=effort.iterations,
            tolerance=effort.tolerance,
            backend=self._backend,
        )
        return self.model
