"""An S3 bucket as a destination: objects first, the manifest last, conditional writes throughout.

An object store knows no rename, so a release counts as published when its manifest exists; readers
look for nothing else. Keys name their content: two publishers of one release write the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from include.connections import S3Parameters
from include.publishing.errors import (
    DestinationConflictError,
    DestinationDeniedError,
    DestinationUnavailableError,
    PublishError,
)
from include.publishing.package import MANIFEST
from include.publishing.targets import Target

_CHUNK = 1 << 20
_POINTER_TRIES = 12
_DENIED = {
    "AccessDenied",
    "403",
    "Forbidden",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "AllAccessDisabled",
    "AccountProblem",
}
_ABSENT = {"NoSuchKey", "404", "NotFound"}
_LOST_RACE = {"PreconditionFailed", "412", "ConditionalRequestConflict", "409", "NoSuchUpload"}
_NOT_OFFERED = {"NotImplemented", "501"}  # stores without conditional writes


class S3Target(Target):
    """Publish under a prefix of a bucket.

    Args:
        bucket: name of the bucket; it must exist.
        prefix: folder inside it, may be empty.
        parameters: how to reach the store.

    Privacy: post-processing.
    """

    def __init__(self, bucket: str, prefix: str = "", parameters: S3Parameters | None = None):
        self.bucket = bucket
        self.prefix = prefix.strip("/")
        self.parameters = parameters or S3Parameters()
        self.uri = f"s3://{bucket}/{self.prefix}".rstrip("/")
        self._cached: Any = None

    @property
    def client(self) -> Any:
        """The boto3 client; made on first use."""
        if self._cached is None:
            self._cached = self.parameters.client()
        return self._cached

    def _key(self, key: str) -> str:
        return f"{self.prefix}/{key}" if self.prefix else key

    def _read(self, key: str) -> bytes | None:
        found = self._get(key)
        return None if found is None else found[0]

    def _get(self, key: str) -> tuple[bytes, str] | None:
        """Bytes and entity tag of a small object."""
        with self._plain():
            try:
                answer = self.client.get_object(Bucket=self.bucket, Key=self._key(key))
                return answer["Body"].read(), answer["ETag"]
            except self.client.exceptions.ClientError as fault:
                if _code(fault) in _ABSENT:
                    return None
                raise

    def _digest(self, key: str) -> str | None:
        with self._plain():
            try:
                body = self.client.get_object(Bucket=self.bucket, Key=self._key(key))["Body"]
            except self.client.exceptions.ClientError as fault:
                if _code(fault) in _ABSENT:
                    return None
                raise
            digest = hashlib.sha256()
            for chunk in body.iter_chunks(_CHUNK):
                digest.update(chunk)
            return digest.hexdigest()

    def _children(self, key: str) -> list[str]:
        start = self._key(key) + "/"
        names: list[str] = []
        with self._plain():
            pages = self.client.get_paginator("list_objects_v2").paginate(
                Bucket=self.bucket, Prefix=start, Delimiter="/"
            )
            for page in pages:
                for entry in page.get("CommonPrefixes", []):
                    names.append(entry["Prefix"][len(start) :].rstrip("/"))
        return sorted(names)

    def _place(self, package_dir: Path, prefix: str, files: dict[str, str]) -> None:
        for name, digest in files.items():
            if name != MANIFEST:
                self._create(f"{prefix}/{name}", package_dir / name, digest)

    def _commit(self, package_dir: Path, prefix: str, files: dict[str, str]) -> None:
        """Everything else has been read back: now the manifest makes the release visible."""
        key = f"{prefix}/{MANIFEST}"
        self._create(key, package_dir / MANIFEST, files[MANIFEST])
        if self._digest(key) != files[MANIFEST]:
            raise self._other_content(prefix, MANIFEST)

    def _create(self, key: str, path: Path, digest: str) -> None:
        """Write an object that may exist already, but only with this content."""
        found = self._digest(key)
        if found is None:
            with self._plain():
                try:
                    self._put_new(key, path)
                    return
                except self.client.exceptions.ClientError as fault:
                    if _code(fault) not in _LOST_RACE:
                        raise
            found = self._digest(key)
        if found != digest:
            raise self._other_content(*key.rsplit("/", 1))

    def _put_new(self, key: str, path: Path) -> None:
        if path.stat().st_size > self.parameters.part_bytes:
            self._put_in_parts(key, path)
            return
        body = path.read_bytes()
        self._conditional(
            self.client.put_object,
            {"IfNoneMatch": "*"},
            Bucket=self.bucket,
            Key=self._key(key),
            Body=body,
            ContentType=_media_type(path.name),
        )

    def _put_in_parts(self, key: str, path: Path) -> None:
        """Multipart upload, given up as a whole when a part fails: parts are invisible and cost."""
        place = {"Bucket": self.bucket, "Key": self._key(key)}
        upload = self.client.create_multipart_upload(**place, ContentType=_media_type(path.name))[
            "UploadId"
        ]
        parts = []
        try:
            with path.open("rb") as file:
                for number, chunk in enumerate(_chunks(file, self.parameters.part_bytes), start=1):
                    answer = self.client.upload_part(
                        **place, UploadId=upload, PartNumber=number, Body=chunk
                    )
                    parts.append({"PartNumber": number, "ETag": answer["ETag"]})
            self._conditional(
                self.client.complete_multipart_upload,
                {"IfNoneMatch": "*"},
                **place,
                UploadId=upload,
                MultipartUpload={"Parts": parts},
            )
        except BaseException:
            with suppress(Exception):
                self.client.abort_multipart_upload(**place, UploadId=upload)
            raise

    def _replace(self, key: str, change: Callable[[bytes | None], bytes | None]) -> None:
        """Compare and set on the entity tag, again when another publisher was faster."""
        for _ in range(_POINTER_TRIES):
            found = self._get(key)
            new = change(None if found is None else found[0])
            if new is None:
                return
            condition = {"IfNoneMatch": "*"} if found is None else {"IfMatch": found[1]}
            with self._plain():
                try:
                    self._conditional(
                        self.client.put_object,
                        condition,
                        Bucket=self.bucket,
                        Key=self._key(key),
                        Body=new,
                        ContentType="application/json",
                        CacheControl="no-cache",
                    )
                    return
                except self.client.exceptions.ClientError as fault:
                    if _code(fault) not in (_LOST_RACE | _ABSENT):
                        raise
        raise DestinationUnavailableError(
            f"{self.uri}: many publishers write {key} at once; run the task again."
        )

    @staticmethod
    def _conditional(call: Callable[..., Any], condition: dict[str, str], **arguments: Any) -> Any:
        """Write under a condition; without it where the store does not offer conditions."""
        from botocore.exceptions import ClientError

        try:
            return call(**arguments, **condition)
        except ClientError as fault:
            if _code(fault) not in _NOT_OFFERED:
                raise
            return call(**arguments)

    @contextmanager
    def _plain(self) -> Iterator[None]:
        """Tell a fault of the store in one sentence."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (ClientError, BotoCoreError) as fault:
            raise plain_fault(fault, self.uri, self.bucket) from fault


