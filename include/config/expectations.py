"""The steward's own expectations: what each row must satisfy beyond the declared domain.

Only expectations that are decided row by row are accepted, so that they can be checked in chunks.
They are checked on every synthetic table, and on the raw rows of a dataset declared `strict`.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, model_validator

from include.config.base import ConfigModel, fault
from include.config.errors import did_you_mean, quoted

_BOUNDS = {"min_value", "max_value", "strict_min", "strict_max"}
KINDS: dict[str, tuple[str, set[str]]] = {
    # name in the file: class in Great Expectations, arguments besides the columns
    "values_between": ("ExpectColumnValuesToBeBetween", _BOUNDS),
    "values_in_set": ("ExpectColumnValuesToBeInSet", {"value_set"}),
    "values_not_in_set": ("ExpectColumnValuesToNotBeInSet", {"value_set"}),
    "values_match": ("ExpectColumnValuesToMatchRegex", {"regex"}),
    "values_not_null": ("ExpectColumnValuesToNotBeNull", set()),
    "lengths_between": ("ExpectColumnValueLengthsToBeBetween", {"min_value", "max_value"}),
    "a_greater_than_b": ("ExpectColumnPairValuesAToBeGreaterThanB", {"or_equal"}),
    "a_equal_to_b": ("ExpectColumnPairValuesToBeEqual", set()),
}
_PAIRS = {"a_greater_than_b", "a_equal_to_b"}


def _kind(value: Any) -> str:
    if not isinstance(value, str) or value not in KINDS:
        fault(f"unknown expectation {quoted(value)}; {did_you_mean(str(value), KINDS)}")
    return str(value)


class ExpectationConfig(ConfigModel):
    """One expectation by name, the column or pair it is about, and its arguments.

    Privacy: ledger only.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    expect: Annotated[str, BeforeValidator(_kind)]
    column: str | None = None
    column_a: str | None = None
    column_b: str | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _arguments_fit(self) -> ExpectationConfig:
        pair = self.expect in _PAIRS
        if pair != (self.column is None) or pair != bool(self.column_a and self.column_b):
            need = "column_a and column_b" if pair else "column"
            fault(f"{self.expect} is about {need}; name exactly that")
        allowed = KINDS[self.expect][1]
        for name in self.arguments:
            if name not in allowed:
                fault(
                    f"{self.expect} has no argument {quoted(name)}; {did_you_mean(name, allowed)}"
                )
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it is about."""
        named = (self.column, self.column_a, self.column_b)
        return tuple(name for name in named if name is not None)
