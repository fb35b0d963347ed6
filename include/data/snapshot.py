"""Immutable copies of the source in the protected store.

A snapshot is named at random. Its keyed MAC, which recognises content that is already stored, and
its nonce never leave the protected store; only the id and the commitment do.

Layout: `<protected>/snapshots/<id>/{data.parquet, meta.json}` and `<protected>/snapshots/known/`.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.data.errors import SnapshotError, without_values
from include.data.partition import Partition
from include.data.snapshot_file import Chunk, settle, store_rows
from include.folders import make_folder

_ID = re.compile(r"snap-[0-9a-f]{32}")
_DATA, _META = "data.parquet", "meta.json"


@dataclass(frozen=True)
class SnapshotRef:
    """A snapshot as the rest of the product knows it. The MAC and the path stay with the store.

    Privacy: ledger only (id and commitment tell nothing about the rows).
    """

    snapshot_id: str
    path: Path
    mac: str
    commitment: str

    def __repr__(self) -> str:
        return f"SnapshotRef({self.snapshot_id})"


class SnapshotStore:
    """Writes and opens snapshots in one protected folder.

    Args:
        protected_dir: folder that only trusted workers can read; made with mode 0700.
        key: secret of the store, at least 16 bytes.

    Privacy: reads raw data.
    """

    def __init__(self, protected_dir: Path, key: bytes) -> None:
        if len(key) < 16:
            raise SnapshotError("the snapshot key is shorter than 16 bytes; create a new key file")
        self._root = Path(protected_dir) / "snapshots"
        self._key = key

    def write(
        self,
        chunks: Iterable[Chunk],
        partition: Partition | tuple[str, str] | None = None,
        *,
        scope: str = "",
        facts: dict[str, Any] | None = None,
    ) -> SnapshotRef:
        """Store a table once; content already stored under the same scope gives its snapshot.

        Args:
            chunks: the source's rows in pieces; only one piece is held at a time.
            partition: keep only the rows whose column equals a value.
            scope: public text mixed into the MAC (dataset name), so that two datasets never share.
            facts: public facts of the source's form (column names, typed or not), kept beside it.

        Returns:
            A reference; equal content gives an equal one, also after its data were deleted or
            damaged: then they are put back.

        Raises:
            FormatError: chunks differ in their columns, or the partition column is missing.
            SnapshotError: writing failed; only the class of the error is told.

        Privacy: reads raw data.
        """
        part = Partition(*partition) if isinstance(partition, tuple) else partition
        make_folder(self._root, mode=0o700)
        self._sweep()
        draft = self._root / f"draft-{secrets.token_hex(8)}"
        draft.mkdir(mode=0o700)
        try:
            return without_values(
                lambda: self._write(draft, chunks, part, scope, facts or {}),
                SnapshotError,
                "writing the snapshot",
            )
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def open(self, snapshot_id: str, *, check: bool = True) -> SnapshotRef:
        """Find a snapshot and check that it is as it was written.

        Args:
            snapshot_id: as returned by `write`.
            check: also compare the file's keyed checksum.

        Raises:
            SnapshotError: it does not exist, was deleted, or its file was changed.

        Privacy: reads raw data.
        """
        meta = self._meta(snapshot_id)
        path = self._root / snapshot_id / _DATA
        if not path.is_file():
            raise SnapshotError(f"the data of {snapshot_id} were deleted; run load again")
        if check and not hmac.compare_digest(self._file_mac(path), meta["file_mac"]):
            raise SnapshotError(
                f"the file of {snapshot_id} is not as it was written; restore the protected store "
                "and its key from their backup"
            )
        return SnapshotRef(snapshot_id, path, meta["mac"], meta["commitment"])

    def facts(self, snapshot_id: str) -> dict[str, Any]:
        """Return the public facts of the source's form that were stored with a snapshot.

        Privacy: ledger only (names and types).
        """
        return dict(self._meta(snapshot_id)["facts"])

    def delete(self, snapshot_id: str) -> None:
        """Remove a snapshot's data; its commitment and nonce stay, so that an audit still works.

        Loading the same content again brings the data back under the same id.

        Privacy: ledger only.
        """
        self._meta(snapshot_id)
        (self._root / snapshot_id / _DATA).unlink(missing_ok=True)

    def is_deleted(self, snapshot_id: str) -> bool:
        """Tell whether a snapshot's data were removed.

        Raises:
            SnapshotError: there is no such snapshot.

        Privacy: ledger only.
        """
        self._meta(snapshot_id)
        return not (self._root / snapshot_id / _DATA).exists()

    def expired(self, max_age_days: float, *, now: float | None = None) -> list[str]:
        """Return the snapshots whose data are older than the retention rule allows.

        Args:
            max_age_days: age in days, since the content was last loaded.
            now: seconds since the epoch; the clock when None.

        Privacy: ledger only.
        """
        limit = (time.time() if now is None else now) - max_age_days * 86_400
        old = [p.parent for p in self._root.glob(f"snap-*/{_DATA}")]
        return sorted(p.name for p in old if (p / _META).stat().st_mtime < limit)

    def _write(
        self,
        draft: Path,
        chunks: Iterable[Chunk],
        part: Partition | None,
        scope: str,
        facts: dict[str, Any],
    ) -> SnapshotRef:
        mac = hmac.new(self._key, digestmod=hashlib.sha256)
        digest = hashlib.sha256()
        header = json.dumps([scope, [part.column, part.value] if part else None]).encode()
        mac.update(len(header).to_bytes(8, "little") + header)
        names = store_rows(draft / _DATA, chunks, part, (mac, digest))
        columns = json.dumps(names).encode()
        mac.update(columns)
        digest.update(columns)
        known = self._known(mac.hexdigest())
        if known is not None:
            return self._put_back(known, draft / _DATA)
        nonce = secrets.token_bytes(32)
        meta = {
            "mac": mac.hexdigest(),
            "commitment": hashlib.sha256(nonce + digest.digest()).hexdigest(),
            "nonce": nonce.hex(),
            "file_mac": self._file_mac(draft / _DATA),
            "facts": {**facts, "columns": names},
        }
        (draft / _META).write_text(json.dumps(meta))
        for name in (_DATA, _META):
            settle(draft / name)
        return self._keep(draft, mac.hexdigest())

    def _keep(self, draft: Path, mac: str) -> SnapshotRef:
        """Name the draft; of two writers of the same content the first one's name stands."""
        snapshot_id = f"snap-{secrets.token_hex(16)}"
        draft.rename(self._root / snapshot_id)
        known = self._root / "known"
        make_folder(known, mode=0o700)
        note = known / f".{snapshot_id}"
        note.write_text(snapshot_id)
        try:
            os.link(note, known / mac)
        except FileExistsError:
            other = self._known(mac)
            if other is not None:
                shutil.rmtree(self._root / snapshot_id, ignore_errors=True)
                return self.open(other, check=False)
            note.replace(known / mac)  # a note whose snapshot was removed by hand
        finally:
            note.unlink(missing_ok=True)
        return self.open(snapshot_id, check=False)

    def _put_back(self, snapshot_id: str, data: Path) -> SnapshotRef:
        """Return a known snapshot, with its data if they were deleted or are damaged."""
        folder = self._root / snapshot_id
        with contextlib.suppress(SnapshotError):
            found = self.open(snapshot_id)
            os.utime(folder / _META)  # its age counts from the last time it was loaded
            return found
        meta = {**self._meta(snapshot_id), "file_mac": self._file_mac(data)}
        fresh = data.with_name(_META)
        fresh.write_text(json.dumps(meta))
        for path in (data, fresh):
            settle(path)
            path.replace(folder / path.name)
        return self.open(snapshot_id)

    def _known(self, mac: str) -> str | None:
        """Return the id under which content is known, if its description is still there."""
        try:
            snapshot_id = (self._root / "known" / mac).read_text()
            self._meta(snapshot_id)
        except (OSError, SnapshotError):
            return None
        return snapshot_id

    def _sweep(self) -> None:
        """Remove what a killed writer left behind; a draft of this day may still be written."""
        for draft in self._root.glob("draft-*"):
            with contextlib.suppress(OSError):
                if draft.stat().st_mtime < time.time() - 86_400:
                    shutil.rmtree(draft, ignore_errors=True)

    def _meta(self, snapshot_id: str) -> dict[str, Any]:
        if not _ID.fullmatch(snapshot_id):
            raise SnapshotError("that is not a snapshot id; use the one that load returned")
        try:
            meta: dict[str, Any] = json.loads((self._root / snapshot_id / _META).read_text())
        except (OSError, ValueError):
            raise SnapshotError(
                f"{snapshot_id} is not in the protected store; run load again"
            ) from None
        return meta

    def _file_mac(self, path: Path) -> str:
        mac = hmac.new(self._key, b"file", hashlib.sha256)
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                mac.update(block)
        return mac.hexdigest()
