"""The public domain of a dataset: which code stands for what. Built from declarations only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from include.config.columns import (
    OTHER,
    ColumnConfig,
    KeyColumn,
    Outside,
)
from include.config.datasets import DatasetConfig
from include.config.labels import level_labels
from include.errors import CuSynError

DROP = -1
"""The code of a cell whose whole row is left out."""


@dataclass(frozen=True)
class Column:
    """One modelled column: its levels in code order, and where stray cells go.

    Levels are first the declared ones, then `other` where declared and not among them, then the
    missing level where the column is nullable.

    Privacy: post-processing (declarations only).
    """

    name: str
    type: str
    labels: tuple[str, ...]
    declared: int  # how many of the levels are declared values, bins or periods
    nullable: bool
    outside: Outside
    other_code: int | None
    null_code: int | None
    config: ColumnConfig = field(repr=False)

    @property
    def levels(self) -> tuple[str, ...]:
        """The label of each code."""
        return self.labels

    @property
    def cardinality(self) -> int:
        """The number of codes."""
        return len(self.labels)

    @property
    def missing_cell(self) -> int:
        """The code of an empty cell; DROP leaves the row out."""
        if self.null_code is not None:
            return self.null_code
        return self.other_code if self.outside == "other" and self.other_code is not None else DROP

    @property
    def stray_cell(self) -> int:
        """The code of a cell that is not of the column's type or not a declared value."""
        if self.outside == "other" and self.other_code is not None:
            return self.other_code
        if self.outside in ("null", "clamp") and self.null_code is not None:
            return self.null_code
        return DROP


@dataclass(frozen=True)
class Schema:
    """The columns a release models, in order, and the keys that get fresh surrogates.

    Privacy: post-processing (declarations only).
    """

    columns: tuple[Column, ...]
    output: tuple[str, ...]  # names of the synthetic table's columns, surrogates included

    @classmethod
    def from_config(cls, dataset: DatasetConfig, columns: Iterable[str] | None = None) -> Schema:
        """Build the schema of a dataset, or of some of its columns.

        Args:
            dataset: the declared dataset.
            columns: names to model; all modelled columns when None. Order is the dataset's.

        Raises:
            CuSynError: a name is not a modelled column, or none is left.

        Privacy: post-processing (declarations only).
        """
        modelled = dataset.modelled_columns
        wanted = set(modelled) if columns is None else set(columns)
        for name in sorted(wanted - set(modelled)):
            raise CuSynError(f"'{name}' is not a modelled column of {dataset.dataset}; remove it")
        if not wanted:
            raise CuSynError("no column is left to model; name at least one")
        keys = (
            {n for n, c in dataset.columns.items() if _is_surrogate(c)}
            if columns is None
            else set()
        )
        return cls(
            columns=tuple(_column(n, c) for n, c in modelled.items() if n in wanted),
            output=tuple(n for n in dataset.columns if n in wanted or n in keys),
        )

    @property
    def domain(self) -> dict[str, int]:
        """Cells of each modelled column, in order."""
        return {column.name: column.cardinality for column in self.columns}

    @property
    def surrogates(self) -> tuple[str, ...]:
        """Key columns that are numbered afresh in the synthetic table."""
        modelled = self.domain
        return tuple(name for name in self.output if name not in modelled)

    @property
    def digest(self) -> str:
        """SHA-256 of the domain and policies, in hexadecimal."""
        body = [
            [c.name, c.type, list(c.labels), c.declared, c.outside, c.nullable]
            for c in self.columns
        ]
        text = json.dumps([body, list(self.output)], separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def column(self, name: str) -> Column:
        """Return one column by name.

        Raises:
            CuSynError: there is no such column.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise CuSynError(f"'{name}' is not a modelled column; correct the name")


def _is_surrogate(config: ColumnConfig) -> bool:
    return isinstance(config, KeyColumn) and config.replace == "surrogate"


def _column(name: str, config: ColumnConfig) -> Column:
    if isinstance(config, KeyColumn):
        raise CuSynError(f"'{name}' is a key and cannot be modelled; leave it out")
    declared = level_labels(config)
    labels = list(declared)
    other_code = None
    if config.outside_rule == "other":
        if OTHER not in labels:
            labels.append(OTHER)
        other_code = labels.index(OTHER)
    null_code = len(labels) if config.nullable else None
    if config.nullable:
        labels.append("")
    return Column(
        name=name,
        type=config.type,
        labels=tuple(labels),
        declared=len(declared),
        nullable=config.nullable,
        outside=config.outside_rule,
        other_code=other_code,
        null_code=null_code,
        config=config,
    )
