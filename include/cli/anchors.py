"""Published manifests as witnesses of the journal."""

from __future__ import annotations

import json
from pathlib import Path

from include.budget.verify import Anchor
from include.errors import CuSynError


def anchors_of(manifest: Path) -> list[Anchor]:
    """Return the journal entry that a manifest saw.

    Args:
        manifest: a datapackage.json of a release.

    Raises:
        CuSynError: the file is no manifest of a release.

    Privacy: ledger only.
    """
    try:
        lineage = json.loads(manifest.read_text(encoding="utf-8"))["dp"]["lineage"]
        entry = lineage["ledger_entry"]
        return [Anchor(int(entry["seq"]), str(entry["hash"]), str(manifest))]
    except (OSError, ValueError, KeyError, TypeError):
        raise CuSynError(
            f"{manifest}: not the manifest of a release; name its datapackage.json"
        ) from None
