"""Whether a snapshot has the declared form. Known before any budget is touched.

Form is columns, storage types and the id: facts of the source's layout, the same for two tables
that differ in one row. What rows hold is handled row by row (see `encode`); only a dataset declared
`strict` stops on it, and its manifests say so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from include.config.datasets import DatasetConfig
from include.data.cells import raw_codes
from include.data.content import GROUP_ROWS
from include.data.errors import FormatError, RowFaultError, SnapshotError, without_values
from include.data.expectations import CheckResult, Rule, run_rules
from include.data.own_rules import validate_own
from include.data.schema import Column, Schema
from include.data.snapshot import SnapshotRef

__all__ = ["CheckResult", "validate_format", "validate_rows"]

_TEXT = {"text"}
# Which kinds of storage can carry a declared type. Text carries everything where the source has
# no types of its own (CSV, SQLite).
_ACCEPTED = {
    "category": {"text", "integer", "float", "decimal", "boolean", "date", "timestamp"},
    "boolean": {"boolean", "integer", "float", "text"},
    "integer": {"integer", "float", "decimal", "boolean"},
    "float": {"integer", "float", "decimal"},
    "date": {"date", "timestamp", "text"},
    "datetime": {"timestamp", "date", "text"},
}
_ID_LIKE = re.compile(r"(?i)^(?:.*[_\s-])?(?:id|pid|uuid|guid|ssn)$")


def validate_format(
    snapshot: SnapshotRef | Path, schema: Schema, dataset: DatasetConfig
) -> list[CheckResult]:
    """Check a snapshot's columns, storage types and id; for a strict dataset also its rows.

    Args:
        snapshot: the snapshot, or the path of its Parquet file.
        schema: the declared domain of the columns to model.
        dataset: the declared dataset.

    Returns:
        One boolean result for each column and rule; all passed.

    Raises:
        FormatError: a rule on form failed; the first is named with its fix, no value.
        RowFaultError: the dataset is strict and a row breaks a rule; column and rule are named.

    Privacy: post-processing for form (layout only); reads raw data where the dataset is strict.
    """
    path = snapshot.path if isinstance(snapshot, SnapshotRef) else Path(snapshot)
    layout = without_values(
        lambda: _layout(path), SnapshotError, "reading the layout of the snapshot"
    )
    facts = _facts(path)
    rules = _form_rules(schema, dataset, typed=bool(facts.get("typed", True)))
    form = pd.DataFrame({name: [kind] for name, kind in layout})
    results = run_rules(form, rules)
    unasked = _unasked_id(dataset, facts.get("source_columns", []))
    results.append(CheckResult(unasked or "", "privacy unit", passed=unasked is None))
    for result in results:
        if not result.passed:
            raise _form_error(result, schema, dict(layout))
    if dataset.strict:
        results += validate_rows(path, schema)
        results += validate_own(path, schema, dataset)
    return results


def validate_rows(path: Path, schema: Schema) -> list[CheckResult]:
    """Check every row of a strict dataset against the declared domain.

    Great Expectations sees marks instead of cells (a level, missing, stray, out of bounds), made
    by the same function that encodes: a rule cannot disagree with what synthesis would do.

    Args:
        path: the snapshot's Parquet file.
        schema: the declared domain.

    Returns:
        One result for each column and rule; all passed.

    Raises:
        RowFaultError: the first rule that a row breaks.

    Privacy: reads raw data (a strict dataset declares that this passed as unprotected).
    """
    marks = without_values(lambda: _seen_marks(path, schema), SnapshotError, "checking the rows")
    rules = [rule for column in schema for rule in _row_rules(column)]
    results = run_rules(marks, rules)
    for result in results:
        if not result.passed:
            raise RowFaultError(result.column, result.rule)
    return results


def _form_rules(schema: Schema, dataset: DatasetConfig, *, typed: bool) -> list[Rule]:
    rules = []
    for column in schema:
        rules.append(Rule(column.name, "present", "ExpectColumnToExist"))
        accepted = set(_ACCEPTED[column.type])
        if not typed or column.config.stored_as == "text":
            accepted |= _TEXT
        arguments = {"value_set": sorted(accepted | {"empty"})}
        rules.append(Rule(column.name, "type", "ExpectColumnValuesToBeInSet", arguments))
    for name in dataset.id_columns:
        rules.append(Rule(name, "id present", "ExpectColumnToExist"))
    return rules


def _form_error(result: CheckResult, schema: Schema, layout: dict[str, str]) -> FormatError:
    name, rule = result.column, result.rule
    if rule == "type" and name in layout:
        declared = schema.column(name).type
        fix = "declare another type, or correct the source"
        if layout[name] == "text":
            fix += "; `stored_as: text` reads each cell's text as the declared type"
        sentence = f"column '{name}' is declared {declared} but stored as {layout[name]}; {fix}"
    elif rule == "privacy unit":
        sentence = (
            f"the source has a column '{name}' but privacy_unit names no id_column; add "
            f"id_column: {name} (with max_rows), or declare '{name}' under columns if it does not "
            "identify anybody"
        )
    elif rule == "id present":
        sentence = f"the id column '{name}' is not in the source; correct id_column or the source"
    else:
        sentence = (
            f"column '{name}' is not in the source; add it there, or remove it from the dataset "
            "file or point source_column at its name there"
        )
    return FormatError(name, rule, sentence)


def _unasked_id(dataset: DatasetConfig, names: Iterable[object]) -> str | None:
    """Return a column that looks like an id although the privacy unit has none."""
    if dataset.id_columns:
        return None
    declared = {dataset.source_name(name) for name in dataset.columns}
    declared |= set(dataset.partition_columns)
    for name in names:
        if isinstance(name, str) and is_id_like(name) and name not in declared:
            return name
    return None


def is_id_like(name: str) -> bool:
    """Tell from a column's name alone whether it looks like an identifier.

    Privacy: post-processing (names only).
    """
    return _ID_LIKE.fullmatch(name.strip()) is not None


def _facts(path: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads((path.parent / "meta.json").read_text())["facts"]
    except (OSError, ValueError, KeyError):
        return {}
    return facts


def _layout(path: Path) -> list[tuple[str, str]]:
    return [(field.name, storage_kind(field.type)) for field in pq.read_schema(path)]


def storage_kind(kind: pa.DataType) -> str:
    """Return a plain word for how a column is stored.

    Privacy: post-processing (types only).
    """
    types = pa.types
    if types.is_dictionary(kind):
        return storage_kind(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    tests = {
        "boolean": types.is_boolean,
        "integer": types.is_integer,
        "float": types.is_floating,
        "decimal": types.is_decimal,
        "date": types.is_date,
        "timestamp": types.is_timestamp,
        "empty": types.is_null,
    }
    return next((word for word, test in tests.items() if test(kind)), "something else")


def _row_rules(column: Column) -> list[Rule]:
    absent = "ExpectColumnValuesToNotBeInSet"
    rules = [
        Rule(column.name, "type or value", absent, {"value_set": [-3]}),
        Rule(column.name, "bounds", absent, {"value_set": [-4, -5]}),
    ]
    if not column.nullable:
        rules.insert(0, Rule(column.name, "not null", absent, {"value_set": [-2]}))
    return rules


def _seen_marks(path: Path, schema: Schema) -> pd.DataFrame:
    """Return the distinct marks of each column, padded: a small table whatever the rows."""
    seen: dict[str, set[int]] = {column.name: set() for column in schema}
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(GROUP_ROWS, columns=list(seen)):
            for column in schema:
                raw = raw_codes(column, batch.column(column.name))
                seen[column.name].update({max(int(code), -5) for code in set(raw.tolist())})
    height = max((len(marks) for marks in seen.values()), default=0)
    padded = {n: sorted(m) + [0] * (height - len(m)) for n, m in seen.items()}
    return pd.DataFrame(padded, dtype="int64")
