"""Forgets the demonstration: removes `var/`, where the embedded default keeps all it writes."""

from __future__ import annotations

import shutil
from pathlib import Path

VAR = Path(__file__).resolve().parents[1] / "var"

if __name__ == "__main__":
    shutil.rmtree(VAR, ignore_errors=True)
    print("The demo's ledger, snapshots, keys and releases are gone; `make demo` starts afresh.")
