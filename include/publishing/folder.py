"""A folder as a destination: a release appears in one rename, or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from include.publishing.errors import (
    DestinationDeniedError,
    DestinationUnavailableError,
    PublishError,
)
from include.publishing.package import MANIFEST, file_digest
from include.publishing.targets import Target

STALE_AFTER = 3600  # seconds after which an unfinished copy is nobody's any more
_CHUNK = 1 << 20


class FolderTarget(Target):
    """Publish into a local or mounted folder.

    Args:
        folder: the destination; made when it is missing.

    Privacy: post-processing.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.uri = str(folder)
        self._staged: dict[str, Path] = {}

    def _read(self, key: str) -> bytes | None:
        with self._plain():
            try:
                return (self.folder / key).read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                return None

    def _digest(self, key: str) -> str | None:
        prefix, _, name = key.rpartition("/")
        path = self._staged.get(prefix, self.folder / prefix) / name
        with self._plain():
            try:
                return file_digest(path)
            except (FileNotFoundError, NotADirectoryError):
                return None

    def _children(self, key: str) -> list[str]:
        folder = self.folder / key
        with self._plain():
            if not folder.is_dir():
                return []
            return sorted(
                entry.name
                for entry in folder.iterdir()
                if entry.is_dir() and not entry.name.startswith(".")
            )

    def _place(self, package_dir: Path, prefix: str, files: dict[str, str]) -> None:
        """Copy everything into a hidden folder beside the final one, each file made durable."""
        final = self.folder / prefix
        with self._plain():
            if final.exists():
                # Content without a manifest was not put there by a publisher.
                raise self._other_content(prefix, "")
            final.parent.mkdir(parents=True, exist_ok=True)
            self._sweep(final)
            stage = final.parent / f".{final.name}.{os.getpid()}-{os.urandom(4).hex()}"
            stage.mkdir()
            self._staged[prefix] = stage
            for name in files:
                self._copy(package_dir / name, stage / name)
            _sync_folder(stage)

    def _commit(self, package_dir: Path, prefix: str, files: dict[str, str]) -> None:
        stage, final = self._staged.pop(prefix, None), self.folder / prefix
        with self._plain():
            if stage is not None:
                if file_digest(stage / MANIFEST) != files[MANIFEST]:
                    raise self._other_content(prefix, MANIFEST)
                try:
                    self._rename(stage, final)
                except OSError as fault:
                    if fault.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                        raise
                    shutil.rmtree(stage, ignore_errors=True)  # another publisher was first
                _sync_folder(final.parent)
        for name, digest in files.items():
            if self._digest(f"{prefix}/{name}") != digest:
                raise self._other_content(prefix, name)

    def _replace(self, key: str, change: Callable[[bytes | None], bytes | None]) -> None:
        path = self.folder / key
        with self._plain():
            path.parent.mkdir(parents=True, exist_ok=True)
            with _locked(self._lock_of(path)):
                new = change(self._read(key))
                if new is not None:
                    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
                    self._write(draft, new)
                    self._rename(draft, path)
                    _sync_folder(path.parent)

    def _lock_of(self, path: Path) -> Path:
        """Return the lock of a file's folder; beside a package, since it is no part of one."""
        folder = path.parent
        if folder == self.folder:
            return folder / ".lock"
        return folder.with_name(f".{folder.name}.lock")

    def _abandon(self, prefix: str) -> None:
        stage = self._staged.pop(prefix, None)
        if stage is not None:
            shutil.rmtree(stage, ignore_errors=True)

    # Each of the three is one step that either happened or did not.

    def _copy(self, source: Path, target: Path) -> None:
        with source.open("rb") as reader, target.open("xb") as writer:
            shutil.copyfileobj(reader, writer, _CHUNK)
            writer.flush()
            os.fsync(writer.fileno())

    def _write(self, path: Path, data: bytes) -> None:
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _rename(self, source: Path, target: Path) -> None:
        source.rename(target)

    def _sweep(self, final: Path) -> None:
        """Remove copies of this release that a crash left; recent ones may be at work."""
        for leftover in final.parent.glob(f".{final.name}.*"):
            if time.time() - leftover.stat().st_mtime > STALE_AFTER:
                shutil.rmtree(leftover, ignore_errors=True)

    @contextmanager
    def _plain(self) -> Iterator[None]:
        """Tell a fault of the file system in one sentence."""
        try:
            yield
        except OSError as fault:
            raise plain_fault(fault, self.uri) from fault


def plain_fault(fault: OSError, place: str) -> PublishError:
    """Return the sentence for a fault of the file system.

    Args:
        fault: what the operating system said.
        place: the destination, for the sentence.

    Returns:
        The error to raise; retryable where waiting helps.

    Privacy: post-processing.
    """
    if fault.errno in (errno.ENOSPC, errno.EDQUOT):
        return DestinationUnavailableError(
            f"{place}: the disk is full; free space there, then run the task again."
        )
    if fault.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return DestinationDeniedError(
            f"{place}: no permission to write; give the worker's user write access to it."
        )
    if fault.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG):
        return DestinationDeniedError(
            f"{place}: a part of the path is not a usable folder; correct publish.uri."
        )
    return DestinationUnavailableError(
        f"{place}: the folder cannot be used ({os.strerror(fault.errno or 0)}); "
        "check that it is mounted, then run the task again."
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an advisory lock: the pointer is read and replaced by one publisher at a time."""
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
