"""Tables of the ledger, and its empty head with a random id."""

from __future__ import annotations

import secrets
from pathlib import Path

import sqlalchemy as sa
from alembic import op

from include.budget.journal import genesis
from include.budget.store.engine import statements

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SQL = Path(__file__).resolve().parents[1] / "sql" / "0001_tables.sql"


def upgrade() -> None:
    """Make the tables; the first entry will follow the genesis hash."""
    strict = op.get_bind().dialect.name == "sqlite"
    for statement in statements(_SQL):
        text = statement.replace("WHOLE", "INTEGER" if strict else "BIGINT")
        op.execute(sa.text(text if strict else text.removesuffix(" STRICT")))
    ledger_id = secrets.token_hex(16)
    head = sa.table("dp_head", *map(sa.column, ("id", "ledger_id", "seq", "hash")))
    op.execute(head.insert().values(id=1, ledger_id=ledger_id, seq=0, hash=genesis(ledger_id)))
