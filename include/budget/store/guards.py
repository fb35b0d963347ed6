"""Whether the database still has every guard its migrations gave it."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import Connection, text

_SQL = Path(__file__).resolve().parents[1] / "migrations" / "sql"
_CATALOG = {
    "sqlite": "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": (
        "SELECT t.tgname, c.relname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid "
        "WHERE t.tgenabled IN ('O', 'A') "
        "AND c.relnamespace = quote_ident(current_schema())::regnamespace"
    ),
}


def missing_guards(connection: Connection) -> list[str]:
    """List the triggers that are gone or disabled.

    Args:
        connection: Inside a read transaction.

    Returns:
        Names, sorted; empty when all stand.

    Privacy: ledger only.
    """
    dialect = connection.dialect.name
    written = (_SQL / f"0002_guards_{dialect}.sql").read_text(encoding="utf-8")
    expected = set(re.findall(r"CREATE TRIGGER (\w+) (?:BEFORE|AFTER)", written))
    standing = {row[0] for row in connection.execute(text(_CATALOG[dialect]))}
    return sorted(expected - standing)
