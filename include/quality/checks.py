"""Great Expectations on the synthetic table: does it keep the declared schema?

The table is a published output, so its values may be quoted; the raw data are never opened here.
A passed check does not say that the table resembles the data: see `fidelity`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from include.errors import CuSynError
from include.quality.facts import CheckOutcome, ColumnFacts

if TYPE_CHECKING:
    import pandas as pd

# What pandas may call the declared types; nullable integers stay integers.
DTYPES: dict[str, tuple[str, ...]] = {
    "category": ("str", "string", "object", "category"),
    "boolean": ("bool", "boolean"),
    "integer": ("Int64", "Int32", "Int16", "Int8", "int64", "int32", "int16", "int8"),
    "float": ("Float64", "float64"),
    "key": ("Int64", "int64"),
    "date": ("datetime64[s]", "datetime64[us]", "datetime64[ns]", "str", "object"),
    "datetime": ("datetime64[s]", "datetime64[us]", "datetime64[ns]", "str", "object"),
}


SLICE_ROWS = 200_000
# Rules that need all rows at once; the others hold row by row.
_WHOLE = {
    "ExpectTableColumnCountToEqual",
    "ExpectTableRowCountToEqual",
    "ExpectColumnValuesToBeUnique",
}


class QualityError(CuSynError):
    """The quality check itself could not be carried out."""


def check_synthetic(
    frame: pd.DataFrame, columns: Sequence[ColumnFacts], *, expected_rows: int | None = None
) -> list[CheckOutcome]:
    """Check a synthetic table against its declared schema.

    Args:
        frame: the synthetic table, decoded.
        columns: the declared columns, in the order of the release.
        expected_rows: rows the public or noisy row-count rule asks for; None skips the rule.

    Returns:
        One outcome per rule, table rules first. A rule that could not be evaluated counts as
        failed and is marked `raised`.

    Privacy: post-processing.
    """
    outcomes = [
        CheckOutcome(None, "columns are the declared ones, in order", _same_names(frame, columns))
    ]
    if not outcomes[0].passed:
        return outcomes
    # Great Expectations addresses columns by name; positions keep any script and any quoting apart.
    positions = [f"c{i}" for i in range(len(columns))]
    outcomes += [_type_outcome(frame.iloc[:, i], column) for i, column in enumerate(columns)]
    plan: list[tuple[str | None, Rule]] = [
        (None, rule) for rule in _table_rules(positions, expected_rows)
    ]
    for position, column in zip(positions, columns, strict=True):
        plan += [(column.name, rule) for rule in _column_rules(position, column)]
    results = _run([rule for _, rule in plan], frame.set_axis(positions, axis=1))
    for (name, (words, _, _)), (passed, raised) in zip(plan, results, strict=True):
        outcomes.append(CheckOutcome(name, words, passed, raised))
    return outcomes


Rule = tuple[str, str, dict[str, Any]]  # words, expectation, arguments


def _same_names(frame: pd.DataFrame, columns: Sequence[ColumnFacts]) -> bool:
    return [str(name) for name in frame.columns] == [column.name for column in columns]


def _type_outcome(series: pd.Series[Any], column: ColumnFacts) -> CheckOutcome:
    accepted = DTYPES.get(column.type)
    if accepted is None:
        raise QualityError(
            f"The type '{column.type}' is not one of {', '.join(DTYPES)}; "
            "correct the dataset's declaration."
        )
    return CheckOutcome(column.name, f"type is {column.type}", str(series.dtype) in accepted)


def _table_rules(positions: list[str], expected_rows: int | None) -> list[Rule]:
    rules: list[Rule] = [
        ("number of columns", "ExpectTableColumnCountToEqual", {"value": len(positions)})
    ]
    if expected_rows is not None:
        words = "number of rows follows the declared rule"
        rules.append((words, "ExpectTableRowCountToEqual", {"value": expected_rows}))
    return rules


def _column_rules(position: str, column: ColumnFacts) -> list[Rule]:
    rules: list[Rule] = []
    if column.type == "key":
        rules.append(("no number twice", "ExpectColumnValuesToBeUnique", {"column": position}))
    if not column.nullable:
        rules.append(("no empty cells", "ExpectColumnValuesToNotBeNull", {"column": position}))
    if column.values is not None and column.type == "category":
        arguments: dict[str, Any] = {"column": position, "value_set": list(column.values)}
        rules.append(("only declared values", "ExpectColumnValuesToBeInSet", arguments))
    bounds = {
        "min_value": _number(column.minimum, column),
        "max_value": _number(column.maximum, column),
    }
    if column.type in ("integer", "float") and any(b is not None for b in bounds.values()):
        arguments = {"column": position, **bounds}
        rules.append(("inside the declared range", "ExpectColumnValuesToBeBetween", arguments))
    return rules


def _number(text: str | None, column: ColumnFacts) -> float | int | None:
    if text is None or column.type not in ("integer", "float"):
        return None
    return int(text) if column.type == "integer" else float(text)


def _run(rules: list[Rule], frame: pd.DataFrame) -> list[tuple[bool, bool]]:
    """Evaluate the rules; keep only (passed, raised) of each.

    Rules on single rows are evaluated slice by slice: Great Expectations holds several copies of
    what it looks at.
    """
    whole = [i for i, (_, name, _) in enumerate(rules) if name in _WHOLE]
    by_row = [i for i in range(len(rules)) if i not in whole]
    found = {i: _outcomes(rules, [i], _narrow(rules[i], frame)) for i in whole}
    for start in range(0, max(1, len(frame)), SLICE_ROWS):
        outcomes = _outcomes(rules, by_row, frame.iloc[start : start + SLICE_ROWS])
        for i, outcome in zip(by_row, outcomes, strict=True):
            found.setdefault(i, []).append(outcome)
    return [
        (all(passed for passed, _ in found[i]), any(raised for _, raised in found[i]))
        for i in range(len(rules))
    ]


def _narrow(rule: Rule, frame: pd.DataFrame) -> pd.DataFrame:
    column = rule[2].get("column")
    return frame if column is None else frame[[column]]


def _outcomes(
    rules: list[Rule], wanted: Sequence[int], frame: pd.DataFrame
) -> list[tuple[bool, bool]]:
    """Return (passed, raised) of some rules on a table, in order."""
    from include.data import expectations

    asked = []
    for i in wanted:
        words, name, arguments = rules[i]
        rest = {key: value for key, value in arguments.items() if key != "column"}
        asked.append(expectations.Rule(arguments.get("column", ""), words, name, rest))
    return [(one.passed, one.raised) for one in expectations.run_rules(frame, asked)]
