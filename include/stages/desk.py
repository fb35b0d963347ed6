"""One charge's folder: its rounds, transcript, synthetic table and report.

All of it is noisy or synthetic, so none of it is secret; but nothing is published from here before
`publish` says so. Files are written whole or not at all: a killed task leaves no half of one.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from include.folders import make_folder
from include.synthesis.plan import canonical_json


class Desk:
    """The files of one charge.

    Args:
        folder: an existing folder of this charge alone.

    Privacy: post-processing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.codes = folder / "synthetic.npy"
        self.table = folder / "synthetic.parquet"
        self.errors = folder / "interest_errors.json"
        self.report_html = folder / "report.html"
        self.report_json = folder / "report.json"
        self.package = folder / "package"

    def transcript(self, digest: str) -> Path:
        """Return the place of a transcript; named by its digest, so that a process which lost its
        right to read can never overwrite the sealed one."""
        return self.folder / f"transcript-{digest}.json"

    def write(self, path: Path, data: bytes) -> str:
        """Write a file durably, replacing it at once; returns its SHA-256."""
        make_folder(path.parent)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
        return hashlib.sha256(data).hexdigest()

    def write_round(self, number: int, payload: dict[str, Any]) -> str:
        """Keep a round's noisy answer; returns the digest the journal records."""
        return self.write(self._round(number), canonical_json(payload))

    def read_round(self, number: int) -> tuple[dict[str, Any], str] | None:
        """Return a round's answer and its digest, or None where there is none."""
        try:
            data = self._round(number).read_bytes()
            return json.loads(data), hashlib.sha256(data).hexdigest()
        except (OSError, ValueError):
            return None

    def rounds(self) -> list[int]:
        """Return the numbers of the rounds whose answers lie here, known to the ledger or not."""
        names = (path.stem for path in (self.folder / "rounds").glob("*.json"))
        return sorted(int(name) for name in names if name.isdecimal())

    def sealed_rounds(self) -> set[int]:
        """Return the numbers of the rounds that any transcript here is made of."""
        found = set()
        for path in self.folder.glob("transcript-*.json"):
            with suppress(OSError, ValueError, KeyError, TypeError):
                found |= {int(turn["round"]) for turn in json.loads(path.read_bytes())["rounds"]}
        return found

    def made(self) -> dict[str, bytes]:
        """Return what the table and the files made with it hold, by name; without missing ones."""
        return self._held(self.table, self.codes, self.errors)

    def report(self) -> dict[str, bytes]:
        """Return what the report's files hold, by name; without missing ones."""
        return self._held(self.report_json, self.report_html)

    def _held(self, *files: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in files if path.exists()}

    def _round(self, number: int) -> Path:
        return self.folder / "rounds" / f"{number:05d}.json"
