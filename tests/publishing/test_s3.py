"""S3 in particular: faults told in one sentence, retries, parts, the order of writes."""

from __future__ import annotations

import pytest
from botocore.awsrequest import AWSResponse

from include.connections import S3Parameters
from include.publishing.destinations import target_for
from include.publishing.errors import (
    DestinationConflictError,
    DestinationDeniedError,
    DestinationUnavailableError,
    PublishError,
)
from include.publishing.folder import FolderTarget
from include.publishing.package import MANIFEST
from include.publishing.s3 import S3Target
from tests.publishing.conftest import parameters
from tests.publishing.readers import visible_releases


def one_sentence(fault: BaseException) -> str:
    text = str(fault)
    assert "\n" not in text
    assert text.endswith(".")
    assert "SECRET-BODY" not in text
    assert "secret" not in text
    return text


def test_a_403_says_what_to_grant(proxy, bucket, store, package):
    proxy.rule = lambda number, method, path: 403 if method == "PUT" else None
    target = S3Target(bucket, "p", parameters(proxy.address))
    with pytest.raises(DestinationDeniedError, match="refused access") as fault:
        target.publish(package.path)
    assert "give the connection's key permission" in one_sentence(fault.value)
    assert not fault.value.retry_helps
    assert visible_releases(S3Target(bucket, "p", parameters(store))) == {}


def test_a_missing_bucket_is_named(store, package):
    target = S3Target("no-such-bucket", "", parameters(store))
    with pytest.raises(DestinationDeniedError, match="'no-such-bucket' does not exist") as fault:
        target.publish(package.path)
    one_sentence(fault.value)


def test_a_store_that_does_not_answer_in_time(proxy, bucket, package):
    proxy.rule = lambda number, method, path: 3.0
    target = S3Target(bucket, "p", parameters(proxy.address, read_timeout=0.3))
    with pytest.raises(DestinationUnavailableError, match="did not answer in time") as fault:
        target.publish(package.path)
    assert fault.value.retry_helps
    one_sentence(fault.value)


def test_a_slow_store_is_waited_for(proxy, bucket, package):
    proxy.rule = lambda number, method, path: 0.05
    target = S3Target(bucket, "p", parameters(proxy.address))
    assert target.publish(package.path).is_latest


def test_a_store_that_cannot_be_reached(package):
    target = S3Target("bucket", "p", parameters("http://127.0.0.1:9"))
    with pytest.raises(DestinationUnavailableError, match="cannot be reached") as fault:
        target.publish(package.path)
    one_sentence(fault.value)


