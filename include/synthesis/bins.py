"""Bins whose edges were selected privately: how declared cells are gathered, and spread again.

The declared cells of a column are a grid that no row has a part in. A selection that was paid for
names some of its edges; the cells between two of them are one bin for the rest of the measurement.
Rows are drawn in bins and then spread evenly over the declared cells inside.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from include.synthesis.model import Model


@dataclass(frozen=True)
class QuantileBins:
    """How many bins a column gets, from public numbers alone.

    Args:
        grid: Declared cells in their order: the first codes of the column.
        bins: Bins they are gathered in, from 2 to below `grid`.

    Privacy: ledger only.
    """

    grid: int
    bins: int

    def cells_of(self, cells: int) -> int:
        """Count the codes of the column once gathered; a missing level stays one of its own."""
        return cells - self.grid + self.bins


@dataclass(frozen=True)
class ColumnBins:
    """The bins of a column, as a transcript tells them.

    Args:
        column: Its name.
        grid: Declared cells in their order.
        cells: All codes of the column, a missing level among them.
        edges: First declared cell of every bin, rising; the first is 0.
        answered: Whether the selection was answered; otherwise the edges are evenly spread.

    Privacy: post-processing.
    """

    column: str
    grid: int
    cells: int
    edges: tuple[int, ...]
    answered: bool = True

    @property
    def ends(self) -> tuple[int, ...]:
        """The cell behind the last one of every bin."""
        return (*self.edges[1:], self.grid)

    @property
    def codes(self) -> int:
        """Codes once gathered: the bins, and levels behind the grid."""
        return len(self.edges) + self.cells - self.grid

    @property
    def gathered(self) -> tuple[int, ...]:
        """The bin of each code, shape (cells,); levels behind the grid follow the bins."""
        bins = [
            i
            for i, (a, b) in enumerate(zip(self.edges, self.ends, strict=True))
            for _ in range(a, b)
        ]
        return (*bins, *range(len(self.edges), self.codes))


def settled_edges(answers: Iterable[int], wanted: QuantileBins) -> tuple[int, ...]:
    """Make exactly the wanted number of bins of selected edges, whatever they are.

    Equal answers count once. What is then missing is filled by dividing evenly the widest gaps, so
    that the number of bins is public and no answer at all leaves equal bins.

    Args:
        answers: Selected edges, each from 1 to grid - 1, in any order.
        wanted: The number of bins, and the grid.

    Returns:
        First declared cell of every bin, rising, shape (bins,); the first is 0.

    Privacy: post-processing.
    """
    ends = [0, *sorted(set(answers)), wanted.grid]
    widths = [high - low for low, high in itertools.pairwise(ends)]
    parts = [1] * len(widths)
    for _ in range(wanted.bins - len(widths)):
        widest = max(range(len(widths)), key=lambda i: Fraction(widths[i], parts[i]))
        parts[widest] += 1
    return tuple(
        low + step * width // count
        for low, width, count in zip(ends, widths, parts, strict=False)
        for step in range(count)
    )


class SpreadModel:
    """A model over bins, read and sampled in the declared cells.

    Args:
        inner: The model over bins.
        domain: Declared cells of each column, in column order.
        bins: The columns that were gathered.

    Privacy: post-processing.
    """

    def __init__(self, inner: Model, domain: Mapping[str, int], bins: Sequence[ColumnBins]) -> None:
        self.inner = inner
        self.domain = dict(domain)
        self._bins = {item.column: item for item in bins}

    @property
    def total(self) -> float:
        """Noisy row count, at least 1."""
        return self.inner.total

    @property
    def size_mb(self) -> float:
        """Memory of the tables over bins, in MB of 2^20 bytes."""
        return self.inner.size_mb

    def marginal(self, clique: Iterable[str]) -> NDArray[np.float64]:
        """Compute expected counts in declared cells, shape (cells,), C order over `clique`."""
        import numpy as np

        names = tuple(clique)
        sizes = [self._bins[n].codes if n in self._bins else self.domain[n] for n in names]
        found = np.asarray(self.inner.marginal(names), dtype=np.float64).reshape(sizes)
        for axis, name in enumerate(names):
            if name in self._bins:
                code = np.asarray(self._bins[name].gathered)
                share = 1.0 / np.bincount(code)[code]
                shape = [-1 if i == axis else 1 for i in range(len(names))]
                found = found.take(code, axis=axis) * share.reshape(shape)
        return found.reshape(-1)

    def sample(self, rows: int, rng: np.random.Generator) -> NDArray[np.unsignedinteger]:
        """Draw rows in bins, then each cell evenly within its bin; see `Model.sample`."""
        import numpy as np

        drawn = self.inner.sample(rows, rng)
        codes = np.empty(
            drawn.shape, dtype=np.min_scalar_type(max(self.domain.values()) - 1), order="F"
        )
        for place, name in enumerate(self.domain):
            codes[:, place] = drawn[:, place]
            if name in self._bins:
                gathered = np.asarray(self._bins[name].gathered)
                first = np.searchsorted(gathered, np.arange(gathered.max() + 2))
                bins = drawn[:, place].astype(np.int64)
                codes[:, place] = rng.integers(first[bins], first[bins + 1])
        return codes


def gathered_domain(
    domain: Mapping[str, int], wanted: Mapping[str, QuantileBins]
) -> dict[str, int]:
    """Count the cells of each column once its bins are known: the same whatever they will be.

    Privacy: ledger only.
    """
    return {
        name: wanted[name].cells_of(cells) if name in wanted else cells
        for name, cells in domain.items()
    }


def selections(wanted: Mapping[str, QuantileBins]) -> int:
    """Count the edges that are selected: one less than bins, over all columns.

    Privacy: ledger only.
    """
    return sum(item.bins - 1 for item in wanted.values())
