"""Lets `airflow db migrate` create and upgrade the ledger's tables in the metadata database."""

from __future__ import annotations

from typing import Any

from airflow.utils.db_manager import BaseDBManager

from include.budget import migrations


class LedgerDBManager(BaseDBManager):
    """The ledger's tables, brought along by Airflow's own migration command.

    Tables are never dropped: `airflow db reset` must not be able to erase a privacy ledger.

    Privacy: ledger only.
    """

    metadata = migrations.METADATA
    migration_dir = str(migrations.MIGRATION_DIR)
    alembic_file = str(migrations.ALEMBIC_INI)
    version_table_name = migrations.VERSION_TABLE
    supports_table_dropping = False
    revision_heads_map: dict[str, str] = {}  # noqa: RUF012  (Airflow's own attribute)

    def create_db_from_orm(self) -> None:
        """Create the tables by running the migrations.

        The base class would call `metadata.create_all()` and stamp head, and every trigger and
        grant, which stand in the migrations, would be missing on a fresh database.
        """
        self.upgradedb(use_migration_files=True)

    def upgradedb(
        self,
        to_revision: str | None = None,
        from_revision: str | None = None,
        show_sql_only: bool = False,
        use_migration_files: bool = True,
    ) -> None:
        """Upgrade the ledger's tables, always from the migration files."""
        options: dict[str, Any] = {"to_revision": to_revision, "show_sql_only": show_sql_only}
        super().upgradedb(from_revision=from_revision, use_migration_files=True, **options)
