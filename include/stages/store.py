"""The protected store of this installation: its folder and its key."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from include.errors import CuSynError
from include.folders import make_folder
from include.settings import Settings

if TYPE_CHECKING:
    from include.budget.models import Charge
    from include.config.datasets import DatasetConfig
    from include.data.private import ProtectedTable
    from include.data.schema import Schema
    from include.data.snapshot import SnapshotRef, SnapshotStore

KEY_FILE = "snapshot-mac.key"


class SnapshotLost(CuSynError):
    """The protected store no longer holds what a charge pays for.

    Privacy: ledger only.
    """


def protected_key(settings: Settings) -> bytes:
    """Return the secret that recognises known snapshots and orders a unit's rows.

    Made on first use, in a file only its owner may read; of two first users one wins.

    Raises:
        CuSynError: the file is shorter than a key, others may read it, or it is missing where
            snapshots were made with it.

    Privacy: ledger only.
    """
    path = settings.keys_dir / KEY_FILE
    # First this: of two first users the other one may make key and snapshot meanwhile.
    used = any((settings.protected_dir / "snapshots").glob("snap-*"))
    if not path.exists():
        if used:
            raise CuSynError(
                f"{path}: the snapshot key is missing, and nothing else opens the snapshots in "
                f"{settings.protected_dir}; restore the key from its backup (docs/operations.md, "
                "Keys)"
            )
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


def require_snapshot(settings: Settings, charge: Charge) -> SnapshotRef:
    """Open the one snapshot a charge pays for; another would have to be paid for anew.

    Raises:
        SnapshotLost: it is missing or damaged; says what can still be done.

    Privacy: reads raw data.
    """
    from include.data.errors import SnapshotError

    try:
        return snapshot_store(settings).open(charge.snapshot_id or "")
    except SnapshotError:
        lost = SnapshotLost(
            f"charge {charge.charge_id}: the snapshot it pays for is missing from the protected "
            "store or damaged, and loading again brings no other; restore "
            f"{settings.protected_dir} and its key from their backup, or {_way_out(charge)}"
        )
    raise lost


def require_held(settings: Settings, snapshot_id: str) -> None:
    """Refuse a snapshot that the ledger recognised by its content and the store no longer holds.

    Its id stands for one nonce, which went with it: no file written now can take its place.

    Raises:
        SnapshotLost: says what can still be done.

    Privacy: ledger only (an id; no row is read).
    """
    from include.data.errors import SnapshotError

    try:
        snapshot_store(settings).open(snapshot_id, check=False)
        return
    except SnapshotError:
        lost = SnapshotLost(
            f"the ledger knows this content as {snapshot_id}, which is gone from the protected "
            f"store, and loading again does not bring it back; restore {settings.protected_dir} "
            "from its backup, or where there is none replace the snapshot key "
            "(docs/operations.md, Keys)"
        )
    raise lost


def _way_out(charge: Charge) -> str:
    admin = "`python -m include.cli admin"
    if charge.state == "opened":
        return (
            f"give the charge up with {admin} forfeit {charge.charge_id} --reason ...`, whose "
            "budget stays spent, and release this data under a new period"
        )
    if charge.state == "reserved":
        return (
            f"give the reservation back with {admin} void {charge.charge_id} --reason ...` and "
            "trigger a new run"
        )
    return "trigger a new run"


def _make(path: Path) -> None:
    make_folder(path.parent, mode=0o700)
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
