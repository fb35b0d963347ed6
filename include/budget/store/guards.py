"""Whether the database still has every guard its migrations gave it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from sqlalchemy import Connection, text

_SQL = Path(__file__).resolve().parents[1] / "migrations" / "sql"
_RULE = re.compile(r"CONSTRAINT (\w+) (?:CHECK|UNIQUE)")
_UNIQUE = re.compile(r"CREATE UNIQUE INDEX (\w+)")
_FUNCTION = re.compile(r"CREATE FUNCTION (\w+)\([^$]*AS \$\$(.*?)\$\$", re.S)
_TRIGGER = re.compile(r"CREATE TRIGGER (\w+) (?:BEFORE|AFTER)")
_HERE = "quote_ident(current_schema())::regnamespace"
_NAMES = f"""
    SELECT tgname FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE t.tgenabled IN ('O', 'A') AND c.relnamespace = {_HERE}
    UNION SELECT conname FROM pg_constraint WHERE convalidated AND connamespace = {_HERE}
    UNION SELECT relname FROM pg_index JOIN pg_class c ON c.oid = indexrelid
    WHERE indisunique AND indisvalid AND c.relnamespace = {_HERE}
"""
_FUNCTIONS = f"SELECT proname, prosrc FROM pg_proc WHERE pronamespace = {_HERE}"


def missing_guards(connection: Connection) -> list[str]:
    """List the triggers, functions and constraints that are gone, disabled or others.

    Args:
        connection: Inside a read transaction.

    Returns:
        Names, sorted; empty when all stand.

    Privacy: ledger only.
    """
    dialect = connection.dialect.name
    tables = (_SQL / "0001_tables.sql").read_text(encoding="utf-8")
    guards = (_SQL / f"0002_guards_{dialect}.sql").read_text(encoding="utf-8")
    rules = {*_RULE.findall(tables), *_UNIQUE.findall(tables)}
    if dialect == "postgresql":
        return _missing_on_postgres(connection, guards, rules | {*_TRIGGER.findall(guards)})
    return _missing_on_sqlite(connection, guards, rules)


def _missing_on_postgres(connection: Connection, guards: str, names: set[str]) -> list[str]:
    schema = str(connection.execute(text("SELECT quote_ident(current_schema())")).scalar_one())
    written = dict(_FUNCTION.findall(guards.replace("@schema@", schema)))
    standing = {str(row[0]) for row in connection.execute(text(_NAMES))}
    bodies = {str(name): str(body) for name, body in connection.execute(text(_FUNCTIONS))}
    return sorted((names - standing) | _others(written, bodies))


def _missing_on_sqlite(connection: Connection, guards: str, rules: set[str]) -> list[str]:
    made = [one[one.index("CREATE") :] for one in guards.split("\n;;\n") if "CREATE" in one]
    written = {_TRIGGER.findall(one)[0]: one.strip() for one in made}
    query = text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    bodies = {str(name): str(sql).strip() for name, sql in connection.execute(query)}
    standing = {*bodies, *_RULE.findall("\n".join(bodies.values()))}
    return sorted((rules - standing) | _others(written, bodies))


def _others(written: Mapping[str, str], standing: Mapping[str, str]) -> set[str]:
    return {name for name, body in written.items() if standing.get(name) != body}
