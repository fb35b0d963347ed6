"""What goes wrong around a pipeline, for real: a database that somebody holds, a store's 403."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@contextmanager
def write_lock(database: Path) -> Iterator[None]:
    """Let another process hold the database's write lock."""
    context = multiprocessing.get_context("forkserver")
    held, release = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(str(database), held, release))
    process.start()
    try:
        assert held.wait(60)
        yield
    finally:
        release.set()
        process.join(30)


def _hold(database: str, held: Any, release: Any) -> None:
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    held.set()
    release.wait(120)
    connection.execute("ROLLBACK")


class _Refuse(BaseHTTPRequestHandler):
    status = 403
    body = (
        b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code>'
        b"<Message>Access Denied</Message></Error>"
    )

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(self.body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _answer

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def refusing_store() -> Iterator[str]:
    """Serve an object store that answers 403 to everything; yields its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refuse)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()


@contextmanager
def object_store(*buckets: str) -> Iterator[tuple[str, Any]]:
    """Serve a real S3 endpoint (moto) with these buckets; yields its address and a client."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        address = f"http://{host}:{port}"
        keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
        client = boto3.client("s3", endpoint_url=address, region_name="us-east-1", **keys)
        for bucket in buckets:
            client.create_bucket(Bucket=bucket)
        yield address, client
    finally:
        server.stop()
