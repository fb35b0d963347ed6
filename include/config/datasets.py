"""A dataset: where the rows come from, whom they are about, and what each column may hold."""

from __future__ import annotations

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

FORMATS = ("csv", "parquet")


class PrivacyUnit(ConfigModel):
    """Whose presence or absence is protected, and how many rows one of them may own.

    Privacy: ledger only.
    """

    what: str = "person"
    id_column: str | None = None
    max_rows: int = Field(default=1, ge=1, le=10_000)

    @model_validator(mode="before")
    @classmethod
    def _say_how_many_rows(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        if data.get("id_column") is None and "max_rows" not in data:
            fault(
                "nothing says how many rows one unit may own; add id_column (and max_rows), or "
                "write max_rows: 1 if every row is another unit"
            )
        return data

    @model_validator(mode="after")
    def _several_rows_need_an_id(self) -> PrivacyUnit:
        if self.max_rows > 1 and self.id_column is None:
            fault(
                f"max_rows is {self.max_rows} but no id_column says which rows belong together; "
                "add id_column, or set max_rows: 1 if every row is another "
                f"{quoted(self.what)}"
            )
        return self


class PopulationBinding(ConfigModel):
    """How one population is found in this dataset, where it differs from the privacy unit.

    Privacy: ledger only.
    """

    id_column: str | None = None
    max_rows: int = Field(default=1, ge=1, le=10_000)

    @model_validator(mode="after")
    def _several_rows_need_an_id(self) -> PopulationBinding:
        if self.max_rows > 1 and self.id_column is None:
            fault("max_rows above 1 needs an id_column; add the column that names the unit")
        return self


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
    expected_rows: int | None = Field(default=None, ge=1)
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
        for binding in self.bindings.values():
            column = self.columns.get(binding.id_column or "")
            if column is not None and not isinstance(column, KeyColumn):
                fault(
                    f"columns: {quoted(binding.id_column)} names the privacy unit and cannot be "
                    "modelled; declare it `type: key` or leave it out"
                )
        return self

    @model_validator(mode="after")
    def _one_enforced_bound(self) -> DatasetConfig:
        ids = sorted({b.id_column for b in self.bindings.values() if b.id_column is not None})
        if len(ids) > 1:
            fault(
                f"populations: the id columns {', '.join(map(quoted, ids))} cannot be bounded "
                "together (removing one unit may bring back any number of another's rows); keep "
                "one id_column and prepare the source so that the others own one row each"
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
        unit = PopulationBinding(
            id_column=self.privacy_unit.id_column, max_rows=self.privacy_unit.max_rows
        )
        return {name: binding or unit for name, binding in self.populations.items()}

    @property
    def id_column(self) -> str | None:
        """The column whose units' rows are bounded; None where each row is another unit."""
        return next((b.id_column for b in self.bindings.values() if b.id_column), None)

    @property
    def row_bound(self) -> int:
        """The number of rows kept of one unit, where an id column names it.

        Where populations share the id, the smallest of their bounds holds for all of them.
        """
        return min(
            (b.max_rows for b in self.bindings.values() if b.id_column is not None), default=1
        )

    @property
    def max_rows(self) -> int:
        """The largest number of rows one unit of any population may move; scales all noise.

        A population of one row a unit, beside one whose rows are truncated by an id, may move two:
        its own row, and one of the other unit's that is kept in its place.
        """
        ids = [binding.id_column is not None for binding in self.bindings.values()]
        return max(self.row_bound, 2 if any(ids) and not all(ids) else 1)

    def source_name(self, column: str) -> str:
        """Return the name a declared column has in the source."""
        declared = self.columns.get(column)
        return (declared.source_column if declared else None) or column