def plain_fault(fault: Exception, uri: str, bucket: str) -> PublishError:
    """Return the sentence for a fault of an object store.

    Args:
        fault: what boto3 raised.
        uri: the destination, for the sentence.
        bucket: its bucket, for the sentence.

    Returns:
        The error to raise; retryable where waiting helps. Nothing of the answer's body is quoted.

    Privacy: post-processing.
    """
    from botocore import exceptions as boto

    code = _code(fault)
    if code == "NoSuchBucket":
        return DestinationDeniedError(
            f"{uri}: the bucket '{bucket}' does not exist; create it or correct publish.uri."
        )
    if code in _DENIED or _status(fault) in (401, 403):
        return DestinationDeniedError(
            f"{uri}: the store refused access (403); give the connection's key permission to read, "
            "list and write under this prefix."
        )
    if isinstance(fault, boto.NoCredentialsError | boto.PartialCredentialsError):
        return DestinationDeniedError(
            f"{uri}: no credentials for the store; set the Airflow connection of this release."
        )
    if isinstance(fault, boto.ReadTimeoutError | boto.ConnectTimeoutError):
        return DestinationUnavailableError(
            f"{uri}: the store did not answer in time; run the task again."
        )
    if isinstance(fault, boto.HTTPClientError | boto.ConnectionError):
        return DestinationUnavailableError(
            f"{uri}: the store cannot be reached; check endpoint_url and the network, "
            "then run the task again."
        )
    if _status(fault) >= 500 or code in ("SlowDown", "RequestTimeout", "InternalError"):
        return DestinationUnavailableError(
            f"{uri}: the store answered with a fault of its own ({code or type(fault).__name__}); "
            "run the task again."
        )
    return DestinationConflictError(
        f"{uri}: the store refused the request ({code or type(fault).__name__}); "
        "check publish.uri and the connection."
    )


def _code(fault: Exception) -> str:
    response = getattr(fault, "response", None) or {}
    return str(response.get("Error", {}).get("Code", ""))


def _status(fault: Exception) -> int:
    response = getattr(fault, "response", None) or {}
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _chunks(file: Any, size: int) -> Iterator[bytes]:
    while chunk := file.read(size):
        yield chunk


def _media_type(name: str) -> str:
    types = {
        "csv": "text/csv; charset=utf-8",
        "parquet": "application/vnd.apache.parquet",
        "json": "application/json",
        "jsonld": "application/ld+json",
        "html": "text/html; charset=utf-8",
        "md": "text/markdown; charset=utf-8",
        "yaml": "application/yaml",
        "pem": "application/x-pem-file",
    }
    return types.get(name.rpartition(".")[2], "application/octet-stream")
