"""The whole journal as JSON Lines, for an auditor without access to the database.

`tools/verify_export.py` re-verifies such a file with the standard library alone. Keyed MACs and
locators of protected content are no part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from sqlalchemy import Connection, Engine

from include.budget.journal import FORMAT
from include.budget.models import canonical_json
from include.budget.store import queries
from include.budget.store.engine import reading
from include.budget.store.transaction import stamp, utc_now

EXPORT_FORMAT = "cusyn-ledger-export-1"


def export(engine: Engine, target: TextIO) -> int:
    """Write the ledger, line by line, in bounded memory.

    Args:
        engine: The ledger's database.
        target: An open text file.

    Returns:
        Number of journal entries written.

    Raises:
        LedgerUnavailable: The ledger cannot be read.

    Privacy: ledger only.
    """
    written = 0
    with reading(engine) as connection:
        for line in _lines(connection):
            target.write(canonical_json(line) + "\n")
            written += line["type"] == "entry"
    return written


def _lines(connection: Connection) -> Iterator[Mapping[str, Any]]:
    head = queries.head(connection)
    yield {
        "type": "header",
        "format": EXPORT_FORMAT,
        "journal": FORMAT,
        "ledger_id": head["ledger_id"],
        "seq": head["seq"],
        "hash": head["hash"],
        "exported_at": stamp(utc_now()),
    }
    for row in queries.entries(connection):
        yield {"type": "entry", **row}
    for pool in queries.pools(connection):
        yield {
            "type": "pool",
            "pool_id": pool.pool_id,
            "cap_pico": pool.cap_pico,
            "held_pico": pool.held_pico,
            "spent_pico": pool.spent_pico,
        }
    for row in queries.projection(connection, "charge"):
        yield {"type": "charge", "charge_id": row["charge_id"], "state": row["state"]}
    for row in queries.checkpoints(connection):
        told = {name: row[name] for name in ("body", "key_id", "signature")}
        yield {"type": "checkpoint", **told}
