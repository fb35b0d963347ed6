"""From the `publish.uri` of a release file to the destination it names."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from include.connections import S3Parameters
from include.publishing.errors import PublishError
from include.publishing.folder import FolderTarget
from include.publishing.s3 import S3Target
from include.publishing.targets import Target


def target_for(uri: str, *, base: Path, s3: S3Parameters | None = None) -> Target:
    """Return the destination of an address.

    Args:
        uri: a folder (relative ones lie under `base`), file:///folder, or s3://bucket/prefix.
        base: where relative folders lie.
        s3: how to reach the store of an s3:// address.

    Returns:
        The target; nothing is contacted or created yet.

    Raises:
        PublishError: the address is of no known kind.

    Privacy: post-processing.
    """
    parts = urlsplit(uri)
    if parts.scheme == "s3":
        if not parts.netloc:
            raise PublishError(f"publish.uri: '{uri}' names no bucket; write s3://bucket/prefix.")
        return S3Target(parts.netloc, parts.path, s3)
    if parts.scheme == "file":
        return FolderTarget(Path(parts.path))
    if parts.scheme or not uri.strip():
        raise PublishError(
            f"publish.uri: '{uri}' is no folder and no s3:// address; "
            "write a folder such as releases/ or s3://bucket/prefix."
        )
    return FolderTarget(base / uri)
