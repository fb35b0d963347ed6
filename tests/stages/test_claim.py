"""The audit of a release holds its manifest's claim against the charge and the registration."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pandas as pd
import pytest
from moto.server import ThreadedMotoServer

from include.connections import S3Parameters
from include.publishing.folder import FolderTarget
from include.publishing.package import PackageInput, build_package
from include.quality.facts import UnitBound
from include.quality.report import read_report
from include.stages import facts
from include.stages.budget_eval import budget_eval
from include.stages.claim import QUESTION, claim_checks
from include.stages.desk import Desk
from include.stages.load import load
from include.stages.quality_check import quality_check
from include.stages.synthesize import synthesize
from tests.stages.test_stages import release


def audited(place, release_id: str):
    return {one.question: one for one in claim_checks(release_id, place.reader, place.settings)}


def forged(place, make_run, change) -> str:
    """Publish, by the same parts, a package whose claim is not the charge's."""
    run = make_run()
    charge_id = budget_eval(run, place, load(run, place)).charge_id
    synthesize(run, place)
    quality_check(run, place)
    charge, desk = place.reader.charge(charge_id), Desk(place.desk(charge_id))
    report = read_report(desk.report_json)
    package = build_package(
        desk.package,
        PackageInput(
            report=replace(report, privacy=change(report.privacy)),
            table=pd.read_parquet(desk.table),
            lineage=facts.lineage_facts(run, charge),
            signer=None,
        ),
    )
    place.ledger.begin_publishing(charge_id, fence=charge.fence)
    seen = FolderTarget(place.settings.project_root / "releases").publish(package.path)
    place.ledger.publish(
        charge_id,
        manifest_digest=seen.manifest_digest,
        uri=seen.uri,
        release_id=seen.release_id,
        fence=charge.fence,
    )
    return seen.release_id


def test_the_claim_of_a_release_is_the_ledgers(place, make_run):
    found = audited(place, release(make_run(), place)[1].release_id)
    assert [one.passed for one in found.values()] == [True, True]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda p: replace(p, max_rows=200), "max_rows is 200 in the manifest and 1 in the ledger"),
        (
            lambda p: replace(p, privacy_unit="household"),
            "the registered unit is household in the manifest and person in the ledger",
        ),
        (
            lambda p: replace(p, unprotected=(*p.unprotected, facts.STRICT)),
            "strict is true in the manifest and false in the ledger",
        ),
        (
            lambda p: replace(p, bounds=(UnitBound("nurses", 1),)),
            "populations and their registered bounds is",
        ),
        (
            lambda p: replace(p, bounds=(UnitBound("patients", 200, ("who",)),)),
            'populations and their bounds is {"patients": ["who", 200]} in the manifest and '
            '{"patients": [null, 1]} in the ledger',
        ),
        (lambda p: replace(p, epsilon="0.1"), "epsilon is 0.1 in the manifest and 1 in the ledger"),
        (
            lambda p: replace(p, row_count_rule="from the noisy measurements"),
            "the rule of the row count is from the noisy measurements in the manifest",
        ),
    ],
)
def test_a_claim_that_differs_fails_the_audit_with_a_sentence(place, make_run, change, told):
    check = audited(place, forged(place, make_run, change))[QUESTION]
    assert not check.passed
    assert told in check.answer


def test_another_manifest_in_its_place_is_not_the_published_one(place, make_run):
    published = release(make_run(), place)[1]
    path = Path(published.uri) / "datapackage.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"title": "another"}))
    (check,) = audited(place, published.release_id).values()
    assert not check.passed
    assert "is not the file whose digest the ledger names" in check.answer
    path.unlink()
    (check,) = audited(place, published.release_id).values()
    assert not check.passed
    assert "holds no datapackage.json" in check.answer


class Refusing(BaseHTTPRequestHandler):
    """A store that lets nobody in."""

    def do_GET(self) -> None:
        body = b"<Error><Code>AccessDenied</Code><Message>SECRET-7Q</Message></Error>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args) -> None:
        pass


@pytest.fixture
def refusing():
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def stored(place, make_run, monkeypatch) -> str:
    """A release in an object store that the environment names, as for the manual form."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "reader")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SECRET-7Q")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    S3Parameters().client().create_bucket(Bucket="public")
    file = place.settings.config_dir / "releases" / "wards.yaml"
    file.write_text(file.read_text().replace("{uri: releases}", "{uri: 's3://public/r'}"))
    yield release(make_run(), place)[1].release_id
    server.stop()


def test_a_package_in_a_store_that_does_not_let_in_is_not_checked(
    place, stored, refusing, monkeypatch
):
    """Neither found good nor found wrong; the sentence names the settings and no secret."""
    assert [one.passed for one in audited(place, stored).values()] == [True, True]
    for variable, value, why in [
        ("AWS_ENDPOINT_URL_S3", refusing, "no permission, or not there"),
        ("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1", "no answer"),
        ("AWS_ENDPOINT_URL_S3", "127.0.0.1:1", "the request was refused"),
        ("AWS_SECRET_ACCESS_KEY", None, "no permission, or not there"),
    ]:
        with monkeypatch.context() as patch:
            if value is None:
                patch.delenv("AWS_ACCESS_KEY_ID")
                patch.delenv(variable)
            else:
                patch.setenv(variable, value)
            (check,) = audited(place, stored).values()
        assert not check.checked
        assert not check.passed
        assert check.answer.startswith(
            "the package itself was not checked, because s3://public/r/"
        ), check.answer
        assert check.answer.endswith(
            f"/ cannot be read from here ({why}); set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
            "to a key that may read it, and AWS_ENDPOINT_URL_S3 where the store is not AWS itself, "
            "then ask again"
        )
        assert "SECRET-7Q" not in check.answer
