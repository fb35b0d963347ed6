"""A dataset: where the rows come from, whom they are about, and what each column may hold."""

from __future__ import annotations

import codecs
import itertools
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from include.config.base import (
    ColumnName,
    ConfigModel,
    Identifier,
    check_column_name,
    column_key,
    fault,
)
from include.config.columns import COLUMN_TYPES, ColumnConfig, KeyColumn
from include.config.constraints import Constraint, levels_of
from include.config.errors import did_you_mean, quoted
from include.config.expectations import ExpectationConfig
from include.config.scalars import WholeOrNone
from include.config.units import PopulationBinding, PrivacyUnit

FORMATS = ("csv", "parquet")
_NO_CHARACTER_SETS = ("idna", "punycode", "unicode-escape", "raw-unicode-escape")


class SourceConfig(ConfigModel):
    """Where the rows lie: a path (file, folder, s3://...) or a connection with a query or table.

    Privacy: ledger only.
    """

    path: str | None = None
    conn_id: str | None = None
    query: str | None = None
    table: str | None = None
    format: Literal["csv", "parquet"] | None = None
    encoding: str = "utf-8"
    delimiter: str = ","
    quote: str = '"'
    null_values: tuple[str, ...] = ("", "NA", "NaN", "nan", "NULL", "null", "None")

    @model_validator(mode="after")
    def _one_place(self) -> SourceConfig:
        if self.path is None and self.query is None and self.table is None:
            fault("no source is named; add path, or conn_id with query or table")
        if self.path is not None and (self.query or self.table):
            fault("path and query/table are both given; keep one")
        if self.query and self.table:
            fault("query and table are both given; keep one")
        if (self.query or self.table) and self.conn_id is None:
            fault("a query or table needs conn_id, the connection that holds the database")
        if not _is_character_set(self.encoding):
            fault(
                f"encoding: {quoted(self.encoding)} is no encoding of text; use utf-8, latin-1, "
                "cp1252 or another character set that Python knows"
            )
        for key in ("delimiter", "quote"):
            if len(getattr(self, key)) != 1 or not getattr(self, key).isascii():
                fault(f'{key} must be one ASCII character; a tab is written "\\t"')
        return self

    @model_validator(mode="after")
    def _format_known(self) -> SourceConfig:
        if self.path is not None and self.file_format is None:
            fault("the format cannot be told from the path; add `format: csv` or `format: parquet`")
        return self

    @property
    def file_format(self) -> str | None:
        """The declared format, or the one the path's ending tells; None for SQL."""
        if self.format or self.path is None:
            return self.format
        endings = [s.lstrip(".").lower() for s in PurePosixPath(self.path).suffixes]
        known = {"csv": "csv", "tsv": "csv", "txt": "csv", "parquet": "parquet", "pq": "parquet"}
        return next((known[e] for e in reversed(endings) if e in known), None)


def _is_character_set(name: str) -> bool:
    """Tell a character set from Python's other codecs, such as base64 or escapes."""
    try:
        "a".encode(name)
        return codecs.lookup(name).name not in _NO_CHARACTER_SETS
    except (LookupError, ValueError):
        return False


def _columns(value: Any) -> Any:
    if not isinstance(value, dict) or not value:
        fault("no columns are declared; add `name: {type: category, values: [...]}` lines")
    names = [check_column_name(name) for name in value]
    seen: dict[str, str] = {}
    for name in names:
        key = column_key(name)
        if key in seen:
            fault(f"the columns {quoted(seen[key])} and {quoted(name)} look the same; rename one")
        seen[key] = name
    for name, block in value.items():
        _check_type(name, block)
    return dict(zip(names, value.values(), strict=True))


def _check_type(name: str, block: Any) -> None:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind in ("text", "string", "free_text"):
        fault(
            f"{quoted(name)} is free text, which cannot be released; "
            "leave the column out or declare a category"
        )
    if isinstance(block, dict) and kind is None:
        fault(f"{quoted(name)} has no type; use one of: {', '.join(COLUMN_TYPES)}")
    if isinstance(block, dict) and kind not in COLUMN_TYPES:
        fault(
            f"{quoted(name)} has the unknown type {quoted(kind)}; "
            f"{did_you_mean(str(kind), COLUMN_TYPES)}"
        )


def _populations(value: Any) -> Any:
    if isinstance(value, list):
        if not all(isinstance(name, str) for name in value):
            fault("a population's name is not text; write populations: [name]")
        if len(set(value)) != len(value):
            fault("a population is listed twice; remove one")
        value = dict.fromkeys(value)
    if not isinstance(value, dict) or not value:
        fault("no population is named; write populations: [name], as declared in budgets.yaml")
    return value


def _listed(names: tuple[str, ...]) -> str:
    return " with ".join(map(quoted, names))


def _own(value: Any) -> Any:
    if isinstance(value, str):
        fault(f"the file {quoted(value)} was not read; list the expectations here instead")
    return value