def test_without_credentials(monkeypatch, store, package, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    target = S3Target("bucket", "", parameters(store, access_key=None, secret_key=None))
    with pytest.raises(DestinationDeniedError, match="no credentials") as fault:
        target.publish(package.path)
    one_sentence(fault.value)


@pytest.mark.parametrize("failure", [503, 500, "close", "lost"])
def test_a_flapping_store_is_retried_in_one_call(proxy, bucket, store, package, failure):
    proxy.rule = lambda number, method, path: failure if number % 3 == 1 else None
    target = S3Target(bucket, "p", parameters(proxy.address, attempts=4))
    published = target.publish(package.path)
    assert published.is_latest
    assert list(visible_releases(S3Target(bucket, "p", parameters(store)))) == [package.release_id]


@pytest.mark.parametrize("failure", [503, "lost"])
def test_a_store_that_fails_for_long_shows_nothing_and_a_retry_completes(
    proxy, bucket, store, package, failure
):
    writes = []

    def rule(number, method, path):
        if method == "PUT":
            writes.append(path)
        return failure if len(writes) >= 4 else None

    proxy.rule = rule
    target = S3Target(bucket, "p", parameters(proxy.address, attempts=1))
    with pytest.raises(DestinationUnavailableError) as fault:
        target.publish(package.path)
    one_sentence(fault.value)
    reader = S3Target(bucket, "p", parameters(store))
    assert visible_releases(reader) == {}
    proxy.rule = lambda number, method, path: None
    assert target.publish(package.path).is_latest
    assert list(visible_releases(reader)) == [package.release_id]


def test_the_manifest_is_the_last_object_of_a_release(proxy, bucket, package):
    writes = []

    def rule(number, method, path):
        if method in ("PUT", "POST"):
            writes.append(path.split("?")[0])
        return None

    proxy.rule = rule
    S3Target(bucket, "p", parameters(proxy.address)).publish(package.path)
    names = [path.rsplit("/", 1)[1] for path in writes]
    assert names[-2:] == [MANIFEST, "latest.json"]
    assert len(names) == len(set(names)) == 12


def test_an_object_that_reads_back_differently_is_never_announced(proxy, bucket, store, package):
    """A store that loses bytes: what it kept is compared before the manifest is written."""
    clean = S3Target(bucket, "p", parameters(store))

    def rule(number, method, path):
        if method == "GET" and path.endswith("data.parquet") and _exists(clean, path, bucket):
            clean.client.put_object(Bucket=bucket, Key=path.split(f"/{bucket}/")[1], Body=b"rot")
        return None

    proxy.rule = rule
    target = S3Target(bucket, "p", parameters(proxy.address))
    with pytest.raises(DestinationConflictError, match=r"data\.parquet"):
        target.publish(package.path)
    assert visible_releases(clean) == {}
    assert clean.latest(package.release) is None


def test_big_files_travel_in_parts(bucket, store, proxy, make_package):
    big = make_package(rows=220_000, title="Big")
    size = (big.path / "data.csv").stat().st_size
    assert size > 5 * 1024 * 1024  # the smallest part a store accepts
    parts = []
    proxy.rule = lambda number, method, path: parts.append(path) if "partNumber" in path else None
    target = S3Target(bucket, "p", parameters(proxy.address, part_bytes=5 * 1024 * 1024))
    target.publish(big.path)
    assert len(parts) == -(-size // (5 * 1024 * 1024))
    assert list(visible_releases(S3Target(bucket, "p", parameters(store)))) == [big.release_id]
    assert target.publish(big.path).already_there


def test_a_broken_upload_in_parts_is_given_up_and_repeated(bucket, store, proxy, make_package):
    big = make_package(rows=220_000, title="Big")
    proxy.rule = lambda number, method, path: 503 if "partNumber=2" in path else None
    target = S3Target(
        bucket, "p", parameters(proxy.address, part_bytes=5 * 1024 * 1024, attempts=1)
    )
    with pytest.raises(DestinationUnavailableError):
        target.publish(big.path)
    reader = S3Target(bucket, "p", parameters(store))
    assert reader.client.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == []
    assert visible_releases(reader) == {}
    proxy.rule = lambda number, method, path: None
    assert target.publish(big.path).is_latest


def test_a_store_without_conditional_writes_still_works(bucket, package, store):
    target = S3Target(bucket, "p", parameters(store))

    def refuse(request, **_):
        if any(name.lower() in ("if-match", "if-none-match") for name in request.headers):
            body = b"<Error><Code>NotImplemented</Code><Message>no</Message></Error>"

            class Raw:
                def stream(self, *_: object, **__: object):
                    yield body

            return AWSResponse(request.url, 501, {}, Raw())
        return None

    target.client.meta.events.register("before-send.s3", refuse)
    assert target.publish(package.path).is_latest
    assert list(visible_releases(S3Target(bucket, "p", parameters(store)))) == [package.release_id]


def test_secrets_are_not_shown():
    assert "s3cr3t" not in repr(S3Parameters("http://x", "id", "s3cr3t", "t0ken"))
    assert "t0ken" not in repr(S3Parameters("http://x", "id", "s3cr3t", "t0ken"))


def test_addresses_lead_to_their_kind_of_destination(tmp_path):
    folder = target_for("releases/", base=tmp_path)
    assert isinstance(folder, FolderTarget)
    assert folder.folder == tmp_path / "releases"
    assert target_for("/srv/out", base=tmp_path).uri == "/srv/out"
    assert target_for("file:///srv/out", base=tmp_path).uri == "/srv/out"
    s3 = target_for("s3://bucket/a/b/", base=tmp_path, s3=S3Parameters("http://x"))
    assert isinstance(s3, S3Target)
    assert (s3.bucket, s3.prefix, s3.uri) == ("bucket", "a/b", "s3://bucket/a/b")
    for wrong in ("s3:///prefix", "ftp://host/x", "", "  "):
        with pytest.raises(PublishError, match=r"publish\.uri"):
            target_for(wrong, base=tmp_path)


def _exists(target: S3Target, path: str, bucket: str) -> bool:
    key = path.split("?")[0].split(f"/{bucket}/")[1]
    listed = target.client.list_objects_v2(Bucket=bucket, Prefix=key)
    return listed.get("KeyCount", 0) > 0
