"""The public domain of a dataset: which code stands for what. Built from declarations only."""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from include.config.columns import (
    OTHER,
    BooleanColumn,
    CategoryColumn,
    ColumnConfig,
    DateColumn,
    DateTimeColumn,
    FloatColumn,
    IntegerColumn,
    KeyColumn,
    Outside,
    count_periods,
)
from include.config.datasets import DatasetConfig
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
    declared = _labels(config)
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


def _labels(config: ColumnConfig) -> list[str]:
    if isinstance(config, CategoryColumn):
        return list(config.values)
    if isinstance(config, BooleanColumn):
        return ["false", "true"]
    if isinstance(config, IntegerColumn):
        return _bin_labels(config)
    if isinstance(config, FloatColumn):
        ends = [*config.lower_ends, config.max]
        return [f"{a:.12g} to {b:.12g}" for a, b in itertools.pairwise(ends)]
    if isinstance(config, DateColumn | DateTimeColumn):
        return [period_label(m, config.resolution) for m in period_starts(config)]
    raise CuSynError(f"a column of type {config.type} cannot be modelled; leave it out")


def _bin_labels(config: IntegerColumn) -> list[str]:
    lower = config.lower_ends
    upper = [*(end - 1 for end in lower[1:]), config.max]
    return [str(a) if a == b else f"{a} to {b}" for a, b in zip(lower, upper, strict=True)]


def period_starts(config: DateColumn | DateTimeColumn) -> list[dt.datetime]:
    """Return the first moment of each period between the declared bounds.

    Privacy: post-processing (declarations only).
    """
    moment = dt.datetime(config.min.year, config.min.month, config.min.day)
    if isinstance(config.min, dt.datetime):
        moment = config.min
    moment = _floor(moment, config.resolution)
    starts = []
    for _ in range(count_periods(config.min, config.max, config.resolution)):
        starts.append(moment)
        moment = _next(moment, config.resolution)
    return starts


def _floor(moment: dt.datetime, resolution: str) -> dt.datetime:
    if resolution == "minute":
        return moment.replace(second=0, microsecond=0)
    if resolution == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    day = dt.datetime(moment.year, moment.month, moment.day)
    if resolution == "day":
        return day
    month = {"month": moment.month, "quarter": (moment.month - 1) // 3 * 3 + 1, "year": 1}
    return day.replace(month=month[resolution], day=1)


def _next(moment: dt.datetime, resolution: str) -> dt.datetime:
    step = {"minute": dt.timedelta(minutes=1), "hour": dt.timedelta(hours=1)}
    if resolution in step or resolution == "day":
        return moment + step.get(resolution, dt.timedelta(days=1))
    months = (
        moment.year * 12 + moment.month - 1 + {"month": 1, "quarter": 3, "year": 12}[resolution]
    )
    return dt.datetime(months // 12, months % 12 + 1, 1)


def period_label(moment: dt.datetime, resolution: str) -> str:
    """Return a period's name: 2024, 2024-Q2, 2024-05, 2024-05-31 or 2024-05-31T14:00.

    Privacy: post-processing (declarations only).
    """
    if resolution == "year":
        return f"{moment.year}"
    if resolution == "quarter":
        return f"{moment.year}-Q{(moment.month - 1) // 3 + 1}"
    if resolution in ("month", "day"):
        return moment.strftime("%Y-%m" if resolution == "month" else "%Y-%m-%d")
    return moment.strftime("%Y-%m-%dT%H:%M")
