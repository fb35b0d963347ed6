"""Options of a mechanism: declared once, checked by name, type and range before planning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from include.synthesis.task import TaskError


@dataclass(frozen=True)
class Option:
    """One option of a mechanism.

    Args:
        default: Value where the release says nothing; None means the mechanism decides.
        low: Smallest number accepted.
        high: Largest number accepted.
        whole: Whether it must be an integer.
        choices: Accepted words, for an option that is no number.
        kind: switch (true or false), column, columns or counts (a whole number for each of some
            columns), for an option that is none of these.
        about: One line for forms and documentation.

    Privacy: ledger only.
    """

    default: Any
    about: str
    low: float = 0
    high: float = 0
    whole: bool = False
    choices: tuple[str, ...] = ()
    kind: str = ""


MAX_MODEL_MB = Option(80, "memory of the fitted model's tables, in MB", low=1, high=4096)
ESTIMATOR = Option("numpy", "the engine that fits the model", choices=("numpy", "private_pgm"))
INTEREST_SHARE = Option(
    None, "share of the budget kept for the interest queries", low=0.01, high=0.99
)


def read_options(
    declared: Mapping[str, Option], given: Mapping[str, Any], mechanism: str
) -> dict[str, Any]:
    """Check the options of a release against those its mechanism declares.

    Args:
        declared: The mechanism's options by name.
        given: What the release says.
        mechanism: Name of the mechanism, for the error sentence.

    Returns:
        Every declared option with its value, numbers as int or float.

    Raises:
        TaskError: An option is unknown, of the wrong type or out of range.

    Privacy: ledger only.
    """
    for name in given:
        if name not in declared:
            raise TaskError(
                f"options: {mechanism} has no option {name!r}; it has {', '.join(declared)}."
            )
    return {
        name: _checked(name, option, given[name]) if given.get(name) is not None else option.default
        for name, option in declared.items()
    }


def _checked(name: str, option: Option, value: Any) -> Any:
    if option.choices:
        if value not in option.choices:
            raise TaskError(f"options: {name} is one of {', '.join(option.choices)}.")
        return value
    if option.kind:
        return _checked_kind(name, option.kind, value)
    kinds = int if option.whole else int | float
    if isinstance(value, bool) or not isinstance(value, kinds):
        kind = "an integer" if option.whole else "a number"
        raise TaskError(f"options: {name} is {kind} from {option.low:g} to {option.high:g}.")
    if not option.low <= value <= option.high:
        raise TaskError(f"options: {name} is {value:g}; {option.low:g} to {option.high:g} is fine.")
    return value


def _checked_kind(name: str, kind: str, value: Any) -> Any:
    if kind == "switch" and not isinstance(value, bool):
        raise TaskError(f"options: {name} is true or false.")
    if kind == "column" and not isinstance(value, str):
        raise TaskError(f"options: {name} is the name of one column.")
    if kind == "columns":
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not all(isinstance(one, str) for one in names):
            raise TaskError(f"options: {name} is a list of columns.")
        return list(names)
    if kind == "counts":
        whole = isinstance(value, Mapping) and all(type(number) is int for number in value.values())
        if not whole or not value or not all(isinstance(one, str) for one in value):
            raise TaskError(f"options: {name} gives columns a whole number each, e.g. {{age: 8}}.")
        return dict(value)
    return value
