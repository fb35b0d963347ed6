"""PostgreSQL numbers and chains an entry itself; SQLite has one writer at a time anyway."""

from __future__ import annotations

from pathlib import Path

from alembic import op

from include.budget.store.engine import statements

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_SQL = Path(__file__).resolve().parents[1] / "sql" / "0004_append_postgresql.sql"


def upgrade() -> None:
    """Make the function."""
    bind = op.get_bind().execution_options(no_parameters=True)
    if bind.dialect.name == "postgresql":
        schema = bind.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
        for statement in statements(_SQL):
            bind.exec_driver_sql(statement.replace("@schema@", schema))
