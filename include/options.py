"""Options of the mechanisms: declared once, for the mechanisms and for the reader of YAML.

Standard library only: a release file's options are checked each time a DAG file is parsed.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


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

MWEM_PGM: dict[str, Option] = {
    "rounds": Option(
        None, "general rounds, T; the number of columns by default", low=0, high=500, whole=True
    ),
    "interest_share": INTEREST_SHARE,
    "max_model_mb": MAX_MODEL_MB,
    "estimator": ESTIMATOR,
}
AIM: dict[str, Option] = {
    "rounds": Option(
        None,
        "rounds the budget is first divided by; 16 a column, or 8 with interest queries",
        low=1,
        high=10_000,
        whole=True,
    ),
    "interest_share": INTEREST_SHARE,
    "max_model_mb": MAX_MODEL_MB,
    "estimator": ESTIMATOR,
}
_NETWORK: dict[str, Option] = {
    "degree": Option(
        None, "most parents of an attribute, k; 3 by default", low=1, high=8, whole=True
    ),
    "public_rows": Option(
        None,
        "public row count that sizes the tables; without it a noisy count is paid for",
        low=1,
        high=1e9,
        whole=True,
    ),
    "count_share": Option(0.02, "share paid for that noisy count", low=0.001, high=0.5),
    "structure_share": Option(
        None, "share for the structure; 0.3 (laplace) or 0.1 (gaussian)", low=0.01, high=0.9
    ),
    "root_share": Option(0.05, "share for selecting the first attribute", low=0.001, high=0.5),
    "quantile_bins": Option(
        None, "bins a column gets by private quantiles of its declared cells", kind="counts"
    ),
    "bin_share": Option(
        None, "share for selecting their edges; 0.1 by default", low=0.001, high=0.5
    ),
    "usefulness": Option(
        4, "cells must hold so many times their noise on average", low=0.1, high=1000
    ),
    "noise": Option("laplace", "noise of the tables", choices=("laplace", "gaussian")),
    "fit": Option("network", "how rows are made from the tables", choices=("network", "pgm")),
    "max_model_mb": MAX_MODEL_MB,
    "estimator": ESTIMATOR,
}
PRIVBAYES: dict[str, Option] = {
    "root": Option("first", "the first attribute", choices=("first", "selected")),
    **_NETWORK,
}
CSA_PRIVBAYES: dict[str, Option] = {
    "sensitive": Option(None, "the sensitive attribute", kind="column"),
    "also_sensitive": Option(None, "further attributes of region A", kind="columns"),
    "root": Option("sensitive", "the first attribute", choices=("sensitive", "selected")),
    "force_sensitive_parent": Option(
        False, "the sensitive attribute is a parent of every other", kind="switch"
    ),
    "sensitive_weight": Option(
        None, "weight r of region A's tables, region B's being 1; 0.5 by default", low=0.01, high=1
    ),
    "regions": Option(
        "structure", "how region A is found", choices=("structure", "noisy_information")
    ),
    "region_share": Option(0.1, "share for noisy tables that find it", low=0.001, high=0.5),
    "theta": Option(
        None, "information (nats) from which an attribute is in region A", low=0, high=10
    ),
    **_NETWORK,
}

OPTIONS: dict[str, dict[str, Option]] = {
    "mwem_pgm": MWEM_PGM,
    "aim": AIM,
    "csa_privbayes": CSA_PRIVBAYES,
    "privbayes": PRIVBAYES,
}
"""The options of each mechanism, by the name a release file uses."""


def option_fault(mechanism: str, name: str, value: Any) -> str:
    """Say what is wrong with one option of a release.

    Args:
        mechanism: Name of the mechanism.
        name: Name of the option.
        value: What the release says; None leaves the option out.

    Returns:
        "fault; fix" in one sentence without its full stop, or "" where all is well.

    Privacy: ledger only.
    """
    declared = OPTIONS[mechanism]
    option = declared.get(name)
    if option is None:
        near = difflib.get_close_matches(str(name), declared, n=1, cutoff=0.8)
        fix = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(declared)}"
        return f"{mechanism} has no option {str(name)[:60]!r}; {fix}"
    if value is None or _fits(option, value):
        return ""
    return f"{name} is {_shown(value)}; write {_wanted(option)}"


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _wanted(option: Option) -> str:
    if option.choices:
        return " or ".join(option.choices)
    kinds = {
        "switch": "true or false",
        "column": "the name of one column",
        "columns": "a list of columns",
        "counts": "columns with a whole number each, e.g. {age: 8}",
    }
    number = "a whole number" if option.whole else "a number"
    return kinds.get(option.kind) or f"{number} from {option.low:g} to {option.high:g}"


def _fits(option: Option, value: Any) -> bool:
    if option.choices:
        return value in option.choices
    if option.kind == "switch":
        return isinstance(value, bool)
    if option.kind == "column":
        return isinstance(value, str)
    if option.kind == "columns":
        names = [value] if isinstance(value, str) else value
        return isinstance(names, list | tuple) and all(isinstance(one, str) for one in names)
    if option.kind == "counts":
        whole = isinstance(value, Mapping) and all(type(number) is int for number in value.values())
        return whole and bool(value) and all(isinstance(one, str) for one in value)
    if isinstance(value, bool) or not isinstance(value, int if option.whole else int | float):
        return False
    return option.low <= value <= option.high
