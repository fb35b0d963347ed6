"""From noisy marginals to a model: the one place where mechanisms meet the estimation engine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from include.synthesis.estimation import GraphicalModel, Measurement, ModelSizer, estimate
from include.synthesis.estimation.model import Potentials
from include.synthesis.plan import noise_tv
from include.synthesis.task import Clique
from include.synthesis.transcript import NoisyMarginal, noisy_total


@dataclass(frozen=True)
class Effort:
    """How long a fit may take.

    Args:
        iterations: Most steps.
        tolerance: Fall of half the chi-square in ten steps that counts as done; of many measured
            cells, `TOLERANCE_PER_CELL` each counts as done as well.

    Privacy: post-processing.
    """

    iterations: int
    tolerance: float


ROUND = Effort(iterations=200, tolerance=1.0)
"""Between rounds: under 50 steps hurt selection; a finer tolerance changed nothing measured."""
FINAL = Effort(iterations=2000, tolerance=1.0)
"""What finer ones gain in fit is noise: a hundredth took twice as long, and errors were equal."""
TOLERANCE_PER_CELL = 2e-4
"""Of the half that noise alone gives a cell. On Salary, 50,000 cells: a third of the time."""
DEPTHS = (15, 20, 30, 40, 60, 100, 200)
"""Descent steps after which a fit to swamped measurements may stop."""
SWAMPED_TV = 0.2
"""Where noise moves less than this share of the rows in the mean measurement, fit to the end."""
MOST_PROBED_MB = 2.0
"""For larger models probing takes long."""
EARLIER_MB = 0.5
"""On Adult, as good as a model filled to 80 MB, in a tenth of its time (docs/mechanisms.md)."""
PROBES = 2
PROBE = 0.2  # length of a probe in noise scales: small against the noise, large against rounding


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

    def add_earlier(
        self, marginals: Iterable[NoisyMarginal], room_for: Iterable[Clique] = ()
    ) -> None:
        """Take in what earlier transcripts measured, the strongest dependences first.

        Comes before `add`, with the same arguments while measuring and for the release: what
        selection took as known is then in the released model as well. Every round fits the model
        anew, so earlier answers may make it larger only by `EARLIER_MB`.

        Args:
            marginals: Measurements of earlier transcripts.
            room_for: Cliques that must still fit afterwards.

        Privacy: post-processing.
        """
        trial = ModelSizer(self._domain, [*((column,) for column in self._domain), *room_for])
        limit = min(self._max_model_mb, trial.size_mb + EARLIER_MB)
        for item in sorted(marginals, key=self._dependence, reverse=True):
            if not item.clique or trial.size_with_mb(item.clique) <= limit:
                if item.clique:
                    trial.add(item.clique)
                self.add([item])

    def _dependence(self, item: NoisyMarginal) -> float:
        """Tell how far a marginal is from independent columns, its noise deducted, as a TV.

        A marginal of one column or none takes no memory and comes first.
        """
        if len(item.clique) < 2:
            return math.inf
        table = np.asarray(item.counts, dtype=np.float64)
        rows = max(1.0, float(table.sum()))
        table = table.reshape([self._domain[column] for column in item.clique])
        independent = np.array(rows)
        for axis in range(table.ndim):
            others = tuple(other for other in range(table.ndim) if other != axis)
            single = table.sum(axis=others).clip(0.0)
            independent = np.multiply.outer(independent, single / max(1.0, float(single.sum())))
        distance = float(np.abs(table - independent).sum()) / (2 * rows)
        return distance - noise_tv(item.sigma, table.size, rows)

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
        start = None if self.model is None else self.model.potentials
        self.model = None  # its tables are not needed beside those of the next one
        self.model = self._estimate(self._measurements, effort, start)
        return self.model

    def fit_for_release(self) -> GraphicalModel:
        """Fit from scratch, no deeper than the noise allows.

        Descent from the uniform distribution learns strong structure first and noise last. Where
        noise is weak it runs to the end; elsewhere it stops at the depth of least estimated risk.

        Returns:
            The model, over the noisy row count; equal for equal measurements.

        Source: Stein 1981 (unbiased risk estimate), with the divergence by random probes as in
            Ramani, Blu and Unser 2008.

        Privacy: post-processing.
        """
        self.model = None
        rows = self._rows()
        noise = [noise_tv(item.sigma, item.values.size, rows) for item in self._measurements]
        swamped = sum(noise) > SWAMPED_TV * len(noise)
        if not swamped or self.sizer.size_mb > MOST_PROBED_MB or self._backend != "numpy":
            return self._estimate(self._measurements, FINAL, None)
        probes = self._probes()
        best, least = None, math.inf
        for effort in (*(Effort(depth, 0.0) for depth in DEPTHS), FINAL):
            model = self._estimate(self._measurements, effort, None)
            risk = self._risk(model, effort, probes)
            if best is None or risk < least:
                best, least = model, risk
        assert best is not None
        return best

    def _estimate(
        self, measurements: list[Measurement], effort: Effort, start: Potentials | None
    ) -> GraphicalModel:
        cells = sum(item.values.size for item in measurements)
        tolerance = max(effort.tolerance, TOLERANCE_PER_CELL * cells) if effort.tolerance else 0.0
        return estimate(
            self._domain,
            measurements,
            total=self._rows(),
            warm_start=start,
            iterations=effort.iterations,
            tolerance=tolerance,
            backend=self._backend,
        )

    def _rows(self) -> float:
        return max(1.0, noisy_total(self._all)[0])

    def _probes(self) -> list[list[NDArray[np.float64]]]:
        """Draw fixed random signs for each measurement, to differentiate the fit along."""
        generator = np.random.Generator(np.random.PCG64(0))
        return [
            [generator.choice([-1.0, 1.0], item.values.size) for item in self._measurements]
            for _ in range(PROBES)
        ]

    def _risk(
        self,
        model: GraphicalModel,
        effort: Effort,
        probes: list[list[NDArray[np.float64]]],
    ) -> float:
        """Estimate the chi-square between model and truth, up to a constant."""
        fitted = [model.marginal(item.clique) for item in self._measurements]
        chi_square = sum(
            float((((item.values - values) / item.sigma) ** 2).sum())
            for item, values in zip(self._measurements, fitted, strict=True)
        )
        freedom = 0.0
        for signs in probes:
            moved = [
                Measurement(item.clique, item.values + PROBE * item.sigma * sign, item.sigma)
                for item, sign in zip(self._measurements, signs, strict=True)
            ]
            other = self._estimate(moved, effort, None)
            for item, sign, values in zip(self._measurements, signs, fitted, strict=True):
                change = other.marginal(item.clique) - values
                freedom += float((change * sign).sum()) / (PROBE * item.sigma)
        return chi_square + 2 * freedom / PROBES
