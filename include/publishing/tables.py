"""The released table as CSV and Parquet, and the schema that lets a reader get the types back.

Bytes depend on the table and the declaration alone, so that a retry makes the same files.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from include.publishing.errors import PublishError
from include.quality.facts import ColumnFacts

if TYPE_CHECKING:
    import pandas as pd

# Frictionless Table Schema type and pandas dtype of each declared type.
FIELD_TYPES = {
    "category": "string",
    "boolean": "boolean",
    "integer": "integer",
    "float": "number",
    "date": "date",
    "datetime": "datetime",
    "key": "integer",
}
PANDAS_TYPES = {
    "category": "category",
    "boolean": "boolean",
    "integer": "Int64",
    "float": "Float64",
    "key": "Int64",
}
MISSING_TOKENS = ("", "NA", "null", "(no value)")


def typed_frame(frame: pd.DataFrame, columns: Sequence[ColumnFacts]) -> pd.DataFrame:
    """Give each column the dtype its declaration promises.

    Args:
        frame: the decoded synthetic table, columns as declared and in their order.
        columns: the declared columns.

    Returns:
        A table with category, boolean, Int64, Float64 and datetime columns.

    Raises:
        PublishError: the columns are not the declared ones, or a name stands twice.

    Privacy: post-processing.
    """
    import pandas as pd

    names = [column.name for column in columns]
    if [str(name) for name in frame.columns] != names:
        raise PublishError(
            "The synthetic table does not have the declared columns in their order; "
            "build the package from the table and the schema of one charge."
        )
    if len(set(names)) < len(names):
        raise PublishError("A column name stands twice in the schema; rename one of them.")
    parts = {column.name: _typed(frame[column.name], column) for column in columns}
    return pd.DataFrame(parts, columns=names).reset_index(drop=True)


def _typed(series: pd.Series[Any], column: ColumnFacts) -> pd.Series[Any]:
    import pandas as pd

    if column.type == "category":
        values = list(column.values if column.values is not None else column.cells)
        return series.astype(pd.CategoricalDtype(values))
    if column.type in PANDAS_TYPES:
        return series.astype(PANDAS_TYPES[column.type])  # type: ignore[call-overload,no-any-return]
    return pd.to_datetime(series).astype("datetime64[us]")


def missing_token(columns: Sequence[ColumnFacts]) -> str:
    """Return the text of an empty cell: the first token that no declared value uses.

    Raises:
        PublishError: every token is a declared value.

    Privacy: post-processing.
    """
    used = {value for column in columns for value in column.values or ()}
    for token in MISSING_TOKENS:
        if token not in used:
            return token
    raise PublishError(
        "The declared values use every way of writing an empty cell; "
        f"rename one of {', '.join(repr(t) for t in MISSING_TOKENS)}."
    )


def write_csv(path: Path, table: pd.DataFrame, columns: Sequence[ColumnFacts]) -> None:
    """Write a typed table as UTF-8 CSV (RFC 4180 quoting, LF line ends).

    Privacy: post-processing.
    """
    dated = {c.name: "%Y-%m-%d" for c in columns if c.type == "date"}
    dated |= {c.name: "%Y-%m-%dT%H:%M:%S" for c in columns if c.type == "datetime"}
    text = table.assign(**{name: table[name].dt.strftime(form) for name, form in dated.items()})
    text.to_csv(
        path,
        index=False,
        encoding="utf-8",
        lineterminator="\n",
        quoting=_quoting(columns),
        na_rep=missing_token(columns),
    )


def _quoting(columns: Sequence[ColumnFacts]) -> Literal[0, 1]:
    """Quote where needed; everything where a declared text holds a bare carriage return.

    Writers quote the characters of their own line end only, readers take either for one.
    """
    texts = (text for column in columns for text in (column.name, *(column.values or ())))
    return csv.QUOTE_ALL if any("\r" in text for text in texts) else csv.QUOTE_MINIMAL


def write_parquet(path: Path, table: pd.DataFrame) -> None:
    """Write a typed table as Parquet; categories keep their declared values.

    Privacy: post-processing.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), path, compression="zstd")


def table_schema(columns: Sequence[ColumnFacts]) -> dict[str, Any]:
    """Return the Frictionless Table Schema of the declared columns.

    Source: Data Package v2, Table Schema.

    Privacy: post-processing.
    """
    return {
        "fields": [_field(column) for column in columns],
        "missingValues": [missing_token(columns)],
    }


def _field(column: ColumnFacts) -> dict[str, Any]:
    field: dict[str, Any] = {"name": column.name, "type": FIELD_TYPES[column.type]}
    if column.description:
        field["description"] = column.description
    constraints: dict[str, Any] = {} if column.nullable else {"required": True}
    if column.type == "key":
        constraints["unique"] = True
    if column.type == "category" and column.values is not None:
        constraints["enum"] = list(column.values)
    if column.type in ("integer", "float"):
        number = int if column.type == "integer" else float
        for bound in ("minimum", "maximum"):
            text = getattr(column, bound)
            if text is not None:
                constraints[bound] = number(text)
    if constraints:
        field["constraints"] = constraints
    if column.decimals is not None:
        field["decimals"] = column.decimals  # a property of ours: Table Schema has none for it
    return field


def _pandas_type(column: ColumnFacts) -> str:
    """Categories that look like numbers are read as text: pandas would make numbers of them."""
    if column.type == "category" and any(map(_number_like, column.values or ())):
        return "str"
    return PANDAS_TYPES[column.type]


def _number_like(text: str) -> bool:
    if text.strip().lower() in ("true", "false"):
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True


def pandas_arguments(columns: Sequence[ColumnFacts]) -> dict[str, Any]:
    """Return the keyword arguments with which `pandas.read_csv` restores the types.

    Privacy: post-processing.
    """
    return {
        "dtype": {c.name: _pandas_type(c) for c in columns if c.type in PANDAS_TYPES},
        "parse_dates": [c.name for c in columns if c.type in ("date", "datetime")],
        "keep_default_na": False,
        "na_values": [missing_token(columns)],
    }
