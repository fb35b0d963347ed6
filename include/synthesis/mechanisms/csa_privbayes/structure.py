"""Which parents may be chosen, which tables a network needs, and in which region they lie."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from include.synthesis.mechanisms.csa_privbayes.settings import Settings
from include.synthesis.selection import Node
from include.synthesis.task import Clique

MAX_PAIRS = 10_000
"""Most candidate pairs of one step; beyond, the step does with fewer parents."""


def candidates(settings: Settings, placed: Sequence[str], most_cells: float) -> list[Node]:
    """List the pairs (child, parents) of which one joins the network.

    A parent set is maximal: of at most k attributes, such that the table is useful, and no further
    attribute could join it.

    Args:
        settings: The checked task.
        placed: The attributes already in the network.
        most_cells: Cells up to which a table is useful (public, or from a noisy count).

    Returns:
        Pairs, at least one for each attribute not yet placed; parents in domain order.

    Source: Zhang, Cormode, Procopiuc, Srivastava and Xiao 2017 (PrivBayes), section 4.4,
        theta-usefulness and maximal parent sets.

    Privacy: post-processing.
    """
    inside = set(placed)
    order = [name for name in settings.columns if name in inside]
    open_children = [name for name in settings.columns if name not in inside]
    degree = _degree_within(settings.degree, len(order), len(open_children))
    found = []
    for child in open_children:
        most = min(most_cells, settings.max_cells) / settings.task.domain[child]
        found += [(child, parents) for parents in _maximal(settings, order, degree, most)]
    return found


def _degree_within(degree: int, placed: int, children: int) -> int:
    degree = min(degree, placed)
    while (
        degree > 1 and children * sum(math.comb(placed, j) for j in range(degree + 1)) > MAX_PAIRS
    ):
        degree -= 1
    return degree


def _maximal(
    settings: Settings, order: Sequence[str], degree: int, most: float
) -> Iterator[Clique]:
    domain = settings.task.domain
    forced = settings.sensitive if settings.forced else None
    least = 0 if forced is None else 1
    for size in range(degree, least - 1, -1):
        for parents in itertools.combinations(order, size):
            if forced is not None and forced not in parents:
                continue
            cells = math.prod(domain[name] for name in parents)
            if size > least and cells > most:
                continue
            grows = size < degree and any(
                cells * domain[name] <= most for name in order if name not in parents
            )
            if not grows:
                yield parents


def completed(settings: Settings, nodes: Sequence[Node]) -> list[Node]:
    """Give attributes whose selection was lost to interruptions the parents that need none.

    Args:
        settings: The checked task.
        nodes: The selected pairs in order, the root first.

    Returns:
        All attributes, each once.

    Privacy: post-processing.
    """
    placed = {child for child, _ in nodes}
    alone: Clique = (settings.sensitive,) if settings.forced and settings.sensitive else ()
    return [*nodes, *((name, alone) for name in settings.columns if name not in placed)]


def merged_tables(settings: Settings, nodes: Sequence[Node]) -> list[Clique]:
    """List the tables a network needs: one a node, those inside another left out.

    Args:
        settings: The checked task.
        nodes: All pairs in network order.

    Returns:
        Cliques in domain order, each once, in network order.

    Privacy: post-processing.
    """
    place = {name: i for i, name in enumerate(settings.columns)}
    cliques = [tuple(sorted((child, *parents), key=place.__getitem__)) for child, parents in nodes]
    unique = list(dict.fromkeys(cliques))
    return [one for one in unique if not any(set(one) < set(other) for other in unique)]


def table_weights(
    settings: Settings, nodes: Sequence[Node], tables: Sequence[Clique], near: frozenset[str] | None
) -> list[int]:
    """Tell the region of each table: 1 for A (weight r), 0 for B (weight 1).

    Args:
        settings: The checked task.
        nodes: All pairs in network order.
        tables: The merged tables.
        near: Attributes whose noisy information on S reached theta; None where the structure
            decides: then a table is in A when S is in it.

    Returns:
        One mark a table: of the pairs merged into it any in A puts it there.

    Privacy: post-processing.
    """
    marks = []
    for table in tables:
        inside = [pair for pair in nodes if {pair[0], *pair[1]} <= set(table)]
        # The histogram of S alone lies inside every table with S: it must not decide for them.
        own = [pair for pair in inside if pair[1] or len(table) == 1 or near is None]
        marks.append(int(any(_in_region_a(settings, pair, near) for pair in own)))
    return marks


def _in_region_a(settings: Settings, pair: Node, near: frozenset[str] | None) -> bool:
    child, parents = pair
    if settings.sensitive is None:
        return False
    if child in settings.tagged or child == settings.sensitive:
        return True
    return settings.sensitive in parents if near is None else child in near
