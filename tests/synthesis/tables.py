"""A small in-memory table that speaks the primitives' language, and a journal that remembers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from include.accounting import Event


class CountsTable:
    """Codes in memory; refuses to count outside `spending()`, as the protected table does."""

    def __init__(self, codes: np.ndarray, domain: Mapping[str, int], *, max_rows: int = 1) -> None:
        self.codes = np.asarray(codes, dtype=np.int64).reshape(-1, len(domain))
        self.domain = dict(domain)
        self.max_rows = max_rows
        self._open = False

    @contextmanager
    def spending(self) -> Iterator[None]:
        self._open = True
        try:
            yield
        finally:
            self._open = False

    def counts(self, clique: tuple[str, ...]) -> np.ndarray:
        if not self._open:
            raise RuntimeError("counted outside a spending primitive")
        names = list(self.domain)
        sizes = [self.domain[name] for name in clique]
        cell = np.zeros(len(self.codes), dtype=np.int64)
        for name, size in zip(clique, sizes, strict=True):
            cell = cell * size + self.codes[:, names.index(name)]
        return np.bincount(cell, minlength=int(np.prod(sizes)))

    def counts_many(self, cliques: Sequence[tuple[str, ...]]) -> list[np.ndarray]:
        return [self.counts(clique) for clique in cliques]

    def gathered(self, cells: Mapping[str, Sequence[int]]) -> CountsTable:
        if not self._open:
            raise RuntimeError("gathered outside a spending primitive")
        codes, domain = self.codes.copy(), dict(self.domain)
        for name, bins in cells.items():
            place = list(domain).index(name)
            codes[:, place] = np.asarray(bins)[codes[:, place]]
            domain[name] = max(bins) + 1
        return CountsTable(codes, domain, max_rows=self.max_rows)


class Journal:
    """A RoundLog that keeps everything; `crash_in` makes it die inside that round."""

    def __init__(self, *, crash_in: int | None = None) -> None:
        self.begun: dict[int, tuple[Event, ...]] = {}
        self.answers: list[dict[str, Any]] = []
        self.crash_in = crash_in

    def begin(self, round: int, events: Sequence[Event]) -> None:
        assert round not in self.begun
        assert round == max(self.begun, default=0) + 1
        self.begun[round] = tuple(events)

    def answer(self, round: int, payload: dict[str, Any]) -> None:
        assert round == max(self.begun)
        if round == self.crash_in:
            raise KeyboardInterrupt
        self.answers.append(payload)
