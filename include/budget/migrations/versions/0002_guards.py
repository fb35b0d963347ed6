"""Guards: triggers that keep the journal append-only and let budget move through it only."""

from __future__ import annotations

from pathlib import Path

from alembic import op

from include.budget.store.engine import statements

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_SQL = Path(__file__).resolve().parents[1] / "sql"


def upgrade() -> None:
    """Run the guards written for this database."""
    bind = op.get_bind().execution_options(no_parameters=True)  # a % is plpgsql's, no parameter
    for statement in statements(_SQL / f"0002_guards_{bind.dialect.name}.sql"):
        bind.exec_driver_sql(statement)
