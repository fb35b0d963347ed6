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
    dialect = bind.dialect.name
    schema = ""
    if dialect == "postgresql":
        schema = bind.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
    for statement in statements(_SQL / f"0002_guards_{dialect}.sql"):
        bind.exec_driver_sql(statement.replace("@schema@", schema))
