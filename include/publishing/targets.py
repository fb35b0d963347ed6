"""Where packages are published: what every destination promises, whatever it is made of.

Layout under the destination's address:

    <release>/latest.json                              the pointer readers follow
    <release>/notices.json                             withdrawals and replacements, newest last
    <release>/<period>/<release id>/datapackage.json   the manifest: written last, so that a
    <release>/<period>/<release id>/...                release with a manifest is complete

A release id names its content, so a prefix is written once. Publishing the same content again is a
success; other content is refused. Nobody ever sees half a release.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.publishing.errors import DestinationConflictError, PublishError
from include.publishing.package import (
    MANIFEST,
    PUBLIC_KEY,
    SIGNATURE,
    SUMS,
    BuiltPackage,
    checksums,
    describe,
    file_digest,
    path_part,
)

LATEST = "latest.json"
NOTICES = "notices.json"
WITHDRAWN = "WITHDRAWN.json"
SUPERSEDED = "SUPERSEDED.json"
MARKERS = (WITHDRAWN, SUPERSEDED)


@dataclass(frozen=True)
class Published:
    """A release that readers can see.

    Privacy: post-processing.
    """

    release_id: str
    uri: str  # of the release's own folder
    content_digest: str
    manifest_digest: str
    already_there: bool  # the same content had been published before
    is_latest: bool


class Target(ABC):
    """A destination. Subclasses say how bytes are kept; the order of writes is decided here.

    Privacy: post-processing.
    """

    uri: str

    def publish(
        self,
        package_dir: Path,
        release: str | None = None,
        period: str | None = None,
        release_id: str | None = None,
        *,
        supersedes: str | None = None,
    ) -> Published:
        """Publish a built package; the call may be repeated after any failure.

        Args:
            package_dir: a folder made by `build_package`.
            release: the release's name; checked against the package when given.
            period: its period; checked likewise.
            release_id: its id; checked likewise.
            supersedes: id of an earlier release that this one replaces; the manifest's when None.

        Returns:
            Where it lies.

        Raises:
            DestinationConflictError: other content lies where this package belongs.
            DestinationDeniedError: no permission, or no such bucket.
            DestinationUnavailableError: no answer, or no space; a retry may succeed.
            PublishError: the package on disk is not complete.

        Privacy: post-processing.
        """
        package = describe(package_dir)
        _same_package(package, release, period, release_id)
        files = _files(package_dir)
        supersedes = supersedes or _lineage(package_dir).get("supersedes")
        prefix = prefix_of(package.release, package.period, package.release_id)
        self._refuse_other(package, supersedes)
        present = self._read(f"{prefix}/{MANIFEST}") is not None
        try:
            if not present:
                self._place(package_dir, prefix, files)
            self._read_back(prefix, files)
            self._commit(package_dir, prefix, files)
        except PublishError:
            self._abandon(prefix)
            raise
        latest = self._advance(package, _created(package_dir))
        if supersedes is not None:
            self._notice(
                package, supersedes, "superseded", f"Replaced by {package.release_id}.", ""
            )
        return Published(
            package.release_id,
            f"{self.uri.rstrip('/')}/{prefix}/",
            package.content_digest,
            package.manifest_digest,
            present,
            latest,
        )

    def withdraw(self, release: str, period: str, release_id: str, *, reason: str, at: str) -> None:
        """Mark a published release as withdrawn; its files stay, the pointer no longer leads there.

        Args:
            release: the release's name.
            period: its period.
            release_id: its id.
            reason: one sentence for recipients.
            at: RFC 3339 time of the decision.

        Raises:
            PublishError: no such release is published here.

        Privacy: post-processing.
        """
        prefix = prefix_of(release, period, release_id)
        if self._read(f"{prefix}/{MANIFEST}") is None:
            raise PublishError(
                f"{self.uri}: the release {release_id} is not published here; "
                "check its name and period."
            )
        notice = {"status": "withdrawn", "release_id": release_id, "reason": reason, "at": at}

        def point_nowhere(old: bytes | None) -> bytes | None:
            pointer = _parsed(old)
            if pointer.get("release_id") != release_id:
                return None
            kept = {**pointer, **notice, "path": None, "manifest": None}
            return _json(kept)

        # The pointer first: programs follow it, people read the notices.
        self._replace(f"{path_part(release)}/{LATEST}", point_nowhere)
        self._replace(f"{prefix}/{WITHDRAWN}", lambda _: _json(notice))
        self._append_notice(release, notice)

    def latest(self, release: str) -> dict[str, Any] | None:
        """Return the pointer of a release, or None when nothing has been published.

        Privacy: post-processing.
        """
        pointer = self._read(f"{path_part(release)}/{LATEST}")
        return None if pointer is None else _parsed(pointer)

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a small file under this address, None when there is none.

        Raises:
            PublishError: the destination cannot be reached or read.

        Privacy: post-processing.
        """
        return self._read(name)

    # -- how bytes are kept: the subclass's part ------------------------------------------------

    @abstractmethod
    def _read(self, key: str) -> bytes | None:
        """Return an object's bytes, None when there is none."""

    @abstractmethod
    def _digest(self, key: str) -> str | None:
        """Return the SHA-256 of an object as read back, None when there is none."""

    @abstractmethod
    def _children(self, key: str) -> list[str]:
        """Return the names of the folders directly under a key."""

    @abstractmethod
    def _place(self, package_dir: Path, prefix: str, files: dict[str, str]) -> None:
        """Write the package's files where they stay invisible or incomplete without manifest."""

    @abstractmethod
    def _commit(self, package_dir: Path, prefix: str, files: dict[str, str]) -> None:
        """Make the release visible and read the manifest back; nothing to do if it is."""

    @abstractmethod
    def _replace(self, key: str, change: Any) -> None:
        """Exchange a small object in one step: `change(old bytes) -> new bytes | None`."""

    def _abandon(self, prefix: str) -> None:  # noqa: B027 - optional: a store may have nothing to tidy
        """Tidy up after a failure; what stays is invisible to readers either way."""

    # -- shared steps ---------------------------------------------------------------------------

    def _refuse_other(self, package: BuiltPackage, supersedes: str | None) -> None:
        """A period holds one valid release; the next one must name what it replaces."""
        folder = f"{path_part(package.release)}/{path_part(package.period)}"
        for other in self._children(folder):
            if other in (package.release_id, supersedes):
                continue
            if self._read(f"{folder}/{other}/{MANIFEST}") is None:
                continue  # an upload that never completed: no reader sees it
            if any(self._read(f"{folder}/{other}/{marker}") for marker in MARKERS):
                continue
            raise DestinationConflictError(
                f"{self.uri}: the period {package.period} of {package.release} already holds the "
                f"release {other}; withdraw it first, or publish a release that supersedes it."
            )

    def _read_back(self, prefix: str, files: dict[str, str]) -> None:
        """Compare what lies at the destination with the package, file by file."""
        for name, digest in files.items():
            if name == MANIFEST:
                continue  # `_commit` reads it back once it is visible
            found = self._digest(f"{prefix}/{name}")
            if found != digest:
                raise self._other_content(prefix, name)

    def _other_content(self, prefix: str, name: str) -> DestinationConflictError:
        return DestinationConflictError(
            f"{self.uri}: {prefix}/{name} already exists with other content and is not overwritten;"
            " move it away, or publish to another address."
        )

    def _advance(self, package: BuiltPackage, created: str) -> bool:
        """Move the pointer forward, never back to an older release."""
        folder = f"{path_part(package.period)}/{package.release_id}"
        pointer = {
            "format": "cusyn-latest/1",
            "status": "published",
            "release": package.release,
            "period": package.period,
            "release_id": package.release_id,
            "path": f"{folder}/",
            "manifest": f"{folder}/{MANIFEST}",
            "content_digest": f"sha256:{package.content_digest}",
            "manifest_digest": f"sha256:{package.manifest_digest}",
            "created": created,
        }

        def forward(old: bytes | None) -> bytes | None:
            known = _parsed(old)
            if known.get("release_id") == package.release_id:
                return None  # a repeat, or withdrawn meanwhile: leave it as it stands
            if (str(known.get("created", "")), str(known.get("release_id", ""))) > (
                created,
                package.release_id,
            ):
                return None
            return _json(pointer)

        self._replace(f"{path_part(package.release)}/{LATEST}", forward)
        known = self.latest(package.release) or {}
        return known.get("release_id") == package.release_id

    def _notice(
        self, package: BuiltPackage, release_id: str, status: str, reason: str, at: str
    ) -> None:
        """Tell readers of an earlier release, wherever its period, what became of it."""
        notice = {
            "status": status,
            "release_id": release_id,
            "reason": reason,
            "at": at,
            "by": package.release_id,
        }
        release = path_part(package.release)
        for period in self._children(release):
            if self._read(f"{release}/{period}/{release_id}/{MANIFEST}") is not None:
                self._replace(
                    f"{release}/{period}/{release_id}/{SUPERSEDED}", lambda _: _json(notice)
                )
        self._append_notice(package.release, notice)

    def _append_notice(self, release: str, notice: dict[str, Any]) -> None:
        def append(old: bytes | None) -> bytes | None:
            notices = _parsed(old).get("notices", [])
            same = ("status", "release_id", "by")
            if any(all(n.get(k) == notice.get(k) for k in same) for n in notices):
                return None
            return _json({"format": "cusyn-notices/1", "notices": [*notices, notice]})

        self._replace(f"{path_part(release)}/{NOTICES}", append)


