"""The junction tree: maximal cliques, joined along their largest overlaps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from include.synthesis.estimation.elimination import adjacency, bits, eliminate, integer_logs
from include.synthesis.estimation.measurement import Clique

Columns = tuple[int, ...]


@dataclass(frozen=True)
class Node:
    """One maximal clique of the tree.

    Args:
        separator: columns shared with the parent, in the order of the parent's axes (a message
            then needs no transposition); empty at a root.
        rest: the other columns, ascending. The table's axes are `separator + rest`.
        parent: position of the parent in the tree, or -1.
        mask: all columns as a bit set.
        separator_cells: cells of the separator (1 when empty).
        rest_cells: cells of the rest.

    Privacy: ledger only.
    """

    separator: Columns
    rest: Columns
    parent: int
    mask: int
    separator_cells: int
    rest_cells: int

    @property
    def columns(self) -> Columns:
        """The axes of the table, in order."""
        return self.separator + self.rest

    @property
    def cells(self) -> int:
        """Cells of the table."""
        return self.separator_cells * self.rest_cells


class JunctionTree:
    """A forest of maximal cliques, parents before children.

    Args:
        domain: column name to number of cells.
        cliques: cliques every one of which must fit into a node.

    Source: Koller and Friedman 2009, section 10.4 (clique trees from triangulation).

    Privacy: ledger only.
    """

    def __init__(self, domain: Mapping[str, int], cliques: Iterable[Clique]) -> None:
        self.names = tuple(domain)
        self.index = {name: position for position, name in enumerate(self.names)}
        self.sizes = tuple(int(cells) for cells in domain.values())
        masks = [self.mask(clique) for clique in cliques]
        maximal = eliminate(adjacency(len(self.sizes), masks), integer_logs(self.sizes))
        self.nodes = self._span(maximal)
        self.children: list[list[int]] = [[] for _ in self.nodes]
        for position, node in enumerate(self.nodes):
            if node.parent >= 0:
                self.children[node.parent].append(position)
        self.signature = tuple((node.columns, node.parent) for node in self.nodes)
        self.top = {c: position for position, node in enumerate(self.nodes) for c in node.rest}

    @property
    def cells(self) -> int:
        """Cells of all tables together."""
        return sum(node.cells for node in self.nodes)

    def mask(self, clique: Iterable[str]) -> int:
        """Write a clique as a bit set of column positions."""
        return sum(1 << self.index[name] for name in clique)

    def columns(self, clique: Iterable[str]) -> Columns:
        """Translate names to column positions, keeping their order."""
        return tuple(self.index[name] for name in clique)

    def shape(self, columns: Iterable[int]) -> tuple[int, ...]:
        """Give the number of cells of each of some columns."""
        return tuple(self.sizes[column] for column in columns)

    def host(self, mask: int) -> int:
        """Find the smallest node that contains a clique, or -1.

        Args:
            mask: the clique as a bit set.
        """
        best, cells = -1, 0
        for position, node in enumerate(self.nodes):
            if mask & ~node.mask == 0 and (best < 0 or node.cells < cells):
                best, cells = position, node.cells
        return best

    def _span(self, maximal: Sequence[int]) -> list[Node]:
        """Join cliques by a maximum spanning forest, each tree rooted at its largest table."""
        cells = [math.prod(self.sizes[c] for c in bits(mask)) for mask in maximal]
        waiting = sorted(range(len(maximal)), key=lambda i: (-cells[i], maximal[i]))
        overlap = dict.fromkeys(waiting, 0)
        link = dict.fromkeys(waiting, -1)
        nodes: list[Node] = []
        while waiting:
            best = max(waiting, key=overlap.__getitem__)
            waiting.remove(best)
            parent = link[best]
            axes = nodes[parent].columns if parent >= 0 else ()
            shared = tuple(column for column in axes if maximal[best] >> column & 1)
            nodes.append(self._node(maximal[best], shared, parent))
            for other in waiting:
                size = (maximal[other] & maximal[best]).bit_count()
                if size > overlap[other]:
                    overlap[other], link[other] = size, len(nodes) - 1
        return nodes

    def _node(self, mask: int, separator: Columns, parent: int) -> Node:
        rest = tuple(column for column in bits(mask) if column not in separator)
        return Node(
            separator=separator,
            rest=rest,
            parent=parent,
            mask=mask,
            separator_cells=math.prod(self.shape(separator)),
            rest_cells=math.prod(self.shape(rest)),
        )
