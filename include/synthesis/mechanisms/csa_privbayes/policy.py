"""Rounds of a network mechanism: count, bins, root, structure, regions, then tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from include.accounting import ONE, Event, ExponentialMechanism
from include.synthesis.mechanisms.base import Policy, Step
from include.synthesis.mechanisms.csa_privbayes.budget import (
    divide_tables,
    noisy_event,
    short_epsilon,
)
from include.synthesis.mechanisms.csa_privbayes.quantiles import LABEL, settled_bins
from include.synthesis.mechanisms.csa_privbayes.settings import Settings
from include.synthesis.mechanisms.csa_privbayes.structure import (
    candidates,
    completed,
    merged_tables,
    table_weights,
)
from include.synthesis.selection import Node
from include.synthesis.spending import OpenRound
from include.synthesis.task import Clique
from include.synthesis.transcript import Round

if TYPE_CHECKING:
    from include.synthesis.fitting import Fitter

WORST_PART = Fraction(1, 16)
"""After interruptions nothing is drawn with less than this part of its planned budget."""


class NetworkPolicy(Policy):
    """Names the next round; what interruptions burn is taken from the same part of the plan.

    Args:
        settings: The checked task.
        parameters: The plan's parameters.

    Privacy: post-processing.
    """

    def __init__(self, settings: Settings, parameters: Mapping[str, Any]) -> None:
        self._settings = settings
        self._parts = dict(parameters)
        others = len(settings.columns) - 1
        self._nodes: list[Node] = [] if settings.root is None else [(settings.root, ())]
        self._rows: float | None = settings.public_rows
        self._open = {name for name in ("total", "root", "region") if self._parts[name] is not None}
        # The columns of the selections of edges that are still to come, one entry each.
        self._edges_open = [
            name for name, item in settings.bins.items() for _ in range(1, item.bins)
        ]
        self._bin_rounds: list[Round] = []
        self._information: dict[str, float] | None = None
        self._measured: set[Clique] = set()
        self._structure_left = others * Fraction(self._parts["structure"])
        self._block_rho = Fraction(self._parts["block_rho_pico"], ONE)
        pure = self._parts["block_epsilon_pico"]
        self._block_epsilon = None if pure is None else Fraction(pure, ONE)
        self._known_burns = 0
        self._fitter = _fitter(settings) if settings.pgm else None

    def burn(self, events: Sequence[Event]) -> None:
        """Take a round that was begun and never answered out of its part."""
        self._known_burns += len(events)
        self._deduct(events)

    def absorb(self, turn: Round) -> None:
        """Take note of an answered round, and of burned ones that `burn` was not told of."""
        self._deduct([*turn.burned[self._known_burns :], *turn.events])
        self._known_burns = 0
        for choice in turn.choices:
            self._nodes.append((choice[0], choice[1:]))
            if self._fitter is not None:
                self._fitter.sizer.add(choice)
        if turn.edges:
            self._bin_rounds.append(turn)
        if turn.purpose == "total":
            self._rows = max(0.0, float(turn.marginals[0].counts[0]))
        if turn.purpose == "region":
            self._information = information(self._settings, turn)
        self._measured |= {item.clique for item in turn.marginals if item.label == "table"}

    def next(self, left: Fraction) -> Step | None:
        """Name the next round: count, bins, root, structure, regions, tables."""
        if "total" in self._open:
            event = noisy_event(self._settings, self._parts["total"], "total")
            return _measuring("total", [()], (event,))
        if self._edges_open:
            return self._edges()
        step = self._in_bins()
        if step is None or not self._settings.bins:
            return step
        bins = settled_bins(self._settings.bins, self._settings.task.domain, self._bin_rounds)
        return replace(step, cells={item.column: item.gathered for item in bins})

    def _edges(self) -> Step:
        """Select the edges of one column: its quantiles 1 / bins to (bins - 1) / bins."""
        column = self._edges_open[0]
        wanted = self._settings.bins[column]
        events = (ExponentialMechanism(self._parts[LABEL], LABEL),) * (wanted.bins - 1)

        def run(turn: OpenRound) -> None:
            for part in range(1, wanted.bins):
                turn.select_edge(column, wanted.grid, part, wanted.bins)

        return Step(LABEL, events, run)

    def _in_bins(self) -> Step | None:
        """Name the next round of those that see bins: root, structure, regions, tables."""
        settings = self._settings
        if "root" in self._open:
            root = ExponentialMechanism(self._parts["root"], "root")
            return Step("root", (root,), lambda turn: _ignore(turn.select_root(settings.columns)))
        if not self._nodes:
            self._nodes.append((settings.columns[0], ()))  # its selection was lost
        step = self._selection()
        if step is not None:
            return step
        if "region" in self._open:
            event = noisy_event(settings, self._parts["region"], "region")
            pairs = region_pairs(settings)
            return _measuring("region", pairs, (event,) * len(pairs))
        return self._table()

    def _selection(self) -> Step | None:
        missing = len(self._settings.columns) - len(self._nodes)
        if missing == 0:
            return None
        planned = Fraction(self._parts["structure"])
        epsilon = min(planned, self._structure_left / missing)
        if epsilon < planned * WORST_PART:
            return None
        event = ExponentialMechanism(short_epsilon(epsilon), "structure")
        pairs = self._candidates()
        return Step("structure", (event,), lambda turn: _ignore(turn.select_node(pairs)))

    def _candidates(self) -> list[Node]:
        rows = math.inf if self._rows is None else self._rows
        most = rows * float(self._parts["useful_cells_per_row"])
        pairs = candidates(self._settings, [child for child, _ in self._nodes], most)
        if self._fitter is None:
            return pairs
        cliques = [(child, *parents) for child, parents in pairs]
        fitting = set(self._fitter.admissible(cliques, self._settings.max_model_mb))
        kept = [pair for pair in pairs if (pair[0], *pair[1]) in fitting]
        with_one = {child for child, _ in kept}
        rest = completed(self._settings, [*self._nodes, *((name, ()) for name in with_one)])
        return kept + rest[len(self._nodes) + len(with_one) :]

    def _table(self) -> Step | None:
        settings = self._settings
        nodes = completed(settings, self._nodes)
        tables = merged_tables(settings, nodes)
        near = self._near()
        marks = table_weights(settings, nodes, tables, near)
        weights = [settings.weight if mark else Fraction(1) for mark in marks]
        waiting = [i for i, table in enumerate(tables) if table not in self._measured]
        if not waiting:
            return None
        pure = self._block_epsilon
        if self._hardly_anything_left([weights[i] for i in waiting], weights):
            return None
        amounts = divide_tables(settings, [weights[i] for i in waiting], pure, self._block_rho)
        event = noisy_event(settings, amounts[0], "table")
        return _measuring("table", [tables[waiting[0]]], (event,))

    def _hardly_anything_left(self, open_weights: list[Fraction], weights: list[Fraction]) -> bool:
        """Tell whether burned rounds left the open tables under the part worth drawing with."""
        if self._block_epsilon is None:
            squares = sum(w**2 for w in open_weights) / sum(w**2 for w in weights)
            planned = squares * Fraction(self._parts["block_rho_pico"], ONE)
            return self._block_rho < planned * WORST_PART**2
        planned = (
            sum(open_weights) / sum(weights) * Fraction(self._parts["block_epsilon_pico"], ONE)
        )
        return self._block_epsilon < planned * WORST_PART

    def _near(self) -> frozenset[str] | None:
        if self._information is None or self._settings.theta is None:
            return None
        theta = self._settings.theta
        return frozenset(name for name, told in self._information.items() if told >= theta)

    def _deduct(self, events: Sequence[Event]) -> None:
        for event in events:
            self._open.discard(event.label)
            if event.label == LABEL and self._edges_open:
                self._edges_open.pop(0)
            if event.label == "structure":
                self._structure_left -= event.epsilon_pure or 0
            elif event.label == "table":
                self._block_rho -= event.rho
                if self._block_epsilon is not None:
                    self._block_epsilon -= event.epsilon_pure or 0


def region_pairs(settings: Settings) -> list[Clique]:
    """List the tables that tell what each attribute knows of S.

    Privacy: ledger only.
    """
    place = {name: i for i, name in enumerate(settings.columns)}
    return [
        tuple(sorted((name, str(settings.sensitive)), key=place.__getitem__))
        for name in settings.columns
        if name != settings.sensitive
    ]


def information(settings: Settings, turn: Round) -> dict[str, float]:
    """Estimate the mutual information of each attribute with S from noisy tables.

    Args:
        settings: The checked task.
        turn: The answered round of the tables of `region_pairs`.

    Returns:
        Nats by attribute; 0 where the noise left nothing.

    Privacy: post-processing.
    """
    import numpy as np

    found = {}
    for item in turn.marginals:
        (name,) = (column for column in item.clique if column != settings.sensitive)
        shape = [settings.task.domain[column] for column in item.clique]
        joint = np.maximum(np.asarray(item.counts, dtype=np.float64), 0).reshape(shape)
        joint /= max(joint.sum(), 1.0)
        product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
        some = joint > 0
        found[name] = float((joint[some] * np.log(joint[some] / product[some])).sum())
    return found


def _measuring(label: str, cliques: Sequence[Clique], events: tuple[Event, ...]) -> Step:
    def run(turn: OpenRound) -> None:
        for clique, event in zip(cliques, events, strict=True):
            if event.epsilon_pure is None:
                turn.measure(clique, label)
            else:
                turn.measure_laplace(clique, label)

    return Step(label, events, run)


def _ignore(index: int) -> None:
    """The round keeps the choice itself; its index means nothing later."""


def _fitter(settings: Settings) -> Fitter:
    from include.synthesis.fitting import Fitter

    return Fitter(settings.task.domain, settings.max_model_mb, settings.estimator)
