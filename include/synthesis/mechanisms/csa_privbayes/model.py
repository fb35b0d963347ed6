"""The fitted network: conditional distributions in network order, marginals and rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from include.synthesis.estimation import EstimationError
from include.synthesis.estimation.sampling import draw_cells
from include.synthesis.mechanisms.csa_privbayes.consistency import Table, consistent, margin
from include.synthesis.mechanisms.csa_privbayes.settings import Settings
from include.synthesis.mechanisms.csa_privbayes.structure import completed
from include.synthesis.selection import Node
from include.synthesis.task import Clique
from include.synthesis.transcript import Transcript, noisy_total

FloatArray = NDArray[np.float64]
Factor = tuple[Clique, FloatArray]
_BYTES_PER_MB = 2**20


class NetworkModel:
    """A Bayesian network with a conditional table for each attribute.

    Args:
        domain: Cells of each column, in column order.
        nodes: All (child, parents) pairs, parents before their children.
        conditionals: For each pair P(child | parents), shape (parents' cells..., child's cells).
        total: Noisy row count, at least 1.

    Privacy: post-processing.
    """

    def __init__(
        self,
        domain: Mapping[str, int],
        nodes: Sequence[Node],
        conditionals: Sequence[FloatArray],
        total: float,
    ) -> None:
        self.domain = dict(domain)
        self.nodes = tuple(nodes)
        self.total = total
        self._conditionals = list(conditionals)

    @property
    def size_mb(self) -> float:
        """Memory of the conditional tables, in MB of 2^20 bytes."""
        return sum(table.nbytes for table in self._conditionals) / _BYTES_PER_MB

    def marginal(self, clique: Iterable[str]) -> FloatArray:
        """Compute a marginal by summing out ancestors, the cheapest first.

        Args:
            clique: Column names; the order gives the axes.

        Returns:
            Expected counts, shape (cells,), C order, summing to the total.

        Raises:
            EstimationError: A column is unknown or repeated.

        Privacy: post-processing.
        """
        names = tuple(clique)
        if len(set(names)) < len(names) or not set(names) <= set(self.domain):
            raise EstimationError("a marginal names an unknown column, or one twice")
        factors = self._ancestral(names)
        open_names = {name for columns, _ in factors for name in columns} - set(names)
        while open_names:
            costs = {name: self._cost(factors, name) for name in sorted(open_names)}
            gone = min(costs, key=costs.__getitem__)
            touched = [factor for factor in factors if gone in factor[0]]
            factors = [factor for factor in factors if gone not in factor[0]]
            joined = tuple(
                dict.fromkeys(name for columns, _ in touched for name in columns if name != gone)
            )
            factors.append((joined, self._product(touched, joined)))
            open_names.remove(gone)
        found = self._product(factors, names).reshape(-1)
        return np.asarray(found * (self.total / found.sum()), dtype=np.float64)

    def sample(self, rows: int, rng: np.random.Generator) -> NDArray[np.unsignedinteger]:
        """Draw synthetic rows attribute by attribute, in network order.

        Args:
            rows: How many, at least 0.
            rng: The only source of randomness.

        Returns:
            Codes, smallest unsigned type, shape (rows, columns), columns in domain order.

        Privacy: post-processing.
        """
        place = {name: i for i, name in enumerate(self.domain)}
        dtype = np.min_scalar_type(max(self.domain.values()) - 1)
        codes = np.zeros((rows, len(place)), dtype=dtype, order="F")
        for (child, parents), table in zip(self.nodes, self._conditionals, strict=True):
            group = np.zeros(rows, dtype=np.int64)
            for name in parents:
                group = group * self.domain[name] + codes[:, place[name]]
            if rows:
                square = table.reshape(-1, self.domain[child])
                codes[:, place[child]] = draw_cells(square, group, rng)
        return codes

    def _ancestral(self, names: Clique) -> list[Factor]:
        needed = set(names)
        factors: list[Factor] = []
        for (child, parents), table in zip(
            reversed(self.nodes), reversed(self._conditionals), strict=True
        ):
            if child in needed:
                needed |= set(parents)
                factors.append(((*parents, child), table))
        return factors

    def _cost(self, factors: Sequence[Factor], name: str) -> float:
        union = {column for columns, _ in factors if name in columns for column in columns}
        return float(np.prod([float(self.domain[column]) for column in union]))

    def _product(self, factors: Sequence[Factor], keep: Clique) -> FloatArray:
        """Multiply factors and sum out all columns but `keep`."""
        if not factors:
            return np.ones([self.domain[name] for name in keep])
        label: dict[str, int] = {}
        operands: list[object] = []
        for columns, table in factors:
            operands += [table, [label.setdefault(name, len(label)) for name in columns]]
        wanted = [label[name] for name in keep]
        return np.asarray(np.einsum(*operands, wanted, optimize="greedy"))  # type: ignore[call-overload]


def network_nodes(settings: Settings, transcript: Transcript) -> list[Node]:
    """Read the network off a transcript.

    Args:
        settings: The checked task.
        transcript: A finished measurement.

    Returns:
        All pairs, parents before children.

    Privacy: post-processing.
    """
    nodes: list[Node] = [
        (choice[0], choice[1:]) for turn in transcript.rounds for choice in turn.choices
    ]
    if all(turn.purpose != "root" for turn in transcript.rounds):
        nodes.insert(0, (settings.root or settings.columns[0], ()))
    return completed(settings, nodes)


def fit_network(settings: Settings, transcript: Transcript) -> NetworkModel:
    """Turn noisy tables into conditional distributions.

    Args:
        settings: The checked task.
        transcript: A finished measurement.

    Returns:
        The network; an attribute whose table was lost to interruptions is uniform.

    Source: CSAPrivBayes, steps 12 and 13, with consistency between the tables.

    Privacy: post-processing.
    """
    total = max(1.0, noisy_total(transcript.marginals)[0])
    domain = settings.task.domain
    tables = [
        Table(
            item.clique,
            np.asarray(item.counts, dtype=np.float64).reshape([domain[c] for c in item.clique]),
            item.sigma**2,
        )
        for item in transcript.marginals
        if item.label in ("table", "region")
    ]
    consistent(tables, domain, total)
    nodes = network_nodes(settings, transcript)
    conditionals = [_conditional(pair, tables, domain) for pair in nodes]
    return NetworkModel(domain, nodes, conditionals, total)


def _conditional(pair: Node, tables: Sequence[Table], domain: Mapping[str, int]) -> FloatArray:
    child, parents = pair
    wanted = {child, *parents}
    holders = [table for table in tables if wanted <= set(table.clique)]
    shape = [domain[name] for name in (*parents, child)]
    if not holders:
        return np.full(shape, 1.0 / domain[child])
    best = min(holders, key=lambda table: table.variance * table.values.size)
    joint = margin(best, (*parents, child))
    mass = joint.sum(axis=-1, keepdims=True)
    alone = joint.reshape(-1, domain[child]).sum(axis=0)
    # Where the noise left no mass for the parents the child is drawn as everywhere else.
    return np.where(mass > 0, joint / np.where(mass > 0, mass, 1.0), alone / alone.sum())
