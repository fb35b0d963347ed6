"""How Alembic reaches the ledger. Free of Airflow: it also runs alone and in tests."""

from __future__ import annotations

from typing import Any

from alembic import context
from sqlalchemy import Connection

from include.budget.store.engine import connect
from include.budget.store.tables import METADATA, PREFIX, VERSION_TABLE


def _ours(thing: Any, name: str | None, kind: str, _reflected: bool, _other: Any) -> bool:
    """Look only at the ledger's tables: the database also holds Airflow's."""
    return kind != "table" or (name or "").startswith(PREFIX)


def _upgrade(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=METADATA,
        version_table=VERSION_TABLE,
        include_object=_ours,
        transactional_ddl=True,  # on SQLite too: a half-made ledger is worse than none
    )
    with context.begin_transaction():
        context.run_migrations()


def _run() -> None:
    if context.is_offline_mode():
        context.configure(
            url=context.config.get_main_option("sqlalchemy.url"),
            target_metadata=METADATA,
            version_table=VERSION_TABLE,
            literal_binds=True,
        )
        with context.begin_transaction():
            context.run_migrations()
        return
    given: Connection | None = context.config.attributes.get("connection")
    if given is not None:
        _upgrade(given)
        return
    url = context.config.get_main_option("sqlalchemy.url")
    engine = connect(str(url), create=True)
    try:
        with engine.execution_options(ledger_write=True).connect() as connection:
            _upgrade(connection)
    finally:
        engine.dispose()


_run()
