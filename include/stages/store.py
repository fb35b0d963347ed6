"""The protected store of this installation: its folder and its key."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from include.errors import CuSynError
from include.settings import Settings

if TYPE_CHECKING:
    from include.config.datasets import DatasetConfig
    from include.data.private import ProtectedTable
    from include.data.schema import Schema
    from include.data.snapshot import SnapshotStore

KEY_FILE = "snapshot-mac.key"


def protected_key(settings: Settings) -> bytes:
    """Return the secret that recognises known snapshots and orders a unit's rows.

    Made on first use, in a file only its owner may read; of two first users one wins.

    Raises:
        CuSynError: the file is shorter than a key, or others may read it.

    Privacy: ledger only.
    """
    path = settings.keys_dir / KEY_FILE
    if not path.exists():
        _make(path)
    if path.stat().st_mode & 0o077:
        raise CuSynError(f"{path}: others may read the snapshot key; run chmod 600 on it")
    key = path.read_bytes()
    if len(key) != 32:
        raise CuSynError(f"{path}: not a snapshot key of 32 bytes; restore it from its backup")
    return key


def snapshot_store(settings: Settings) -> SnapshotStore:
    """Open the store of immutable snapshots.

    Privacy: reads raw data.
    """
    from include.data.snapshot import SnapshotStore

    return SnapshotStore(settings.protected_dir, protected_key(settings))


def protect(
    settings: Settings, snapshot_id: str, schema: Schema, dataset: DatasetConfig
) -> ProtectedTable:
    """Encode a snapshot behind the door that opens for spending primitives only.

    Raises:
        CuSynError: the snapshot is missing, damaged or not of the declared form.

    Privacy: reads raw data.
    """
    from include.data.private import ProtectedTable

    ref = snapshot_store(settings).open(snapshot_id)
    return ProtectedTable.from_snapshot(ref.path, schema, dataset, protected_key(settings))


def _make(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(32))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink(missing_ok=True)
