"""Forgets the demonstration: removes `var/`, where the embedded default keeps all it writes.

A ledger that holds anything but the demo is a steward's own: forgetting it would make every budget
full again, so that needs `FORCE=1`.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

VAR = Path(__file__).resolve().parents[1] / "var"
DEMO = "gss_happiness"


def other_datasets() -> list[str]:
    """Return the registered datasets that are not the demo's."""
    database = VAR / "airflow" / "airflow.db"
    if not database.exists():
        return []
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            rows = connection.execute("SELECT name FROM dp_dataset").fetchall()
    except sqlite3.Error:  # no ledger in it yet
        return []
    return sorted(name for (name,) in rows if name != DEMO)


if __name__ == "__main__":
    found = other_datasets()
    if found and os.environ.get("FORCE") != "1":
        sys.exit(
            f"Nothing was removed: the ledger in var/ also holds {', '.join(found)}, and "
            "forgetting it would make spent budgets full again; keep it, or add FORCE=1."
        )
    shutil.rmtree(VAR, ignore_errors=True)
    print("The demo's ledger, snapshots, keys and releases are gone; `make demo` starts afresh.")
