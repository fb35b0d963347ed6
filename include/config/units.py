"""Whose presence is protected: how a unit's rows are found, and how many of them count."""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from include.config.base import ConfigModel, fault
from include.config.errors import quoted
from include.config.scalars import Whole


def _id_column(value: Any) -> Any:
    """Accept a column, or the list of columns that name a unit together."""
    if not isinstance(value, list | tuple):
        return value
    if not value or not all(isinstance(name, str) for name in value):
        fault(
            "id_column is an empty list or holds what is not text; name the columns, as in [a, b]"
        )
    if len(set(value)) != len(value):
        fault("id_column lists a column twice; remove one")
    return value[0] if len(value) == 1 else tuple(value)


IdColumn = Annotated[str | tuple[str, ...] | None, BeforeValidator(_id_column)]


class PrivacyUnit(ConfigModel):
    """Whose presence or absence is protected, and how many rows one of them may own.

    Privacy: ledger only.
    """

    what: str = "person"
    id_column: IdColumn = None
    max_rows: Whole = Field(default=1, ge=1, le=10_000)

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

    id_column: IdColumn = None
    max_rows: Whole = Field(default=1, ge=1, le=10_000)

    @model_validator(mode="after")
    def _several_rows_need_an_id(self) -> PopulationBinding:
        if self.max_rows > 1 and self.id_column is None:
            fault("max_rows above 1 needs an id_column; add the column that names the unit")
        return self

    @property
    def id_columns(self) -> tuple[str, ...]:
        """The columns whose values name a unit together, by name; none where each row is one."""
        if self.id_column is None or isinstance(self.id_column, str):
            return () if self.id_column is None else (self.id_column,)
        return tuple(sorted(self.id_column))

    @property
    def id_text(self) -> str | None:
        """The id as the ledger registers it: a column's name, or a JSON list of several."""
        names = self.id_columns
        return json.dumps(names, ensure_ascii=False) if len(names) > 1 else next(iter(names), None)
