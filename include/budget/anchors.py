"""Noticing a ledger that was restored from a backup: compare it with what was seen outside.

A restored ledger is consistent in itself and knows nothing of what it lost, so it would sell the
same budget twice. Exported checkpoints and published manifests remember.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from include.budget.errors import LedgerRewound
from include.budget.store.transaction import Transaction
from include.budget.verify import Anchor

CHECKPOINT_PATTERN = "checkpoint-*.json"
Source = Callable[[], Anchor | None]


def newest_checkpoint(folder: Path) -> Source:
    """Look up the newest checkpoint exported to a folder, each time it is asked.

    Args:
        folder: Where checkpoints are exported to, outside the database.

    Returns:
        A source of the newest anchor; it answers None while there is no checkpoint. Newest is the
        one made last, not the longest: after a reconciliation the journal is shorter than it was.

    Privacy: ledger only.
    """
    known: dict[Path, Anchor] = {}  # an exported checkpoint never changes

    def look() -> Anchor | None:
        for path in folder.glob(CHECKPOINT_PATTERN):
            if path not in known:
                known[path] = checkpoint_anchor(path)
        return max(known.values(), key=lambda anchor: (anchor.at, anchor.seq), default=None)

    return look


def checkpoint_anchor(path: Path) -> Anchor:
    """Read the anchor of an exported checkpoint.

    Raises:
        LedgerRewound: The file is no checkpoint; a damaged witness must not be ignored.

    Privacy: ledger only.
    """
    try:
        body = json.loads(json.loads(path.read_text(encoding="utf-8"))["body"])
        source = f"checkpoint {path.name}"
        return Anchor(int(body["seq"]), str(body["hash"]), source, str(body["at"]))
    except (OSError, ValueError, KeyError, TypeError):
        raise LedgerRewound(
            f"the exported checkpoint {path.name} cannot be read: restore it from its copy."
        ) from None


def manifest_anchor(path: Path) -> Anchor:
    """Read the anchor that a published manifest (datapackage.json) embeds.

    Raises:
        LedgerRewound: The file names no ledger entry.

    Privacy: ledger only.
    """
    try:
        lineage = json.loads(path.read_text(encoding="utf-8"))["dp"]["lineage"]
        source = f"the manifest of {lineage['release']}, {lineage['period']}"
        return Anchor(int(lineage["entry_seq"]), str(lineage["entry_hash"]), source)
    except (OSError, ValueError, KeyError, TypeError):
        raise LedgerRewound(f"{path}: this manifest names no ledger entry.") from None


def guard(source: Source) -> Callable[[Transaction], None]:
    """Refuse to reserve on a ledger that does not hold the newest anchor.

    Args:
        source: For example `newest_checkpoint(folder)`.

    Returns:
        What `Ledger` takes as `before_reserve`.

    Privacy: ledger only.
    """

    def check(tx: Transaction) -> None:
        anchor = source()
        if anchor is None or tx.hash_at(anchor.seq) == anchor.hash:
            return
        if reconciled(tx).get(anchor.seq) == anchor.hash:
            return
        raise LedgerRewound(
            f"the ledger does not hold entry {anchor.seq}, which {anchor.source} has seen: it was "
            "restored from a backup or rewritten. All budget is frozen: reconcile it first."
        )

    return check


def reconciled(tx: Transaction) -> dict[int, str]:
    """List the lost entries that a reconciliation has accounted for, with their hashes.

    Privacy: ledger only.
    """
    return {
        int(seq): str(hashed)
        for body in tx.bodies_of_kind("reconcile")
        for seq, hashed in body["facts"]["lost_anchors"]
    }


def unseen(tx: Transaction, anchors: Iterable[Anchor]) -> list[Anchor]:
    """List the anchors whose entries the journal does not hold.

    Privacy: ledger only.
    """
    return [anchor for anchor in anchors if tx.hash_at(anchor.seq) != anchor.hash]
