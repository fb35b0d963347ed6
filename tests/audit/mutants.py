"""Deliberately broken mechanisms. The statistical audit must catch each; nothing else uses them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from include.synthesis import noise, selection
from include.synthesis.spending import OpenRound
from include.synthesis.transcript import NoisyMarginal


def argmax_structure(patch: pytest.MonkeyPatch) -> None:
    """Take the best parents, as the paper's greedy choice does: no noise on the selection."""
    patch.setattr(noise, "exponential_mechanism", lambda scores, s, e: int(np.argmax(scores)))


def raw_theta(patch: pytest.MonkeyPatch) -> None:
    """Test I(X, S) >= theta on exact tables, as the paper does."""
    honest = OpenRound.measure_laplace

    def measure(self: OpenRound, clique: tuple[str, ...], label: str) -> NoisyMarginal:
        found = honest(self, clique, label)
        if label != "region":
            return found
        counts = tuple(self._session._exact([clique])[0].tolist())
        self.marginals[-1] = NoisyMarginal(clique, found.sigma, counts, label, "laplace")
        return self.marginals[-1]

    patch.setattr(OpenRound, "measure_laplace", measure)


def noise_on_occupied_cells(patch: pytest.MonkeyPatch) -> None:
    """Leave empty cells empty: sparse tables, and the support of the data in the open."""
    honest = noise.discrete_laplace

    def sparse(counts: Any, scale: float) -> Any:
        return np.where(counts == 0, 0, honest(counts, scale))

    patch.setattr(noise, "discrete_laplace", sparse)


def noise_divided_by_n(patch: pytest.MonkeyPatch) -> None:
    """Calibrate noise for proportions and add it to counts."""
    honest = noise.discrete_laplace

    def small(counts: Any, scale: float) -> Any:
        return honest(counts, scale / max(int(np.sum(counts)), 1))

    patch.setattr(noise, "discrete_laplace", small)


def unsplit_budget(patch: pytest.MonkeyPatch) -> None:
    """Give every table the whole budget of the tables."""
    honest = noise.discrete_laplace

    def whole(counts: Any, scale: float) -> Any:
        return honest(counts, scale / 2)  # two tables share it

    patch.setattr(noise, "discrete_laplace", whole)


def raw_quantiles(patch: pytest.MonkeyPatch) -> None:
    """Take the exact quantiles as edges, for free."""
    honest = OpenRound.select_edge

    def exact(self: OpenRound, column: str, grid: int, part: int, parts: int) -> int:
        honest(self, column, grid, part, parts)
        counts = self._session._exact([(column,)])[0]
        edge = 1 + int(np.argmax(selection.quantile_scores(counts, grid, part, parts)))
        self.edges[-1] = (column, edge)
        return edge

    patch.setattr(OpenRound, "select_edge", exact)


MUTANTS = {
    "argmax structure": argmax_structure,
    "raw theta test": raw_theta,
    "noise on occupied cells only": noise_on_occupied_cells,
    "noise divided by n": noise_divided_by_n,
    "unsplit budget": unsplit_budget,
    "bins from raw quantiles": raw_quantiles,
}


@contextmanager
def broken(patch: pytest.MonkeyPatch, mutant: str | None) -> Iterator[None]:
    """Break the mechanism inside; None leaves it whole."""
    with patch.context() as inside:
        if mutant is not None:
            MUTANTS[mutant](inside)
        yield
