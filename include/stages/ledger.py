"""The ledger with its witnesses: checkpoints signed by a key, and kept in a folder, outside it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.folders import make_folder
from include.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from include.budget.ledger import Ledger
    from include.budget.verify import Anchor, VerifyReport
    from include.publishing.signing import Signer
    from include.stages.run import Workplace


def open_ledger(settings: Settings, url: str) -> Ledger:
    """Open the writer; it refuses to act where an exported checkpoint is unknown to it.

    A ledger restored from a backup would otherwise sell or measure the same budget twice.

    Args:
        settings: where checkpoints lie.
        url: SQLAlchemy URL of the ledger.

    Privacy: ledger only.
    """
    from include.budget.anchors import exported_checkpoints, guard
    from include.budget.ledger import Ledger
    from include.budget.store import connect

    source = exported_checkpoints(settings.checkpoints_dir, signed_here(settings))
    return Ledger(connect(url), guard=guard(source))


def witness(place: Workplace) -> str:
    """Sign where the ledger stands and keep the statement outside the database.

    Returns:
        The name of the checkpoint's file.

    Raises:
        LedgerRewound: an exported checkpoint is unknown to the ledger; nothing was signed, because
            a younger witness would hide the loss.
        WitnessDamaged: an exported checkpoint is damaged; nothing was signed either.

    Privacy: ledger only.
    """
    from include.budget.checkpoint import checkpoint, export_checkpoint

    signer = signer_of(place.settings)
    # The ledger's own guard has read the folder before; a new one would read every file again.
    made = checkpoint(place.ledger.engine, signer, guard=place.ledger.guard)
    return export_checkpoint(made, place.settings.checkpoints_dir).name


def signer_of(settings: Settings) -> Signer:
    """Open the key that signs here; make it only where nothing was ever signed.

    Raises:
        KeyFileError: it cannot be used, or it is missing where checkpoints show that there was one.

    Privacy: ledger only.
    """
    from include.budget.anchors import CHECKPOINT_PATTERN
    from include.publishing.signing import load_signer

    signed = any(settings.checkpoints_dir.glob(CHECKPOINT_PATTERN))
    return load_signer(settings.keys_dir, used=signed)


def require_witness(settings: Settings) -> None:
    """Refuse to spend where the spending could not be signed and kept outside the database.

    Raises:
        CuSynError: the key cannot be used, or the folder of checkpoints is none.

    Privacy: ledger only.
    """
    signer_of(settings)
    make_folder(settings.checkpoints_dir)


def exported_anchors(settings: Settings) -> tuple[list[Anchor], list[str]]:
    """Return what every exported checkpoint has seen of the journal, and which are damaged.

    Privacy: ledger only.
    """
    from include.budget.anchors import CHECKPOINT_PATTERN, WitnessDamaged, checkpoint_anchor

    signed, anchors, damaged = signed_here(settings), [], []
    for path in sorted(settings.checkpoints_dir.glob(CHECKPOINT_PATTERN)):
        try:
            anchors.append(checkpoint_anchor(path, signed))
        except WitnessDamaged as fault:
            damaged.append(str(fault))
    return anchors, damaged


def signed_here(settings: Settings) -> Callable[[str, str, str], bool]:
    """Return what tells whether a checkpoint was signed by one of this installation's keys.

    Where no public key is kept nothing can be told, and every checkpoint counts: the ledger's
    loss is noticed rather than missed.

    Privacy: ledger only.
    """
    from include.budget.checkpoint import message
    from include.publishing.signing import PUBLIC_FOLDER, KeyFileError, verify

    folder = settings.keys_dir / PUBLIC_FOLDER

    def signed(body: str, key_id: str, signature: str) -> bool:
        pems = {path.stem: path for path in folder.glob("*.pem")}
        if not pems:
            return True
        if key_id not in pems:
            return False
        try:
            return verify(pems[key_id].read_bytes(), bytes.fromhex(signature), message(body))
        except (OSError, ValueError, KeyFileError):
            return False

    return signed


def verify_ledger(place: Workplace) -> VerifyReport:
    """Replay the whole journal and compare it with tables and exported checkpoints.

    Privacy: ledger only.
    """
    from include.budget.verify import verify

    anchors, damaged = exported_anchors(place.settings)
    report = verify(place.ledger.engine, anchors, damaged)
    _keep_verification(place.settings, report)
    return report


def last_verification(settings: Settings) -> dict[str, Any] | None:
    """Return what the last verification found, or None where none is known here.

    Privacy: ledger only.
    """
    import json

    try:
        found: dict[str, Any] = json.loads(_verification(settings).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def _keep_verification(settings: Settings, report: VerifyReport) -> None:
    import json

    kept = report.to_dict() | {
        "at": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "problems": [str(problem) for problem in report.problems],
    }
    path = _verification(settings)
    make_folder(path.parent)
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(kept), encoding="utf-8")
    draft.replace(path)


def _verification(settings: Settings) -> Path:
    return settings.checkpoints_dir / "last-verification.json"
