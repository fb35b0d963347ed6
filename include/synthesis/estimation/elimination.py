"""Greedy elimination on bit sets: the maximal cliques of a triangulated graph.

One rule decides everywhere: eliminate the column whose clique has the fewest cells, the first
column in domain order on a tie. Cells are compared by integer logarithms, so that two code paths
(one graph, a thousand candidate graphs at once) can never round a tie differently: the filter of
candidates promises a size that the junction tree then has.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_LOG_UNIT = 2**20


def integer_logs(sizes: Sequence[int]) -> list[int]:
    """Give each column's log2 of its cells as an integer multiple of 2^-20.

    Privacy: ledger only.
    """
    return [round(math.log2(size) * _LOG_UNIT) for size in sizes]


def bits(mask: int) -> list[int]:
    """List the positions of the set bits, ascending.

    Privacy: ledger only.
    """
    positions = []
    while mask:
        low = mask & -mask
        positions.append(low.bit_length() - 1)
        mask ^= low
    return positions


def adjacency(columns: int, masks: Iterable[int]) -> list[int]:
    """Connect the columns of each clique with each other.

    Args:
        columns: number of columns.
        masks: cliques as bit sets.

    Returns:
        For each column the bit set of its neighbours.

    Privacy: ledger only.
    """
    neighbours = [0] * columns
    for mask in masks:
        for column in bits(mask):
            neighbours[column] |= mask & ~(1 << column)
    return neighbours


@dataclass(frozen=True)
class State:
    """A graph on the way through its elimination.

    Args:
        alive: columns not yet eliminated, ascending.
        graph: neighbours of each column as bit sets, fill-in included.
        found: maximal cliques so far, as bit sets.
    """

    alive: tuple[int, ...]
    graph: tuple[int, ...]
    found: tuple[int, ...]


def eliminate(neighbours: Sequence[int], logs: Sequence[int]) -> tuple[int, ...]:
    """Triangulate by greedy elimination and return the maximal cliques.

    Args:
        neighbours: the graph, one bit set per column.
        logs: integer logarithms of the cells per column.

    Returns:
        Maximal cliques as bit sets, in elimination order.

    Source: the min-weight heuristic of Koller and Friedman 2009, section 9.4.3.2.

    Privacy: ledger only.
    """
    for state, _ in elimination(neighbours, logs):
        last = state
    return last.found


def elimination(
    neighbours: Sequence[int], logs: Sequence[int]
) -> Iterator[tuple[State, int | None]]:
    """Walk through the greedy elimination.

    Args:
        neighbours: the graph, one bit set per column.
        logs: integer logarithms of the cells per column.

    Yields:
        The state before each column's elimination, and that column; the last state with None.

    Privacy: ledger only.
    """
    graph = list(neighbours)
    costs = [logs[v] + sum(logs[u] for u in bits(graph[v])) for v in range(len(graph))]
    alive = list(range(len(graph)))
    found: tuple[int, ...] = ()
    while alive:
        column = min(alive, key=costs.__getitem__)
        yield State(tuple(alive), tuple(graph), found), column
        alive.remove(column)
        around = graph[column]
        clique = around | 1 << column
        if not any(clique & earlier == clique for earlier in found):
            found = (*found, clique)
        for other in bits(around):
            merged = (graph[other] | around) & ~(1 << other | 1 << column)
            added = merged & ~graph[other]
            costs[other] += sum(logs[u] for u in bits(added)) - logs[column]
            graph[other] = merged
    yield State((), tuple(graph), found), None
