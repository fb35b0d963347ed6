"""Grants to the ledger's roles, where they exist; `roles.create_roles` makes them."""

from __future__ import annotations

from pathlib import Path

from alembic import op

from include.budget.store.engine import statements

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_SQL = Path(__file__).resolve().parents[1] / "sql" / "0003_grants_postgresql.sql"


def upgrade() -> None:
    """Grant; SQLite knows no roles."""
    bind = op.get_bind().execution_options(no_parameters=True)
    if bind.dialect.name == "postgresql":
        for statement in statements(_SQL):
            bind.exec_driver_sql(statement)
