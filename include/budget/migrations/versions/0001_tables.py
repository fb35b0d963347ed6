"""Tables of the ledger, and its empty head with a random id."""

from __future__ import annotations

import secrets
from pathlib import Path

import sqlalchemy as sa
from alembic import op

from include.budget.journal import genesis

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_SQL = Path(__file__).resolve().parents[1] / "sql" / "0001_tables.sql"


def upgrade() -> None:
    """Make the tables; the first entry will follow the genesis hash."""
    bind = op.get_bind()
    whole, strict = ("INTEGER", " STRICT") if bind.dialect.name == "sqlite" else ("BIGINT", "")
    text = (
        _SQL.read_text(encoding="utf-8").replace("WHOLE", whole).replace(") STRICT", ")" + strict)
    )
    for statement in text.split("\n;;\n"):
        if statement.strip():
            op.execute(sa.text(statement))
    ledger_id = secrets.token_hex(16)
    head = sa.table("dp_head", *map(sa.column, ("id", "ledger_id", "seq", "hash")))
    op.execute(head.insert().values(id=1, ledger_id=ledger_id, seq=0, hash=genesis(ledger_id)))
