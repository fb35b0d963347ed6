"""Tables and queries of a database, streamed as text with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from include.config.datasets import SourceConfig
from include.data.content import GROUP_ROWS
from include.data.errors import SourceError, without_values


def read_sql(
    source: SourceConfig, url: str, names: list[str]
) -> tuple[list[str], Iterator[pa.Table]]:
    """Open a query or table.

    Args:
        source: its `query` or `table`.
        url: SQLAlchemy URL of the database.
        names: columns in the source's words.

    Returns:
        All column names of the result, and its needed columns in chunks of text; the first chunk
        is empty and carries the columns.

    Raises:
        SourceError: the database does not answer or refuses the query (class of the error only).

    Privacy: reads raw data.
    """
    engine = without_values(
        lambda: sa.create_engine(url, poolclass=sa.NullPool),
        SourceError,
        f"reading the connection '{source.conn_id}'",
    )
    inner = _statement(source, engine)
    found = without_values(
        lambda: _names(engine, inner),
        SourceError,
        f"asking the connection '{source.conn_id}' for the columns of the source",
    )
    present = [name for name in names if name in found]
    return found, _chunks(engine, inner, present)


def _statement(source: SourceConfig, engine: sa.Engine) -> str:
    if source.query is not None:
        return source.query.strip().rstrip(";")
    quote = engine.dialect.identifier_preparer.quote_identifier
    return "SELECT * FROM " + ".".join(quote(part) for part in str(source.table).split("."))


def _names(engine: sa.Engine, inner: str) -> list[str]:
    with engine.connect() as connection:
        result = _read_only(connection).exec_driver_sql(f"SELECT * FROM ({inner}) AS q WHERE 1 = 0")
        return [str(column[0]) for column in result.cursor.description]


def _chunks(engine: sa.Engine, inner: str, present: list[str]) -> Iterator[pa.Table]:
    shape = pa.schema([pa.field(name, pa.string()) for name in present])
    yield shape.empty_table()
    if not present:
        return
    quote = engine.dialect.identifier_preparer.quote_identifier
    columns = ", ".join(f"q.{quote(name)}" for name in present)
    with engine.connect() as connection:
        streaming = _read_only(connection).execution_options(stream_results=True)
        result = streaming.exec_driver_sql(f"SELECT {columns} FROM ({inner}) AS q")
        for rows in result.partitions(GROUP_ROWS):
            cells = [[_text(value) for value in column] for column in zip(*rows, strict=True)]
            yield pa.table([pa.array(column, pa.string()) for column in cells], schema=shape)


def _read_only(connection: sa.Connection) -> sa.Connection:
    """A source is never written to: the database itself refuses it where it can."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
    elif connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA query_only = ON")
    return connection


def _text(value: Any) -> str | None:
    """Write a cell as a text file would; the schema says what it means."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return None if value != value else str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, bytes | memoryview):
        return bytes(value).decode("utf-8", "replace")
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
