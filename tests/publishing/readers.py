"""What a reader of a destination can see, and whether each thing is whole."""

from __future__ import annotations

import hashlib
import json

from include.publishing.folder import FolderTarget
from include.publishing.package import MANIFEST, SUMS
from include.publishing.s3 import S3Target
from include.publishing.targets import Target


def visible_releases(target: Target) -> dict[str, str]:
    """Release id -> prefix of everything a reader would take for a release; all must be whole."""
    found = {}
    for release in target._children("") if isinstance(target, FolderTarget) else _top(target):
        for period in target._children(release):
            for identifier in target._children(f"{release}/{period}"):
                prefix = f"{release}/{period}/{identifier}"
                if target._read(f"{prefix}/{MANIFEST}") is not None:
                    assert_whole(target, prefix)
                    found[identifier] = prefix
                elif isinstance(target, FolderTarget):
                    raise AssertionError(f"half a release is visible: {prefix}")
        pointer = target._read(f"{release}/latest.json")
        if pointer is not None:
            named = json.loads(pointer)
            assert named["release_id"] in found
            if named["status"] == "published":
                assert target._read(f"{release}/{named['manifest']}") is not None
    return found


def assert_whole(target: Target, prefix: str) -> None:
    sums = target._read(f"{prefix}/{SUMS}")
    assert sums is not None
    for line in sums.decode().splitlines():
        digest, name = line.split("  ")
        data = target._read(f"{prefix}/{name}")
        assert data is not None, name
        assert hashlib.sha256(data).hexdigest() == digest, name
    assert target._read(f"{prefix}/{SUMS}.sig") is not None
    assert target._read(f"{prefix}/{SUMS}.key.pem") is not None
    assert prefix.rsplit("-", 1)[1] == hashlib.sha256(sums).hexdigest()[:12]


def _top(target: S3Target) -> list[str]:
    start = f"{target.prefix}/" if target.prefix else ""
    answer = target.client.list_objects_v2(Bucket=target.bucket, Prefix=start, Delimiter="/")
    return [p["Prefix"][len(start) :].rstrip("/") for p in answer.get("CommonPrefixes", [])]
