"""The fitted graphical model: marginals and rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from include.synthesis.estimation.junction import Columns, JunctionTree
from include.synthesis.estimation.marginals import MarginalReader
from include.synthesis.estimation.measurement import Clique, FloatArray, check_clique
from include.synthesis.estimation.propagation import Tables
from include.synthesis.estimation.sampling import Codes, sample_rows
from include.synthesis.estimation.sizing import BYTES_PER_CELL, BYTES_PER_MB


@dataclass(frozen=True, eq=False)
class Potentials:
    """What a later fit starts from: small, while a model holds a table per node.

    Args:
        domain: column name to number of cells, in column order.
        factors: columns and log table of each maximal measured clique.

    Privacy: post-processing.
    """

    domain: Mapping[str, int]
    factors: Sequence[tuple[Columns, FloatArray]]


class GraphicalModel:
    """A distribution over the domain that factors over a junction tree, scaled to a total.

    Args:
        domain: column name to number of cells, in column order.
        tree: the junction tree.
        conditionals: P(rest | separator) per node.
        separators: each node's separator marginal.
        factors: columns and log table of each maximal measured clique.
        total: number of rows the model stands for.
        loss: half the chi-square of the measurements it was fitted to.
        iterations: steps the fit took.

    Privacy: post-processing.
    """

    def __init__(
        self,
        domain: Mapping[str, int],
        tree: JunctionTree,
        conditionals: Tables,
        separators: Sequence[FloatArray],
        *,
        factors: Iterable[tuple[Columns, FloatArray]],
        total: float,
        loss: float,
        iterations: int,
    ) -> None:
        self.domain: dict[str, int] = dict(domain)
        self.tree = tree
        self.total = total
        self.loss = loss
        self.iterations = iterations
        self.factors = list(factors)
        self._conditionals = conditionals
        self._reader = MarginalReader(tree, conditionals, separators, total)

    @property
    def potentials(self) -> Potentials:
        """The starting point for a later fit; it keeps no table of the nodes alive."""
        return Potentials(self.domain, self.factors)

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The nodes of the junction tree, columns in domain order."""
        return tuple(
            tuple(self.tree.names[c] for c in sorted(node.columns)) for node in self.tree.nodes
        )

    @property
    def size_mb(self) -> float:
        """Megabytes (2^20 bytes) of one float64 table per node."""
        return self.tree.cells * BYTES_PER_CELL / BYTES_PER_MB

    def marginal(self, clique: Iterable[str]) -> FloatArray:
        """Compute the marginal of any columns, whether or not they were measured together.

        Args:
            clique: column names; the order gives the axes.

        Returns:
            Expected counts, float64, shape (cells,), C order, summing to the total.

        Raises:
            EstimationError: for an unknown or repeated column.

        Privacy: post-processing.
        """
        names = tuple(clique)
        return self.marginals([names])[names]

    def marginals(self, cliques: Iterable[Clique]) -> dict[Clique, FloatArray]:
        """Compute many marginals, sharing the partial sums along the tree.

        Args:
            cliques: column names per marginal.

        Returns:
            Marginal by clique, each as `marginal` gives it.

        Raises:
            EstimationError: for an unknown or repeated column.

        Privacy: post-processing.
        """
        answers: dict[Clique, FloatArray] = {}
        for clique in map(tuple, cliques):
            check_clique(self.domain, clique)
            answers[clique] = self._reader.read(self.tree.columns(clique))
        self._reader.forget()
        return answers

    def sample(self, rows: int, rng: np.random.Generator) -> Codes:
        """Draw synthetic rows with low-variance rounding.

        Args:
            rows: number of rows, at least 0.
            rng: the only source of randomness.

        Returns:
            Codes, smallest unsigned type, shape (rows, columns), columns in domain order.

        Privacy: post-processing.
        """
        return sample_rows(self.tree, self._conditionals, rows, rng)
