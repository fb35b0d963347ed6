"""The research tables with their exact pair counts, and interest queries drawn from them."""

from __future__ import annotations

import itertools
import random  # noqa: TID251 - draws queries, no noise
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from benchmarks.tables import Clique, mean_tv, pair_counts, read_codes
from include.synthesis import SynthesisTask

DELTA_EXPONENT = 9


class Table:
    """A research table with its exact pair counts; public data, so nothing here is paid for."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.codes, self.domain = read_codes(folder / f"{name}.csv", folder / f"{name}-domain.json")
        self.truth = pair_counts(self.codes, self.domain)

    def task(self, interest: Iterable[Clique] = (), **options: Any) -> SynthesisTask:
        """Build the task of a release with all two-way marginals as its workload."""
        return SynthesisTask.build(self.domain, interest=list(interest), options=options)

    def queries(self, seed: int, count: int) -> list[Clique]:
        """Draw interest queries from all pairs; a longer list of one seed begins with the shorter.

        Fewer come back where the table has fewer pairs.
        """
        pairs = list(itertools.combinations(self.domain, 2))
        random.Random(seed).shuffle(pairs)
        return pairs[:count]

    def model_tv(self, model: Any, pairs: list[Clique] | None = None) -> float:
        """Mean two-way TV of a model's marginals, over all pairs or some."""
        return mean_tv(self.truth, model.marginals(pairs or list(self.truth)), pairs)

    def rows_tv(self, rows: NDArray[Any], pairs: list[Clique] | None = None) -> float:
        """Mean two-way TV of synthetic rows."""
        return mean_tv(self.truth, pair_counts(rows, self.domain, pairs), pairs)


@lru_cache(maxsize=1)
def table(folder: Path, name: str) -> Table:
    """Read a table, or return the one just used."""
    return Table(folder, name)
