"""Plain parameters of the stores a release reads from and publishes to.

Airflow connections are resolved by the hooks; what they hold arrives here as values, so that
nothing in `include/` knows where they came from. Secrets stay out of every repr.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from include.errors import CuSynError

PART_BYTES = 16 * 1024 * 1024  # one part of a multipart upload; larger files travel in several


@dataclass(frozen=True)
class S3Parameters:
    """How to reach an object store.

    Args:
        endpoint_url: address of a store other than AWS, such as MinIO.
        access_key, secret_key, session_token: credentials; without them the environment's apply.
        region: its region.
        verify: whether, or with which file of authorities, TLS certificates are checked.
        connect_timeout, read_timeout: seconds.
        attempts: tries of one request, the first included.
        part_bytes: bytes of one part of a large upload.

    Privacy: ledger only.
    """

    endpoint_url: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    region: str | None = None
    verify: bool | str = True
    connect_timeout: float = 10.0
    read_timeout: float = 60.0
    attempts: int = 5
    part_bytes: int = PART_BYTES

    def client(self) -> Any:
        """Return a boto3 client of the store; nothing is contacted yet.

        Raises:
            CuSynError: the store's address is no URL.
        """
        import boto3
        from botocore.config import Config

        # boto3 reads this variable by itself, but would then want a host name for every bucket.
        endpoint = self.endpoint_url or os.environ.get("AWS_ENDPOINT_URL_S3")
        if endpoint and not endpoint.startswith(("http://", "https://")):
            raise CuSynError(
                "the store's address is no URL; write endpoint_url (or AWS_ENDPOINT_URL_S3) with "
                "http:// or https:// before the host"
            )
        region = self.region or os.environ.get("AWS_DEFAULT_REGION")
        return boto3.session.Session().client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            aws_session_token=self.session_token,
            region_name=region or ("us-east-1" if endpoint else None),
            verify=self.verify,
            config=Config(
                connect_timeout=self.connect_timeout,
                read_timeout=self.read_timeout,
                retries={"max_attempts": self.attempts, "mode": "standard"},
                s3={"addressing_style": "path"} if endpoint else {},
                # Stores other than AWS often know no trailing checksums; we read ours back anyway.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
        )


@dataclass(frozen=True)
class SqlParameters:
    """How to reach a database.

    Args:
        url: an SQLAlchemy URL; it may hold a password.

    Privacy: ledger only.
    """

    url: str = field(repr=False)
