"""Packages, a real S3 endpoint over HTTP, and a proxy in front of it that misbehaves on demand."""

from __future__ import annotations

import http.client
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest

from include.connections import S3Parameters
from include.publishing.facts import LineageFacts
from include.publishing.folder import FolderTarget
from include.publishing.package import BuiltPackage, PackageInput, build_package
from include.publishing.s3 import S3Target
from include.publishing.signing import Signer, load_signer
from include.quality.report import ReportInput
from tests.quality.facts_example import codes, report

LINEAGE = LineageFacts(
    charge_id="charge-1",
    entry_seq=7,
    entry_hash="ab" * 32,
    transcript_digest="cd" * 32,
    plan_digest="ef" * 32,
    dag_id="release__happiness_by_wave",
    run_id="scheduled__1998-12-31",
    airflow_version="3.3.2",
)


def decoded(facts: ReportInput) -> pd.DataFrame:
    """A table that fits the example's facts."""
    columns = facts.columns
    table = codes(columns, facts.fidelity.rows)
    cells = {}
    for i, column in enumerate(columns):
        if column.type == "integer":
            cells[column.name] = pd.array(table[:, i].astype(int) * 4, dtype="Int64")
        else:
            values = column.values or ()
            picked = [values[k] if k < len(values) else None for k in table[:, i]]
            cells[column.name] = pd.array(picked, dtype="str")
    return pd.DataFrame(cells)


@pytest.fixture(scope="session")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    return load_signer(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="session")
def make_package(
    signer: Signer, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., BuiltPackage]:
    """Build the example's package with some facts of the release changed."""

    def make(
        period: str = "1998-12-31",
        created: str = "2026-11-30T18:00:00Z",
        names: tuple[str, ...] = ("educ", "income", "happy", "workstat"),
        rows: int = 300,
        **changes: str,
    ) -> BuiltPackage:
        first = report(names, rows)
        facts = replace(
            first, release=replace(first.release, period=period, created=created, **changes)
        )
        folder = tmp_path_factory.mktemp("package") / "package"
        return build_package(folder, PackageInput(facts, decoded(facts), LINEAGE, signer))

    return make


@pytest.fixture(scope="session")
def package(make_package: Callable[..., BuiltPackage]) -> BuiltPackage:
    return make_package()


@pytest.fixture(scope="session")
def store() -> Iterator[str]:
    """Address of a moto server: a real S3 endpoint over HTTP."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def parameters(endpoint: str, **changes: object) -> S3Parameters:
    known = S3Parameters(
        endpoint_url=endpoint,
        access_key="key",
        secret_key="secret",
        attempts=1,
        connect_timeout=2,
        read_timeout=5,
    )
    return replace(known, **changes)


_BUCKETS = itertools.count()


@pytest.fixture
def bucket(store: str) -> str:
    """A new, empty bucket."""
    name = f"bucket-{next(_BUCKETS)}"
    S3Target(name, "", parameters(store)).client.create_bucket(Bucket=name)
    return name


@pytest.fixture(params=["folder", "s3"])
def new_target(request, tmp_path: Path) -> Callable[[], FolderTarget | S3Target]:
    """Opens the same destination, each time as another process would."""
    if request.param == "folder":
        return lambda: FolderTarget(tmp_path / "releases")
    store, bucket = request.getfixturevalue("store"), request.getfixturevalue("bucket")
    return lambda: S3Target(bucket, "some/prefix", parameters(store))


class Proxy:
    """Forwards to the store, except where `rule(number, method, path)` answers otherwise.

    The rule returns None to forward, a status code to answer with, "close" to hang up before the
    store sees the request, "lost" to hang up after it, or a float to wait that many seconds.
    """

    def __init__(self, store: str) -> None:
        self.store = store.removeprefix("http://")
        self.rule: Callable[[int, str, str], object] = lambda number, method, path: None
        self.count = itertools.count()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                verdict = proxy.rule(next(proxy.count), self.command, self.path)
                if isinstance(verdict, float):
                    time.sleep(verdict)
                    verdict = None
                if verdict == "close":
                    self.close_connection = True
                    return
                if isinstance(verdict, int):
                    return self.answer(verdict, _fault(verdict))
                link = http.client.HTTPConnection(proxy.store, timeout=20)
                link.request(self.command, self.path, body, dict(self.headers))
                got = link.getresponse()
                content = got.read()
                if verdict == "lost":
                    self.close_connection = True
                    return
                self.answer(got.status, content, dict(got.getheaders()))

            def answer(self, status: int, content: bytes, headers: dict | None = None) -> None:
                self.send_response(status)
                for name, value in (headers or {}).items():
                    if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_any

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"


def _fault(status: int) -> bytes:
    code = {403: "AccessDenied", 503: "SlowDown", 500: "InternalError"}[status]
    text = f"<Error><Code>{code}</Code><Message>SECRET-BODY</Message></Error>"
    return f'<?xml version="1.0"?>{text}'.encode()


@pytest.fixture
def proxy(store: str) -> Iterator[Proxy]:
    running = Proxy(store)
    yield running
    running.server.shutdown()
    running.server.server_close()
