"""Great Expectations, run so that nothing but true or false comes out.

Its fuller results quote values, and its exception texts may: only the outcome of each rule is kept.
The import takes seconds, so it happens inside the call.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import pandas as pd


@dataclass(frozen=True)
class Rule:
    """One expectation and how it is called in the record.

    Args:
        column: the declared column; empty for the table as a whole.
        rule: short name the steward reads.
        kind: class name in `great_expectations.expectations`.
        arguments: its arguments besides the column.

    Privacy: ledger only.
    """

    column: str
    rule: str
    kind: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckResult:
    """The outcome of one rule: passed or not, and whether checking itself failed.

    Privacy: post-processing for rules on form; reads raw data for the rules of strict datasets.
    """

    column: str
    rule: str
    passed: bool
    raised: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON values."""
        return asdict(self)


def run_rules(frame: pd.DataFrame, rules: Sequence[Rule]) -> list[CheckResult]:
    """Check a table against rules with Great Expectations, boolean results only.

    Args:
        frame: the table; it is not changed.
        rules: expectations by name. A rule that cannot be evaluated counts as not passed.

    Returns:
        One result for each rule, in order.

    Privacy: reads the given table; the results hold no value of it.
    """
    if not rules:
        return []
    with _quiet():
        import great_expectations as gx

        context = gx.get_context(mode="ephemeral")
        _no_progress_bars(context)
        source = context.data_sources.add_pandas("table")
        batch_definition = source.add_dataframe_asset("frame").add_batch_definition_whole_dataframe(
            "whole"
        )
        batch = batch_definition.get_batch(batch_parameters={"dataframe": frame})
        return [_run(batch, rule) for rule in rules]


def _run(batch: Any, rule: Rule) -> CheckResult:
    import great_expectations.expectations as gxe

    arguments = dict(rule.arguments)
    if rule.column:
        arguments["column"] = rule.column
    try:
        outcome = batch.validate(getattr(gxe, rule.kind)(**arguments), result_format="BOOLEAN_ONLY")
        raised = bool((outcome.exception_info or {}).get("raised_exception", False)) or _nested(
            outcome.exception_info
        )
        return CheckResult(rule.column, rule.rule, bool(outcome.success), raised)
    except Exception:
        return CheckResult(rule.column, rule.rule, passed=False, raised=True)


def _nested(info: Any) -> bool:
    """Metric failures arrive as a dictionary of exceptions by metric."""
    if not isinstance(info, dict):
        return False
    return any(isinstance(v, dict) and v.get("raised_exception") for v in info.values())


def _no_progress_bars(context: Any) -> None:
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context.variables.progress_bars = ProgressBarsConfig(globally=False)


class _quiet:  # noqa: N801  (reads as a statement)
    """No analytics, no log lines and no warnings: any of them could carry a value."""

    def __enter__(self) -> None:
        os.environ["GX_ANALYTICS_ENABLED"] = "false"
        # A level is not enough: some of its modules set one of their own while they are imported,
        # and at WARNING a metric's error text still comes through.
        library = logging.getLogger("great_expectations")
        library.handlers, library.propagate = [logging.NullHandler()], False
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.simplefilter("ignore")

    def __exit__(self, *details: object) -> None:
        self._warnings.__exit__(None, None, None)
