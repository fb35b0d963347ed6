"""A release withdrawn from the UI, through the connection it was published with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.airflow.faults import object_store, refusing_store
from tests.airflow.rig import Rig, Run
from tests.airflow.test_bad_input import failed_at_once, sentence, store_connection

STORE = {"uri": "s3://public/pets", "conn_id": "store"}


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An object store that only the Airflow connection `store` has the key of."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    with object_store("public") as (address, client):
        monkeypatch.setenv("AIRFLOW_CONN_STORE", store_connection(address))
        yield client


def withdraw(rig: Rig, release_id: str, reason: str = "a wrong column", **who: Any) -> Run:
    conf = {"release_id": release_id, "reason": reason}
    return rig.release(None, dag_id="withdraw_release", conf=conf, **who)


def told(client: Any, name: str) -> dict[str, Any]:
    found = client.get_object(Bucket="public", Key=f"pets/pets_by_year/{name}")
    return dict(json.loads(found["Body"].read()))


def test_readers_of_a_store_behind_a_connection_are_told(
    rig: Rig, store: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    rig.declare(release={"publish": STORE})
    release_id = rig.release().xcom("publish")["release_id"]
    assert told(store, "latest.json")["status"] == "published"
    run = withdraw(rig, release_id)
    assert run.state == "success" and run.xcom("withdraw") == {"release_id": release_id}
    said = capfd.readouterr()
    assert f"withdraw: {release_id} is withdrawn; readers see the notice at" in said.out + said.err
    pointer = told(store, "latest.json")
    assert (pointer["status"], pointer["path"]) == ("withdrawn", None)
    assert told(store, "notices.json")["notices"][0]["reason"] == "a wrong column"
    assert told(store, f"2020-12-31/{release_id}/WITHDRAWN.json")["reason"] == "a wrong column"
    again = withdraw(rig, release_id, "another story")
    assert again.state == "success"
    assert len(told(store, "notices.json")["notices"]) == 1


def test_a_store_that_refuses_is_told_later(
    rig: Rig,
    store: Any,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig.declare(release={"publish": STORE})
    release_id = rig.release().xcom("publish")["release_id"]
    capfd.readouterr()
    with monkeypatch.context() as away, refusing_store() as address:
        away.setenv("AIRFLOW_CONN_STORE", store_connection(address))
        failed_at_once(withdraw(rig, release_id), "withdraw")
    said = sentence(capfd)
    assert said.startswith(f"{release_id} is withdrawn in the ledger, but its readers are not told")
    assert "refused access (403)" in said
    assert withdraw(rig, release_id).state == "success"
    assert told(store, "latest.json")["reason"] == "a wrong column"


def test_the_command_line_without_the_key_names_the_other_way(
    rig: Rig, store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    from include.cli.__main__ import main

    rig.declare(release={"publish": STORE})
    release_id = rig.release().xcom("publish")["release_id"]
    capsys.readouterr()
    assert main(["admin", "withdraw", release_id, "--reason", "a wrong column"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "trigger the DAG withdraw_release" in said
    assert withdraw(rig, release_id).state == "success"
    assert told(store, "latest.json")["status"] == "withdrawn"


@pytest.mark.parametrize("user", ["mallory", "scheduler", None])
def test_only_who_may_ask_for_its_requester_may_withdraw(
    rig: Rig, user: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    release_id = rig.release().xcom("publish")["release_id"]
    capfd.readouterr()
    failed_at_once(withdraw(rig, release_id, user=user), "withdraw")
    assert "may not withdraw releases of 'vets'" in sentence(capfd)
    assert not list(rig.releases.rglob("WITHDRAWN.json"))


@pytest.mark.parametrize(
    ("release_id", "reason", "said"),
    [("pets_by_year-2020", "x", "is not in the ledger"), (None, "", "reason")],
)
def test_an_empty_or_wrong_form_is_told_in_one_sentence(
    rig: Rig,
    release_id: str | None,
    reason: str,
    said: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    known = rig.release().xcom("publish")["release_id"]
    capfd.readouterr()
    failed_at_once(withdraw(rig, release_id or known, reason), "withdraw")
    assert said in sentence(capfd)