class DatasetConfig(ConfigModel):
    """A table as the steward declares it.

    Privacy: ledger only.
    """

    dataset: Identifier
    populations: Annotated[
        dict[Identifier, PopulationBinding | None], BeforeValidator(_populations)
    ]
    privacy_unit: PrivacyUnit
    source: SourceConfig
    columns: Annotated[dict[str, ColumnConfig], BeforeValidator(_columns)]
    partition_columns: tuple[ColumnName, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    strict: bool = False
    reuse: Literal["off", "dataset"] = "off"  # may a release draw on earlier ones of its snapshot
    public_data: bool = False  # public or consented: exact figures may be computed, unregistered
    expected_rows: WholeOrNone = Field(default=None, ge=1)
    expectations: Annotated[tuple[ExpectationConfig, ...], BeforeValidator(_own)] = ()
    title: str | None = None
    description: str | None = None
    licence: str | None = None
    citation: str | None = None
    publisher: str | None = None
    contact: str | None = None

    @model_validator(mode="after")
    def _at_least_one_modelled(self) -> DatasetConfig:
        if not self.modelled_columns:
            fault("columns: every column is a key; declare at least one other column")
        for name in self.partition_columns:
            if name in self.columns:
                fault(f"partition_columns: {quoted(name)} is also a modelled column; keep one")
        return self

    @model_validator(mode="after")
    def _id_is_not_modelled(self) -> DatasetConfig:
        for name in self.id_columns:
            column = self.columns.get(name)
            if column is not None and not isinstance(column, KeyColumn):
                fault(
                    f"columns: {quoted(name)} names the privacy unit and cannot be "
                    "modelled; declare it `type: key` or leave it out"
                )
            if name in self.partition_columns:
                fault(
                    f"partition_columns: {quoted(name)} names the privacy unit and is left out of "
                    "a partition; read the column twice from the source under two names"
                )
        return self

    @model_validator(mode="after")
    def _units_lie_within_each_other(self) -> DatasetConfig:
        for (finer, _), (coarser, _) in itertools.pairwise(self.levels):
            if not set(coarser) < set(finer):
                both = [*coarser, *(name for name in finer if name not in coarser)]
                fault(
                    f"populations: units by {_listed(coarser)} and by {_listed(finer)} cannot be "
                    "bounded together (removing one may bring back any number of others' rows); "
                    f"where each of one kind lies within one of the other write id_column: "
                    f"[{', '.join(both)}] for the inner kind, else keep one id_column and prepare "
                    "the source so that the others own one row each"
                )
        return self

    @model_validator(mode="after")
    def _source_columns_differ(self) -> DatasetConfig:
        names = [self.source_name(name) for name in self.columns]
        for name in names:
            if names.count(name) > 1:
                fault(f"columns: two columns are read from {quoted(name)}; keep one")
        return self

    @model_validator(mode="after")
    def _no_value_means_missing(self) -> DatasetConfig:
        if self.source.file_format != "csv":
            return self
        for name, column in self.columns.items():
            for value in getattr(column, "values", ()):
                if value in self.source.null_values:
                    fault(
                        f"columns.{name}: the value {quoted(value)} is read as missing; list the "
                        'words that mean missing as source.null_values, such as [""]'
                    )
        return self

    @model_validator(mode="after")
    def _expectations_fit(self) -> DatasetConfig:
        for expectation in self.expectations:
            for name in expectation.columns:
                if name not in self.modelled_columns:
                    fault(
                        f"expectations: unknown column {quoted(name)}; "
                        f"{did_you_mean(name, self.modelled_columns)}"
                    )
        return self

    @model_validator(mode="after")
    def _constraints_fit(self) -> DatasetConfig:
        for constraint in self.constraints:
            for name, condition in constraint.never.items():
                if name not in self.modelled_columns:
                    fault(
                        f"constraints: unknown column {quoted(name)}; "
                        f"{did_you_mean(name, self.modelled_columns)}"
                    )
                levels_of(name, self.modelled_columns[name], condition)
        return self

    @property
    def modelled_columns(self) -> dict[str, ColumnConfig]:
        """The columns a release may model: all but keys, in declared order."""
        return {n: c for n, c in self.columns.items() if not isinstance(c, KeyColumn)}

    @property
    def bindings(self) -> dict[str, PopulationBinding]:
        """For each population its id column and row bound; the privacy unit's where not given."""
        return {name: binding or self.unit_binding for name, binding in self.populations.items()}

    @property
    def unit_binding(self) -> PopulationBinding:
        """The privacy unit's id column and row bound."""
        return PopulationBinding(
            id_column=self.privacy_unit.id_column, max_rows=self.privacy_unit.max_rows
        )

    @property
    def levels(self) -> tuple[tuple[tuple[str, ...], int], ...]:
        """For each kind of unit its id columns and the rows kept of one, the innermost first.

        Where populations share their id, the smallest of their bounds holds for all of them.
        """
        bounds: dict[tuple[str, ...], int] = {}
        for binding in self.bindings.values():
            if ids := binding.id_columns:
                bounds[ids] = min(binding.max_rows, bounds.get(ids, binding.max_rows))
        return tuple(sorted(bounds.items(), key=lambda level: (-len(level[0]), level)))

    @property
    def id_columns(self) -> tuple[str, ...]:
        """All columns that name units, none where each row is another unit."""
        return tuple(sorted({name for ids, _ in self.levels for name in ids}))

    @property
    def max_rows(self) -> int:
        """The largest number of rows one unit of any population may move; scales all noise.

        A unit within a larger one, or of one row beside one with an id, may move twice what is kept
        of it: its own rows, and as many of the larger unit's that are kept in their place.

        Source: docs/guarantee.md, step 1.
        """
        bounds = [bound for _, bound in self.levels]
        if any(not binding.id_columns for binding in self.bindings.values()):
            bounds.insert(0, 1)
        inner = [2 * min(bounds[i:]) for i in range(len(bounds) - 1)]
        return max(bounds[-1], *inner) if inner else bounds[-1]

    def source_name(self, column: str) -> str:
        """Return the name a declared column has in the source."""
        declared = self.columns.get(column)
        return (declared.source_column if declared else None) or column
