"""Noticing a ledger that was restored from a backup: compare it with what was seen outside.

A restored ledger is consistent in itself and knows nothing of what it lost, so it would sell the
same budget twice. Exported checkpoints and published manifests remember.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from include.budget.errors import THAW, LedgerError, LedgerRewound
from include.budget.store.transaction import Transaction
from include.budget.verify import Anchor

CHECKPOINT_PATTERN = "checkpoint-*.json"
Source = Callable[[], Sequence[Anchor]]
Signed = Callable[[str, str, str], bool]
"""Whether a checkpoint's body (first) was signed by the key of that id (second) with that signature
(third, hex)."""


class WitnessDamaged(LedgerError):
    """An exported checkpoint cannot be read or is not signed: it says nothing of the ledger.

    The step stops, since the true one may know of a loss. No pool is frozen: one bad file in a
    folder must not stop all budget.

    Privacy: ledger only.
    """


def exported_checkpoints(folder: Path, signed: Signed | None = None) -> Source:
    """Look up every checkpoint exported to a folder, each time it is asked.

    Args:
        folder: Where checkpoints are exported to, outside the database.
        signed: Checks signatures; None believes every file.

    Returns:
        A source of all anchors, in order of entries. All, not the newest: a ledger that lost one
        and went on would otherwise be believed as soon as it exported a younger one. It raises
        `WitnessDamaged` as `checkpoint_anchor` does.

    Privacy: ledger only.
    """
    known: dict[tuple[Path, int], Anchor] = {}  # read once: a folder grows with every release

    def look() -> list[Anchor]:
        for path in folder.glob(CHECKPOINT_PATTERN):
            key = (path, path.stat().st_mtime_ns)
            if key not in known:
                known[key] = checkpoint_anchor(path, signed)
        return sorted(known.values())

    return look


def checkpoint_anchor(path: Path, signed: Signed | None = None) -> Anchor:
    """Read the anchor of an exported checkpoint.

    Args:
        path: The file.
        signed: Checks its signature; None believes the file.

    Raises:
        WitnessDamaged: The file is no checkpoint or not signed; it must not be ignored.

    Privacy: ledger only.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        anchor = anchor_of(json.loads(record["body"]), f"checkpoint {path.name}")
        told = (str(record["body"]), str(record["key_id"]), str(record["signature"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise WitnessDamaged(
            f"the exported checkpoint {path.name} cannot be read: restore it from its copy."
        ) from None
    if signed is not None and not signed(*told):
        raise WitnessDamaged(
            f"the exported checkpoint {path.name} does not bear the signature of a key kept here: "
            "restore it from its copy, or the key's public half to the folder of keys."
        )
    return anchor


def anchor_of(body: Mapping[str, Any], source: str) -> Anchor:
    """Make the anchor of a checkpoint's opened body; it remembers what every pool had used.

    Privacy: ledger only.
    """
    used = tuple((str(name), int(sum(two))) for name, two in sorted(body["pools"].items()))
    return Anchor(int(body["seq"]), str(body["hash"]), source, used)


def manifest_anchor(path: Path) -> Anchor:
    """Read the anchor that a published manifest (datapackage.json) embeds.

    Raises:
        LedgerRewound: The file names no ledger entry.

    Privacy: ledger only.
    """
    try:
        content = path.read_bytes()
        lineage = json.loads(content)["dp"]["lineage"]
        source = f"the manifest of {lineage['release']}, {lineage['period']}"
        seq, hashed = int(lineage["entry_seq"]), str(lineage["entry_hash"])
        return Anchor(seq, hashed, source, manifest=hashlib.sha256(content).hexdigest())
    except (OSError, ValueError, KeyError, TypeError):
        raise LedgerRewound(f"{path}: this manifest names no ledger entry.") from None


def guard(source: Source) -> Callable[[Transaction], None]:
    """Refuse to act on a ledger that lacks an entry seen outside, unless it was reconciled.

    Args:
        source: For example `exported_checkpoints(folder)`.

    Returns:
        What `Ledger` takes as `guard`.

    Privacy: ledger only.
    """

    def check(tx: Transaction) -> None:
        missing = unseen(tx, source())
        if not missing:
            return
        known = reconciled(tx)
        for anchor in missing:
            if (anchor.seq, anchor.hash) in known:
                continue
            raise LedgerRewound(
                f"the ledger does not hold entry {anchor.seq}, which {anchor.source} has seen: it "
                "was restored from a backup or rewritten. All budget is frozen; " + THAW + "."
            )

    return check


def reconciled(tx: Transaction) -> set[tuple[int, str]]:
    """List the lost entries that a reconciliation has accounted for, with their hashes.

    Privacy: ledger only.
    """
    return {
        (int(seq), str(hashed))
        for body in tx.bodies_of_kind("reconcile")
        for seq, hashed in body["facts"]["lost_anchors"]
    }


def unseen(tx: Transaction, anchors: Iterable[Anchor]) -> list[Anchor]:
    """List the anchors whose entries the journal does not hold.

    Privacy: ledger only.
    """
    seen = list(anchors)
    hashes = tx.hashes_at({anchor.seq for anchor in seen})
    return [anchor for anchor in seen if hashes.get(anchor.seq) != anchor.hash]
