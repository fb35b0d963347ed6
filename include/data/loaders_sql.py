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
    found = without_values(
        lambda: _names(engine, _statement(source, engine, ["*"])),
        SourceError,
        f"asking the connection '{source.conn_id}' for the columns of the source",
    )
    present = [name for name in names if name in found]
    return found, _chunks(engine, source, found, present)


def _statement(source: SourceConfig, engine: sa.Engine, columns: list[str]) -> str:
    """Return the steward's query as it is, or a SELECT of the table's needed columns."""
    if source.query is not None:
        return source.query.strip().rstrip(";")
    quote = engine.dialect.identifier_preparer.quote_identifier
    table = ".".join(quote(part) for part in str(source.table).split("."))
    chosen = ", ".join(name if name == "*" else quote(name) for name in columns)
    return f"SELECT {chosen} FROM {table}"


def _names(engine: sa.Engine, statement: str) -> list[str]:
    with engine.connect() as connection, _run(connection, statement) as result:
        return [str(column[0]) for column in result.cursor.description]


def _chunks(
    engine: sa.Engine, source: SourceConfig, found: list[str], present: list[str]
) -> Iterator[pa.Table]:
    shape = pa.schema([pa.field(name, pa.string()) for name in present])
    yield shape.empty_table()
    if not present:
        return
    places = [found.index(n) for n in present] if source.query else list(range(len(present)))
    statement = _statement(source, engine, present)
    with engine.connect() as connection, _run(connection, statement) as result:
        for rows in result.partitions(GROUP_ROWS):
            cells = [[_text(row[i]) for row in rows] for i in places]
            yield pa.table([pa.array(column, pa.string()) for column in cells], schema=shape)


def _run(connection: sa.Connection, statement: str) -> Any:
    """Run a statement as a stream; the database itself refuses to write for it."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET TRANSACTION READ ONLY")
    elif connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA query_only = ON")
    # no_parameters: a percent sign in the steward's query is not a placeholder.
    streaming = connection.execution_options(stream_results=True, no_parameters=True)
    return streaming.exec_driver_sql(statement)


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
