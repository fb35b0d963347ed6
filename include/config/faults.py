"""Turns pydantic's account of a fault into one sentence a steward can act on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from include.config.errors import ConfigError, quoted

Model = TypeVar("Model", bound=BaseModel)

_PLAIN = {
    "missing": "missing; add it",
    "string_type": "not text; write it in quotes",
    "bool_type": "not a truth value; write true or false",
    "bool_parsing": "not a truth value; write true or false",
    "int_type": "not a whole number; write it without quotes or decimals",
    "int_parsing": "not a whole number; write it without quotes or decimals",
    "int_from_float": "not a whole number; write it without decimals",
    "float_type": "not a number; write it without quotes",
    "float_parsing": "not a number; write it without quotes",
    "finite_number": "NaN or infinite; write a finite number",
    "list_type": "not a list; write [a, b, ...]",
    "tuple_type": "not a list; write [a, b, ...]",
    "dict_type": "not a block of keys; indent `key: value` lines under it",
    "string_too_short": "empty; write a value",
    "union_tag_not_found": "no type; add `type: category` or another type",
}


def build(model: type[Model], content: dict[str, Any], label: str) -> Model:
    """Build a model from the content of a file.

    Args:
        model: the configuration model the file must fit.
        content: what the YAML said.
        label: how the file is called in an error.

    Returns:
        The validated model.

    Raises:
        ConfigError: the first fault, with its key and its fix; says how many more there are.

    Privacy: ledger only.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        details = error.errors(include_url=False)
        # A union reports each branch; the branch that knows the fix speaks first.
        details.sort(key=lambda item: item["type"] != "declared")
        first = details[0]
        places = {_place(item["loc"]) for item in details}
        more = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
        raise ConfigError(label, _place(first["loc"]), _sentence(first) + more) from None
    except Exception as error:  # one file must never take the others down with it
        name = type(error).__name__
        raise ConfigError(
            label, "", f"cannot be understood ({name}); compare it with docs/configuration.md"
        ) from None


def _place(loc: Sequence[int | str]) -> str:
    """Return the dotted key, without the names pydantic gives to the branches of a union."""
    parts = list(loc)
    branch = {"columns": 2, "schedule": 1, "workload": 1, "constraints": 4, "options": 2}
    drop = branch.get(str(parts[0])) if parts else None
    if drop is not None and len(parts) > drop:
        del parts[drop]
    key = ""
    for part in parts:
        if part == "[key]":
            continue
        key += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if key else str(part)
    return key


def _sentence(item: ErrorDetails) -> str:
    kind = item["type"]
    if kind == "declared":
        return item["msg"]
    if kind in _PLAIN:
        return _PLAIN[kind]
    context = item.get("ctx", {})
    if kind == "literal_error":
        return f"{quoted(item['input'])} is not accepted; use {context.get('expected')}"
    if kind.startswith(("greater_than", "less_than")):
        bound = next(iter(context.values()), "")
        word = "at least" if kind.startswith("greater") else "at most"
        return f"{quoted(item['input'])} is out of range; it must be {word} {bound}"
    return f"{item['msg']}; correct the value"
