"""Making the folders that the product writes into."""

from __future__ import annotations

import errno
from pathlib import Path

from include.errors import CuSynError


class FolderError(CuSynError):
    """A folder of this installation cannot be made or is none.

    Privacy: ledger only.
    """


def make_folder(path: Path, *, mode: int = 0o777) -> Path:
    """Make a folder and those above it where they are missing.

    Args:
        path: the folder.
        mode: permissions of the folder itself where it is made, less the process's umask.

    Returns:
        The same path.

    Raises:
        FolderError: something else lies there, or the operating system refused; names the place
            and the fix.

    Privacy: ledger only.
    """
    try:
        path.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as fault:
        error = FolderError(_sentence(path, fault))
    else:
        return path
    raise error


def _sentence(path: Path, fault: OSError) -> str:
    if fault.errno in (errno.EEXIST, errno.ENOTDIR):
        there = [one for one in (path, *path.parents) if one.is_symlink() or one.exists()]
        return (
            f"{there[0] if there else path} is not a folder, and a folder is needed there; move "
            "it away, or name another folder in the CUSYN_ setting that leads there"
        )
    if fault.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return (
            f"the folder {path} cannot be made, for want of permission; give this user write "
            "access to the folder above it, or name another in the CUSYN_ setting that leads there"
        )
    return (
        f"the folder {path} cannot be made ({fault.strerror}); free space or mount it, then run "
        "this again"
    )
