"""Combinations of values that cannot occur, known from the world and never from the rows."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, model_validator

from include.config.base import ConfigModel, fault
from include.config.columns import (
    BooleanColumn,
    CategoryColumn,
    ColumnConfig,
    FloatColumn,
    IntegerColumn,
    KeyColumn,
)
from include.config.errors import did_you_mean, one_line, quoted
from include.config.labels import level_labels

Condition = dict[str, Any] | list[Any] | str | int | float | bool | None


def _conditions(value: Any) -> dict[str, Condition]:
    if not isinstance(value, dict) or len(value) < 2:
        fault(
            "an impossible combination names at least two columns; write "
            "never: {a: value, b: [value, value], c: {from: 0, to: 14}}"
        )
    return {str(name): condition for name, condition in value.items()}


class Constraint(ConfigModel):
    """A combination that never occurs: every listed column meets its condition at once.

    A condition is a value, a list of values, null for an empty cell, or {from: a, to: b} for the
    bins or periods between two levels.

    Privacy: ledger only.
    """

    never: Annotated[dict[str, Any], BeforeValidator(_conditions)]
    because: str | None = None

    @model_validator(mode="after")
    def _conditions_are_plain(self) -> Constraint:
        for name, condition in self.never.items():
            if isinstance(condition, list) and not condition:
                fault(f"{quoted(name)} has an empty list; name values or remove the column")
            if isinstance(condition, dict) and not set(condition) <= {"from", "to"}:
                fault(f"{quoted(name)} has an unknown condition; write {{from: a, to: b}}")
        return self


def levels_of(name: str, config: ColumnConfig, condition: Condition) -> frozenset[int | None]:
    """Return the levels of a column that meet a condition.

    Args:
        name: the column.
        config: its declaration.
        condition: as in `Constraint`.

    Returns:
        Codes of declared levels; None stands for the missing level.

    Raises:
        PydanticCustomError: a value is not a level, or a range cuts a bin in two.

    Privacy: ledger only.
    """
    if isinstance(condition, dict):
        return _range(name, config, condition)
    wanted = condition if isinstance(condition, list) else [condition]
    return frozenset(_level(name, config, value) for value in wanted)


def _level(name: str, config: ColumnConfig, value: Any) -> int | None:
    if value is None:
        if not config.nullable:
            fault(f"constraints: {quoted(name)} is not nullable, so it is never empty; remove null")
        return None
    labels = level_labels(config)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if isinstance(value, bool) != isinstance(config, BooleanColumn) or text not in labels:
        fault(
            f"constraints: {quoted(value)} is not a level of {quoted(name)}; "
            f"{did_you_mean(text, labels)}"
        )
    return labels.index(text)


def _range(name: str, config: ColumnConfig, ends: dict[str, Any]) -> frozenset[int | None]:
    if isinstance(config, CategoryColumn | BooleanColumn | KeyColumn):
        fault(f"constraints: {quoted(name)} has no order, so no from/to; list its values")
    if isinstance(config, IntegerColumn | FloatColumn):
        return _numeric_range(name, config, ends)
    labels = level_labels(config)
    first = _level(name, config, ends["from"]) if "from" in ends else 0
    last = _level(name, config, ends["to"]) if "to" in ends else len(labels) - 1
    return frozenset(range(first or 0, (last or 0) + 1))


def _numeric_range(
    name: str, config: IntegerColumn | FloatColumn, ends: dict[str, Any]
) -> frozenset[int | None]:
    low, high = ends.get("from", config.min), ends.get("to", config.max)
    for end in (low, high):
        if isinstance(end, bool) or not isinstance(end, int | float):
            fault(f"constraints: {quoted(end)} is not a number; write {{from: 0, to: 14}}")
    step = 1 if isinstance(config, IntegerColumn) else 0
    lower = list(config.lower_ends)
    bins = [(a, b - step) for a, b in zip(lower, [*lower[1:], config.max + step], strict=True)]
    for a, b in bins:
        inside = low <= a and b <= high
        apart = b < low or a > high or (step == 0 and (b <= low or a >= high))
        if not inside and not apart:
            fault(
                f"constraints: the range of {quoted(name)} cuts the bin from "
                f"{one_line(f'{a:g} to {b:g}')} in two; let it begin and end where bins do"
            )
    return frozenset(i for i, (a, b) in enumerate(bins) if low <= a and b <= high)
