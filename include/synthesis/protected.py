"""What a measurement is given: the protected table and the charge's journal, as it sees them.

The table is made by `include/data`, the journal by the operator; neither is imported here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from include.accounting import Event
from include.synthesis.task import Clique

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Cells = Mapping[str, Sequence[int]]
"""For columns whose cells are gathered in bins: the bin of each code."""


class ProtectedCounts(Protocol):
    """A protected table as the primitives see it; outside `spending()` it answers nothing."""

    @property
    def domain(self) -> Mapping[str, int]:
        """Cells of each column (public)."""

    @property
    def max_rows(self) -> int:
        """Enforced bound on the rows of one privacy unit (public)."""

    def spending(self) -> AbstractContextManager[Any]:
        """Open the table to a primitive."""

    def counts(self, clique: Clique) -> NDArray[np.int64]:
        """Count a marginal exactly: int64, shape (cells,), C order over `clique`."""

    def counts_many(self, cliques: Sequence[Clique]) -> Sequence[NDArray[np.int64]]:
        """Count several marginals in one pass."""

    def gathered(self, cells: Cells) -> ProtectedCounts:
        """Return the same rows with cells gathered in bins, as well protected."""


class RoundLog(Protocol):
    """The charge's journal, as the operator carries it across from the ledger."""

    def begin(self, round: int, events: Sequence[Event]) -> None:
        """Record durably what a round is about to spend."""

    def answer(self, round: int, payload: dict[str, Any]) -> None:
        """Record durably a round's noisy answer."""
