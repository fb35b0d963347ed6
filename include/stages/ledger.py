"""The ledger with its witnesses: checkpoints signed by a key, and kept in a folder, outside it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.settings import Settings

if TYPE_CHECKING:
    from include.budget.ledger import Ledger
    from include.budget.verify import Anchor, VerifyReport
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

    return Ledger(connect(url), guard=guard(exported_checkpoints(settings.checkpoints_dir)))


def witness(place: Workplace) -> str:
    """Sign where the ledger stands and keep the statement outside the database.

    Returns:
        The name of the checkpoint's file.

    Raises:
        LedgerRewound: an exported checkpoint is unknown to the ledger; nothing was signed, because
            a younger witness would hide the loss.

    Privacy: ledger only.
    """
    from include.budget.anchors import exported_checkpoints, guard
    from include.budget.checkpoint import checkpoint, export_checkpoint
    from include.publishing.signing import load_signer

    folder = place.settings.checkpoints_dir
    made = checkpoint(
        place.ledger.engine,
        load_signer(place.settings.keys_dir),
        guard=guard(exported_checkpoints(folder)),
    )
    return export_checkpoint(made, folder).name


def exported_anchors(settings: Settings) -> list[Anchor]:
    """Return what every exported checkpoint has seen of the journal.

    Privacy: ledger only.
    """
    from include.budget.anchors import CHECKPOINT_PATTERN, checkpoint_anchor

    files = sorted(settings.checkpoints_dir.glob(CHECKPOINT_PATTERN))
    return [checkpoint_anchor(path) for path in files]


def verify_ledger(place: Workplace) -> VerifyReport:
    """Replay the whole journal and compare it with tables and exported checkpoints.

    Privacy: ledger only.
    """
    from include.budget.verify import verify

    report = verify(place.ledger.engine, exported_anchors(place.settings))
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
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(kept), encoding="utf-8")
    draft.replace(path)


def _verification(settings: Settings) -> Path:
    return settings.checkpoints_dir / "last-verification.json"
