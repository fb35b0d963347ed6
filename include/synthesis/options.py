"""The options of a release as its mechanism reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from include.options import OPTIONS, option_fault
from include.synthesis.task import TaskError


def read_options(given: Mapping[str, Any], mechanism: str) -> dict[str, Any]:
    """Check the options of a release against those of its mechanism.

    Args:
        given: What the release says.
        mechanism: Name of the mechanism.

    Returns:
        Every option of the mechanism with its value; names of columns as a list.

    Raises:
        TaskError: An option is unknown, of the wrong type or out of range.

    Privacy: ledger only.
    """
    for name, value in given.items():
        if fault := option_fault(mechanism, name, value):
            raise TaskError(f"options: {fault}" + ("" if fault.endswith("?") else "."))
    return {
        name: option.default if given.get(name) is None else _plain(given[name], option.kind)
        for name, option in OPTIONS[mechanism].items()
    }


def _plain(value: Any, kind: str) -> Any:
    if kind == "columns":
        return [value] if isinstance(value, str) else list(value)
    return dict(value) if kind == "counts" else value
