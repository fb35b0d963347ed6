"""A snapshot says which partition it holds, so that no charge can measure another one."""

from __future__ import annotations

from pathlib import Path

from alembic import op

from include.budget.store.engine import statements

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_SQL = Path(__file__).resolve().parents[1] / "sql"


def upgrade() -> None:
    """Add the column, and let the auditor read it where there are roles."""
    bind = op.get_bind().execution_options(no_parameters=True)
    files = ["0005_snapshot_partition.sql"]
    if bind.dialect.name == "postgresql":
        files.append("0005_grants_postgresql.sql")
    for name in files:
        for statement in statements(_SQL / name):
            bind.exec_driver_sql(statement)