def prefix_of(release: str, period: str, release_id: str) -> str:
    """Return the folder of a release, relative to the destination's address.

    Privacy: post-processing.
    """
    return f"{path_part(release)}/{path_part(period)}/{release_id}"


def _same_package(
    package: BuiltPackage, release: str | None, period: str | None, release_id: str | None
) -> None:
    asked = {"release": release, "period": period, "release_id": release_id}
    for name, value in asked.items():
        if value is not None and value != getattr(package, name):
            raise PublishError(
                f"{package.path}: the package is of {name} '{getattr(package, name)}', not "
                f"'{value}'; build it again."
            )


def _files(package_dir: Path) -> dict[str, str]:
    """Digests of every file of a package, the manifest last; checks them on disk on the way."""
    listed = checksums(package_dir)
    manifest = listed.pop(MANIFEST, None)
    if manifest is None:
        raise PublishError(f"{package_dir}: {SUMS} does not list {MANIFEST}; build it again.")
    files = dict(listed)
    for name in (SUMS, SIGNATURE, PUBLIC_KEY):
        if (package_dir / name).exists():
            files[name] = file_digest(package_dir / name)
    files[MANIFEST] = manifest
    for name, digest in files.items():
        path = package_dir / name
        if not path.is_file() or file_digest(path) != digest:
            raise PublishError(f"{path}: the file is not what {SUMS} says; build it again.")
    return files


def _lineage(package_dir: Path) -> dict[str, Any]:
    manifest = json.loads((package_dir / MANIFEST).read_text(encoding="utf-8"))
    lineage: dict[str, Any] = manifest["dp"]["lineage"]
    return lineage


def _created(package_dir: Path) -> str:
    return str(json.loads((package_dir / MANIFEST).read_text(encoding="utf-8"))["created"])


def _json(body: dict[str, Any]) -> bytes:
    return (json.dumps(body, ensure_ascii=False, indent=2) + "\n").encode()


def _parsed(data: bytes | None) -> dict[str, Any]:
    if data is None:
        return {}
    try:
        body = json.loads(data)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
