"""A folder in particular: no permission, a full disk, leftovers of a crash."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from include.publishing.errors import DestinationDeniedError, DestinationUnavailableError
from include.publishing.folder import STALE_AFTER, FolderTarget, plain_fault
from tests.publishing.readers import visible_releases


@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        (errno.ENOSPC, DestinationUnavailableError, "the disk is full"),
        (errno.EDQUOT, DestinationUnavailableError, "the disk is full"),
        (errno.EACCES, DestinationDeniedError, "no permission to write"),
        (errno.EROFS, DestinationDeniedError, "no permission to write"),
        (errno.ENOTDIR, DestinationDeniedError, "not a usable folder"),
        (errno.EIO, DestinationUnavailableError, "cannot be used"),
    ],
)
def test_each_fault_of_the_file_system_is_one_sentence(code, kind, words):
    fault = plain_fault(OSError(code, os.strerror(code)), "/srv/releases")
    assert type(fault) is kind
    assert words in str(fault)
    assert str(fault).startswith("/srv/releases: ")
    assert str(fault).count("\n") == 0


def test_a_disk_that_fills_up_leaves_nothing_and_a_retry_completes(tmp_path, package):
    target = FolderTarget(tmp_path / "releases")
    real, written = target._copy, []

    def fills_up(source, destination):
        if len(written) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(source)
        real(source, destination)

    target._copy = fills_up
    with pytest.raises(DestinationUnavailableError, match="free space there"):
        target.publish(package.path)
    assert [p for p in (tmp_path / "releases").rglob("*") if p.is_file()] == []
    target._copy = real
    assert target.publish(package.path).is_latest


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path, package):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    with pytest.raises(DestinationDeniedError, match="give the worker's user write access"):
        FolderTarget(locked / "releases").publish(package.path)


def test_a_file_where_the_folder_should_be(tmp_path, package):
    (tmp_path / "releases").write_text("x")
    with pytest.raises(DestinationDeniedError, match="not a usable folder"):
        FolderTarget(tmp_path / "releases").publish(package.path)


def test_old_leftovers_are_swept_and_recent_ones_left_alone(tmp_path, package):
    target = FolderTarget(tmp_path)
    period = tmp_path / package.release / package.period
    old, recent = (period / f".{package.release_id}.{name}" for name in ("old", "recent"))
    for leftover in (old, recent):
        leftover.mkdir(parents=True)
        (leftover / "data.csv").write_text("half")
    past = time.time() - STALE_AFTER - 60
    os.utime(old, (past, past))
    target.publish(package.path)
    assert not old.exists()
    assert recent.exists()


def test_files_are_published_as_they_are(tmp_path, package):
    uri = FolderTarget(tmp_path).publish(package.path).uri
    published = {p.name: p.read_bytes() for p in (tmp_path / uri).iterdir()}
    assert published == {p.name: p.read_bytes() for p in package.path.iterdir()}


KILLED = """
import os, signal, sys
from pathlib import Path
from include.publishing.folder import FolderTarget
real, left = os.fsync, int(sys.argv[3])
def fsync(descriptor):
    global left
    real(descriptor)
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
os.fsync = fsync
print(FolderTarget(Path(sys.argv[1])).publish(Path(sys.argv[2])).is_latest)
"""


@pytest.mark.parametrize("step", [1, 6, 11, 12, 13, 14])
def test_a_publisher_that_is_really_killed_leaves_nothing_half(tmp_path, package, step):
    """SIGKILL after the n-th write has reached the disk: no cleaning up by anybody."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "out"), str(package.path), str(step)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    target = FolderTarget(tmp_path / "out")
    visible_releases(target)
    assert target.publish(package.path).is_latest
    assert list(visible_releases(target)) == [package.release_id]
