"""The steward's own expectations, checked on typed cells with boolean results only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from include.config.datasets import DatasetConfig
from include.config.expectations import KINDS, ExpectationConfig
from include.data.cells import as_number, as_text
from include.data.content import GROUP_ROWS
from include.data.errors import RowFaultError, SnapshotError, without_values
from include.data.expectations import CheckResult, Rule, run_rules
from include.data.schema import Schema


def own_rules(dataset: DatasetConfig, columns: list[str]) -> list[Rule]:
    """Return the steward's expectations that are about the given columns.

    Privacy: ledger only.
    """
    chosen = [e for e in dataset.expectations if set(e.columns) <= set(columns)]
    return [_rule(expectation) for expectation in chosen]


def check_own(frame: pd.DataFrame, dataset: DatasetConfig) -> list[CheckResult]:
    """Check the steward's expectations on a synthetic table.

    Args:
        frame: the synthetic table, as `decode` returns it.
        dataset: the declared dataset.

    Returns:
        One boolean result an expectation that is about the table's columns.

    Privacy: post-processing.
    """
    return run_rules(frame, own_rules(dataset, list(frame.columns)))


def validate_own(path: Path, schema: Schema, dataset: DatasetConfig) -> list[CheckResult]:
    """Check the steward's expectations on the raw rows of a strict dataset, in chunks.

    Args:
        path: the snapshot's Parquet file.
        schema: the declared domain.
        dataset: the declared dataset; it is strict.

    Returns:
        One result an expectation; all passed.

    Raises:
        RowFaultError: an expectation failed; column and name only.

    Privacy: reads raw data (a strict dataset declares that this passed as unprotected).
    """
    rules = own_rules(dataset, list(schema.domain))
    if not rules:
        return []
    return without_values(
        lambda: _validate(path, schema, rules), SnapshotError, "checking the expectations"
    )


def _validate(path: Path, schema: Schema, rules: list[Rule]) -> list[CheckResult]:
    results: list[CheckResult] = [CheckResult(rule.column, rule.rule, True) for rule in rules]
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(GROUP_ROWS, columns=list(schema.domain)):
            results = run_rules(typed_frame(batch, schema), rules)
            for result in results:
                if not result.passed:
                    raise RowFaultError(result.column, result.rule)
    return results


def typed_frame(batch: pa.RecordBatch | pa.Table, schema: Schema) -> pd.DataFrame:
    """Return cells under their declared types: numbers as float64, the rest as text.

    A cell that is not of its column's type is missing here; the declared domain judges it.

    Privacy: reads raw data.
    """
    cells: dict[str, Any] = {}
    for column in schema:
        array = batch.column(column.name)
        array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        if column.type in ("integer", "float"):
            numbers, state = as_number(array)
            cells[column.name] = np.where(state == 0, numbers, np.nan)
        else:
            cells[column.name] = pc.utf8_trim_whitespace(as_text(array)).to_pandas()
    return pd.DataFrame(cells)


def _rule(expectation: ExpectationConfig) -> Rule:
    arguments = dict(expectation.arguments)
    if expectation.column is None:
        arguments |= {
            "column_A": expectation.column_a,
            "column_B": expectation.column_b,
            "ignore_row_if": "either_value_is_missing",
        }
        name = f"{expectation.expect} ({expectation.column_a}, {expectation.column_b})"
        return Rule("", name, KINDS[expectation.expect][0], arguments)
    return Rule(expectation.column, expectation.expect, KINDS[expectation.expect][0], arguments)
