"""Migrations of the ledger: a version table of their own, run by `airflow db migrate` or alone.

Airflow's `BaseDBManager` takes METADATA, MIGRATION_DIR, ALEMBIC_INI and VERSION_TABLE. Triggers and
grants live here and not in the metadata: a manager must always upgrade through the migration files.
"""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine

from include.budget.store.engine import connect
from include.budget.store.tables import METADATA, VERSION_TABLE

MIGRATION_DIR = str(Path(__file__).resolve().parent)
ALEMBIC_INI = str(Path(__file__).resolve().parent / "alembic.ini")

__all__ = ["ALEMBIC_INI", "METADATA", "MIGRATION_DIR", "VERSION_TABLE", "migrate"]


def migrate(engine: Engine, revision: str = "head") -> None:
    """Bring the ledger's tables to a revision; a second run changes nothing.

    Args:
        engine: The ledger's database; a missing SQLite file is created.
        revision: Alembic revision.

    Privacy: ledger only.
    """
    config = Config(ALEMBIC_INI)
    config.set_main_option("script_location", MIGRATION_DIR.replace("%", "%%"))
    url = engine.url.render_as_string(hide_password=False)
    maker = connect(url, create=True)
    try:
        with maker.execution_options(ledger_write=True).connect() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
    finally:
        maker.dispose()
