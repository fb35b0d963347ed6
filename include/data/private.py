"""Encoded rows behind a door that opens for a spending step only.

This is a guard against mistakes, not against an attacker who runs code in the process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from include.config.datasets import DatasetConfig
from include.data.decoding import decode_snapshot
from include.data.errors import PrivateReadError, without_values
from include.data.marginals import Counts, count_many
from include.data.schema import Schema

_CACHE_CELLS = 1 << 22  # counts kept for repeated questions: 32 MB
_OPEN_TO_ALL = frozenset(
    {"domain", "max_rows", "spending", "counts", "counts_many", "gathered", "__class__"}
)


class _Vault:
    """What a protected table holds; reachable from this module only."""

    def __init__(
        self, columns: Mapping[str, npt.NDArray[Any]], domain: Mapping[str, int], max_rows: int
    ) -> None:
        self.columns, self.domain, self.max_rows = dict(columns), dict(domain), max_rows
        self.open = 0
        self.cache: dict[tuple[str, ...], Counts] = {}


_VAULTS: WeakKeyDictionary[ProtectedTable, _Vault] = WeakKeyDictionary()


class ProtectedTable:
    """Encoded rows that answer nothing but counts, and those only while a charge is being spent.

    Length, iteration, printing, copying, pickling and any other attribute raise
    `PrivateReadError`: even the number of rows is secret.

    Privacy: reads raw data.
    """

    __slots__ = ("__weakref__",)

    @classmethod
    def from_snapshot(
        cls, path: Path, schema: Schema, dataset: DatasetConfig, key: bytes
    ) -> ProtectedTable:
        """Encode a snapshot and bound each privacy unit's rows.

        Args:
            path: the snapshot's Parquet file.
            schema: the declared domain of the columns to model.
            dataset: the declared dataset; its id column and row bound are enforced here.
            key: secret of the protected store; orders a unit's rows.

        Raises:
            CuSynError: the snapshot does not have the declared form, or cannot be read; no value
                of the rows is told.

        Privacy: reads raw data.
        """
        columns = without_values(
            lambda: decode_snapshot(Path(path), schema, dataset, key),
            PrivateReadError,
            "reading the protected snapshot",
        )
        return cls._sealed(columns, schema.domain, dataset.max_rows)

    @classmethod
    def from_codes(
        cls, codes: npt.NDArray[Any], domain: Mapping[str, int], max_rows: int = 1
    ) -> ProtectedTable:
        """Protect codes that are already in memory.

        Args:
            codes: codes, shape (rows, columns), columns in the order of `domain`.
            domain: cells of each column.
            max_rows: the largest number of rows one unit owns.

        Privacy: reads raw data.
        """
        columns = {name: np.ascontiguousarray(codes[:, i]) for i, name in enumerate(domain)}
        return cls._sealed(columns, domain, max_rows)

    @classmethod
    def _sealed(
        cls, columns: Mapping[str, npt.NDArray[Any]], domain: Mapping[str, int], max_rows: int
    ) -> ProtectedTable:
        table = cls()
        _VAULTS[table] = _Vault(columns, domain, max_rows)
        return table

    @property
    def domain(self) -> dict[str, int]:
        """Cells of each column; public."""
        return dict(_VAULTS[self].domain)

    @property
    def max_rows(self) -> int:
        """The largest number of rows one privacy unit can move; public."""
        return _VAULTS[self].max_rows

    @contextmanager
    def spending(self, token: object = None) -> Iterator[None]:
        """Open the table for the length of one spending step.

        Args:
            token: whatever identifies the opened charge; for the reader of the code only.

        Privacy: ledger only.
        """
        vault = _VAULTS[self]
        vault.open += 1
        try:
            yield
        finally:
            vault.open -= 1

    def counts(self, clique: tuple[str, ...]) -> Counts:
        """Count one marginal exactly; the caller must add noise before anything leaves it.

        Args:
            clique: distinct column names.

        Returns:
            int64 counts, shape (product of cells,), last column fastest (C order).

        Raises:
            PrivateReadError: outside `with table.spending()`, for an unknown column, or when
                counting fails (class name only).

        Privacy: reads raw data.
        """
        return self.counts_many([clique])[0]

    def counts_many(self, cliques: Sequence[tuple[str, ...]]) -> list[Counts]:
        """Count several marginals in one pass; see `counts`.

        Privacy: reads raw data.
        """
        vault = _VAULTS[self]
        if not vault.open:
            raise PrivateReadError(
                "counts were asked for outside a spending step; open the charge first"
            )
        wanted = [tuple(clique) for clique in cliques]
        for clique in wanted:
            _check(clique, vault.domain)
        return without_values(
            lambda: _count(vault, wanted), PrivateReadError, "counting protected rows"
        )

    def gathered(self, cells: Mapping[str, Sequence[int]]) -> ProtectedTable:
        """Return the same rows with the cells of some columns gathered in bins, each row by itself.

        Args:
            cells: for each such column the bin of every code, shape (cells,); bins count from 0.

        Returns:
            A protected table of its own, closed; columns that are not named share their memory.

        Raises:
            PrivateReadError: outside `with table.spending()`, or for an unknown column.

        Privacy: reads raw data.
        """
        vault = _VAULTS[self]
        if not vault.open:
            raise PrivateReadError(
                "rows were to be gathered outside a spending step; open the charge first"
            )
        _check(tuple(cells), vault.domain)
        return without_values(
            lambda: _gathered(vault, cells), PrivateReadError, "gathering protected rows in bins"
        )

    def __getattribute__(self, name: str) -> Any:
        if name in _OPEN_TO_ALL:
            return object.__getattribute__(self, name)
        return _refuse()

    def __repr__(self) -> str:
        _refuse()

    def __len__(self) -> int:
        _refuse()

    def __bool__(self) -> bool:
        _refuse()

    def __iter__(self) -> Iterator[Any]:
        _refuse()

    def __getitem__(self, item: object) -> Any:
        _refuse()

    def __contains__(self, item: object) -> bool:
        _refuse()

    def __format__(self, spec: str) -> str:
        _refuse()

    def __reduce_ex__(self, protocol: object) -> Any:
        _refuse()

    def __sizeof__(self) -> int:
        _refuse()

    def __dir__(self) -> list[str]:
        return sorted(_OPEN_TO_ALL - {"__class__"})


def _refuse() -> NoReturn:
    raise PrivateReadError(
        "protected rows answer nothing but counts inside a spending step; not even their number"
    )


def _check(clique: tuple[str, ...], domain: Mapping[str, int]) -> None:
    for name in clique:
        if name not in domain:
            raise PrivateReadError(f"'{name}' is not a column of the protected table")
    if len(set(clique)) != len(clique):
        raise PrivateReadError("a marginal names a column twice; name each once")


def _count(vault: _Vault, cliques: list[tuple[str, ...]]) -> list[Counts]:
    fresh = [clique for clique in dict.fromkeys(cliques) if clique not in vault.cache]
    found = dict(zip(fresh, count_many(vault.columns, vault.domain, fresh), strict=True))
    answer = [found[c] if c in found else vault.cache[c] for c in cliques]
    room = _CACHE_CELLS - sum(counts.size for counts in vault.cache.values())
    for clique, counts in found.items():
        room -= counts.size
        if room >= 0:
            vault.cache[clique] = counts
    return [counts.copy() for counts in answer]


def _gathered(vault: _Vault, cells: Mapping[str, Sequence[int]]) -> ProtectedTable:
    columns, domain = dict(vault.columns), dict(vault.domain)
    for name, bins in cells.items():
        columns[name] = np.asarray(bins, dtype=columns[name].dtype)[columns[name]]
        domain[name] = max(bins) + 1
    return ProtectedTable._sealed(columns, domain, vault.max_rows)
