"""Marginals of the synthetic table and of noisy measurements, cell by cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from include.quality.facts import ColumnFacts, Measurement

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Z95 = 1.959963984540054  # two-sided 95% of the normal law


@dataclass(frozen=True)
class CellBar:
    """One cell of a marginal: its share in the synthetic table beside its noisy measurement.

    Privacy: post-processing.
    """

    labels: tuple[str, ...]
    synthetic: float
    measured: float | None = None
    low: float | None = None  # 95% interval of the measured share, from the noise
    high: float | None = None


class SyntheticTable:
    """The synthetic codes with their marginal shares, each computed once.

    Args:
        codes: synthetic rows, shape (rows, columns), codes in the order of `columns`.
        columns: the columns that have codes.

    Privacy: post-processing.
    """

    def __init__(self, codes: NDArray[np.integer[Any]], columns: Sequence[ColumnFacts]) -> None:
        self.codes = codes
        self.position = {column.name: i for i, column in enumerate(columns)}
        self.labels = {column.name: column.cells for column in columns}
        self._seen: dict[tuple[str, ...], NDArray[np.float64]] = {}

    def shape(self, clique: tuple[str, ...]) -> tuple[int, ...]:
        """Cells of each column of a clique."""
        return tuple(len(self.labels[name]) for name in clique)

    def share(self, clique: tuple[str, ...]) -> NDArray[np.float64]:
        """Normalised counts of a clique, flat in C-order; zeros when there are no rows."""
        import numpy as np

        if clique not in self._seen:
            shape = self.shape(clique)
            index = np.zeros(self.codes.shape[0], dtype=np.int64)
            for name, size in zip(clique, shape, strict=True):
                index = index * size + self.codes[:, self.position[name]]
            counts = np.bincount(index, minlength=math.prod(shape)).astype(np.float64)
            self._seen[clique] = counts / max(1, self.codes.shape[0])
        return self._seen[clique]

    def cell_labels(self, clique: tuple[str, ...], flat: int) -> tuple[str, ...]:
        """Labels of the cell at a flat C-order position."""
        import numpy as np

        place = np.unravel_index(flat, self.shape(clique))
        return tuple(self.labels[n][int(i)] for n, i in zip(clique, place, strict=True))


def measured_share(m: Measurement, total: float) -> NDArray[np.float64]:
    """Return a noisy marginal as shares of the noisy total, flat; zeros without a total.

    Privacy: post-processing.
    """
    import numpy as np

    counts = np.asarray(m.counts, dtype=np.float64)
    return counts / total if total > 0 else np.zeros_like(counts)


def total_variation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return half the L1 distance of two flat marginals, at most 1.

    Privacy: post-processing.
    """
    import numpy as np

    return float(min(1.0, 0.5 * np.abs(a - b).sum()))


def cell_bars(
    table: SyntheticTable,
    clique: tuple[str, ...],
    share: NDArray[np.float64],
    measured: NDArray[np.float64] | None,
    sigma: float,
    total: float,
) -> tuple[CellBar, ...]:
    """Return every cell of a clique for a plot.

    Args:
        table: the synthetic table, for the labels.
        clique: the columns.
        share: synthetic shares, shape (cells,).
        measured: measured shares, shape (cells,), or None.
        sigma: deviation of one measured cell, in rows.
        total: noisy number of rows.

    Returns:
        One bar per cell in C-order, with the 95% interval where measured.

    Privacy: post-processing.
    """
    bars = []
    half = Z95 * sigma / total if total > 0 else 0.0
    for flat, value in enumerate(share):
        labels = table.cell_labels(clique, flat)
        if measured is None or total <= 0:
            bars.append(CellBar(labels, float(value)))
            continue
        centre = float(measured[flat])
        bars.append(CellBar(labels, float(value), centre, centre - half, centre + half))
    return tuple(bars)
