"""Where files lie: a local path or an object in a store. Both open as seekable bytes."""

from __future__ import annotations

import io
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from include.config.errors import did_you_mean
from include.connections import S3Parameters
from include.data.errors import SourceBusyError, SourceError

_ENDINGS = {
    "csv": (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"),
    "parquet": (".parquet", ".pq"),
}
_HIVE = re.compile(r"(?P<name>[^=/]+)=(?P<value>[^/]*)")
_BLOCK = 8 << 20
_FILE, _FOLDER = "a regular file", "a folder"
_KINDS = {
    stat.S_IFREG: _FILE,
    stat.S_IFDIR: _FOLDER,
    stat.S_IFIFO: "a named pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class Place(Protocol):
    """One file: its path below the source's root, and how to open it."""

    @property
    def relative(self) -> str:
        """Path below the root, with forward slashes."""

    def open(self) -> IO[bytes]:
        """Open it for reading; it can seek."""


def hive_columns(place: Place) -> dict[str, str]:
    """Return the columns that folder names such as year=1994 tell.

    Privacy: post-processing (names of folders; a partition's value is public by layout).
    """
    found = [_HIVE.fullmatch(part) for part in place.relative.split("/")[:-1]]
    return {match["name"]: match["value"] for match in found if match}


def is_wanted(name: str, file_format: str) -> bool:
    """Tell whether a file in a folder belongs to the source, by its ending.

    Privacy: post-processing (names only).
    """
    base = name.rsplit("/", 1)[-1]
    return base.lower().endswith(_ENDINGS[file_format]) and not base.startswith((".", "_"))


@dataclass(frozen=True)
class LocalFile:
    """A file on disk.

    Privacy: reads raw data when opened.
    """

    path: Path
    relative: str

    def open(self) -> IO[bytes]:
        """Open it for reading.

        Raises:
            SourceError: the operating system refused; its own message would tell the file's name,
                which may be a value.
        """
        try:
            return self.path.open("rb")
        except OSError as raw:
            error = SourceError(
                f"a file of the source cannot be opened ({raw.strerror}); let the worker's user "
                "read it, and run load again"
            )
        raise error


def local_places(path: Path, shown: str, file_format: str) -> list[LocalFile]:
    """Return a file, or the files of a folder and its subfolders by name.

    Args:
        path: file or folder.
        shown: the path as the steward wrote it.
        file_format: csv or parquet; picks files in a folder by ending.

    Raises:
        SourceError: there is nothing there, or something that is no regular file; it is not opened.

    Privacy: post-processing (names only).
    """
    kind = _kind(path)
    if kind == _FILE:
        return [LocalFile(path, path.name)]
    if kind is None:
        raise _absent(path, shown)
    if kind != _FOLDER:
        raise SourceError(
            f"the source {shown} is {kind}, and a regular file or a folder of them is wanted; "
            "write the rows to a file and name it in source.path"
        )
    files = []
    for p in path.rglob("*"):
        if (kind := _kind(p)) == _FOLDER or not is_wanted(p.name, file_format):
            continue
        if kind != _FILE:
            raise SourceError(
                f"the folder {shown} holds {kind or 'a link that leads nowhere'} where a "
                f"{file_format} file is wanted; put a regular file in its place, or take it away"
            )
        files.append(p)
    if not files:
        raise SourceError(
            f"the folder {shown} holds no {file_format} file; put the files there or correct "
            "source.format"
        )
    places = [LocalFile(p, p.relative_to(path).as_posix()) for p in files]
    return sorted(places, key=lambda place: place.relative)


def _kind(path: Path) -> str | None:
    """Say what lies at a place without opening it; None where nothing does."""
    try:
        return _KINDS.get(stat.S_IFMT(path.stat().st_mode), "no regular file")
    except PermissionError:
        return "a place this user may not look into"
    except (OSError, ValueError):
        return None


def _absent(path: Path, shown: str) -> SourceError:
    if path.is_symlink():
        return SourceError(
            f"the source {shown} is a link that leads nowhere; put the file it names there or "
            "correct source.path in the dataset file"
        )
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    near = [p.name for p in beside if "=" not in p.name]  # the name of a partition is a value
    hint = f" ({did_you_mean(path.name, near)})" if near else ""
    return SourceError(
        f"the source {shown} does not exist; put the file there or correct source.path in the "
        f"dataset file{hint}"
    )


@dataclass(frozen=True)
class S3Object:
    """An object in a store, read by ranges: nothing is written to a temporary file.

    Privacy: reads raw data when opened.
    """

    client: Any = field(repr=False)
    bucket: str
    key: str
    size: int
    etag: str
    relative: str

    def open(self) -> IO[bytes]:
        """Open it for reading; a change of the object while it is read is an error."""
        return io.BufferedReader(_Ranges(self), buffer_size=1 << 20)


class _Ranges(io.RawIOBase):
    """A seekable view of an object, fetched in blocks."""

    def __init__(self, item: S3Object) -> None:
        self._item, self._at = item, 0
        self._block, self._start = b"", 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._item.size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._item.size:
            return 0
        if not self._start <= self._at < self._start + len(self._block):
            self._fetch()
        part = self._block[self._at - self._start :][: len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)

    def _fetch(self) -> None:
        item, at = self._item, self._at
        span = f"bytes={at}-{min(at + _BLOCK, item.size) - 1}"
        try:
            answer = item.client.get_object(
                Bucket=item.bucket, Key=item.key, Range=span, IfMatch=item.etag
            )
            self._block, self._start = answer["Body"].read(), at
        except Exception as raw:
            error = _told(raw, f"s3://{item.bucket}/{item.key}", item.bucket)
        else:
            return
        raise error


def s3_places(uri: str, parameters: S3Parameters, file_format: str) -> list[S3Object]:
    """Return an object, or the objects under a prefix by name.

    Args:
        uri: s3://bucket/key or s3://bucket/prefix/.
        parameters: endpoint and credentials; what is not given comes from the environment.
        file_format: csv or parquet; picks objects under a prefix by ending.

    Raises:
        SourceError: the bucket or object is not there, access is denied, or no answer comes.

    Privacy: post-processing (names only).
    """
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    client = parameters.client()
    try:
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=key)
        found = [item for page in pages for item in page.get("Contents", [])]
    except Exception as raw:
        error = _told(raw, uri, bucket)
    else:
        return _chosen(client, bucket, key, uri, found, file_format)
    raise error


def _chosen(
    client: Any, bucket: str, key: str, uri: str, found: list[Any], file_format: str
) -> list[S3Object]:
    exact = [item for item in found if item["Key"] == key]
    prefix = key if key.endswith("/") or not key else key + "/"
    inside = [i for i in found if i["Key"].startswith(prefix) and is_wanted(i["Key"], file_format)]
    items = exact or sorted(inside, key=lambda item: str(item["Key"]))
    if not items:
        raise SourceError(
            f"{uri} holds no {file_format} object; correct source.path in the dataset file"
        )
    return [
        S3Object(client, bucket, i["Key"], i["Size"], i["ETag"], _below(i["Key"], prefix))
        for i in items
    ]


def _below(key: str, prefix: str) -> str:
    return key.removeprefix(prefix) if key.startswith(prefix) else key.rsplit("/", 1)[-1]


def _told(error: Exception, uri: str, bucket: str) -> SourceError:
    """Say what went wrong with the store; its own message may hold request details."""
    response = getattr(error, "response", {})
    code = str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""
    if code in ("403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch"):
        return SourceError(
            f"reading {uri} was denied (403); check the connection's key and that it may list and "
            f"read the bucket {bucket}"
        )
    if code in ("404", "NoSuchBucket"):
        return SourceError(
            f"the bucket {bucket} does not exist; correct source.path in the dataset file"
        )
    if code in ("412", "PreconditionFailed", "NoSuchKey"):
        return SourceBusyError(f"{uri} was changed while it was read; run load again")
    name = code or type(error).__name__
    return SourceBusyError(
        f"the object store did not answer for {uri} ({name}); check endpoint_url and retry"
    )
