"""What the later stages may ask of a fitted model, whatever mechanism made it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Model(Protocol):
    """A distribution over the declared domain, scaled to a noisy row count.

    Privacy: post-processing.
    """

    @property
    def total(self) -> float:
        """Rows the model stands for."""

    @property
    def size_mb(self) -> float:
        """Memory of its tables, in MB of 2^20 bytes."""

    def marginal(self, clique: Iterable[str]) -> NDArray[np.float64]:
        """Compute expected counts, shape (cells,), C order over `clique`, summing to the total."""

    def sample(self, rows: int, rng: np.random.Generator) -> NDArray[np.unsignedinteger]:
        """Draw codes, shape (rows, columns), columns in domain order."""
