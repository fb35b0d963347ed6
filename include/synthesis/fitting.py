"""From noisy marginals to a model: the one place where mechanisms meet the estimation engine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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

    def admissible(self, candidates: Sequence[Clique], limit_mb: float) -> list[Clique]:
        """Keep the candidates with any of which the model stays within a size.

        Most are settled without a triangulation: one exists in which every table grows by the
        candidate's columns but the largest. `settle` checks the one that is then selected.

        Args:
            candidates: Candidate cliques.
            limit_mb: Size the model may have with one of them.

        Returns:
            The admissible ones, in order.

        Privacy: post-processing.
        """
        open_cliques = [c for c in candidates if self._growth(c) * self.sizer.size_mb > limit_mb]
        if not open_cliques:
            return list(candidates)
        sizes = self.sizer.sizes_with_mb(open_cliques)
        too_large = {c for c, size in zip(open_cliques, sizes, strict=True) if size > limit_mb}
        return [clique for clique in candidates if clique not in too_large]

    def settle(self, selected: Clique) -> Clique:
        """Return a selected clique, or its first column should it break the memory bound after all.

        Privacy: post-processing.
        """
        return selected if self.sizer.size_with_mb(selected) <= self._max_model_mb else selected[:1]

    def _growth(self, clique: Clique) -> float:
        sizes = [self._domain[column] for column in clique]
        return math.prod(sizes) / max(sizes)

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
