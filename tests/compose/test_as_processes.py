"""The services of docker-compose.yaml, run here without containers: PostgreSQL, S3, Airflow.

Commands, environment and health checks are the compose file's own; see `local.py` for what is
moved. Not covered, since no container engine is needed here: the image's build, MinIO itself,
volumes and restarts.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from tests.compose.machines import free_port
from tests.compose.stack import AIRFLOW, Stack, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
DAG = "release__happiness_by_wave"
REVIEWED = "release__happiness_reviewed"
SCHEDULED = "scheduled__2006-12-31T00:00:00+00:00"  # the newest of the demo's waves


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running(tmp_path_factory.mktemp("stack")) as it:
        yield it


def refused(stack: Stack, role: str, statement: str) -> bool:
    """Whether the database refuses a role this statement for want of a privilege."""
    with stack.login(role) as connection:
        try:
            connection.execute(statement)
        except psycopg.errors.InsufficientPrivilege:
            return True
        except psycopg.Error:
            return False  # it was allowed to try
    return False


@pytest.mark.parametrize("name", AIRFLOW)
def test_the_files_own_health_checks_pass(stack: Stack, name: str) -> None:
    done = stack.services[name].check_health()
    assert done.returncode == 0, done.stderr


def test_a_health_check_fails_where_nothing_answers(stack: Stack) -> None:
    """The checks above mean something: the same check of a service that does not run fails."""
    for name in ("api-server", "scheduler"):
        service = stack.services[name]
        nobody = dict.fromkeys(service.addresses, free_port())
        lost = replace(service, addresses=nobody, process=None)
        assert lost.check_health().returncode != 0


def test_airflow_reports_itself_healthy_and_parses_every_dag(stack: Stack) -> None:
    token = stack.token()
    health = stack.api("GET", "/api/v2/monitor/health", token=token)
    for part in ("metadatabase", "scheduler", "dag_processor"):
        assert health[part]["status"] == "healthy", part
    dags = {dag["dag_id"] for dag in stack.api("GET", "/api/v2/dags", token=token)["dags"]}
    assert {DAG, REVIEWED, "manual_release"} <= dags
    assert stack.api("GET", "/api/v2/importErrors", token=token)["import_errors"] == []


def test_airflows_login_works_on_its_rows_and_sees_nothing_of_the_ledger(stack: Stack) -> None:
    assert not refused(stack, "airflow", "SELECT count(*) FROM dag_run")
    for statement in (
        "SELECT * FROM dp_entry",
        "UPDATE dp_pool SET spent_pico = 0",
        "CREATE TABLE mine (i int)",
        "DROP TABLE dp_entry",
        "ALTER TABLE dp_entry DISABLE TRIGGER ALL",
        "SET ROLE dp_ledger_owner",
    ):
        assert refused(stack, "airflow", statement), statement


def test_init_may_run_again_on_a_running_system(stack: Stack) -> None:
    done = stack.services["init"].run()
    assert done.returncode == 0, done.stderr[-2000:]
    assert stack.services["scheduler"].check_health().returncode == 0


def test_a_release_asked_for_over_rest_is_paid_for_and_published_to_the_store(
    stack: Stack, tmp_path: Path
) -> None:
    registered = stack.command_line("steward", "register")
    assert registered.returncode == 0, registered.stderr
    state = release(stack, "1994-12-31")
    assert state == "success", stack.logs()[-6000:]
    charge = charges(stack)["1994-12-31"]
    assert (charge["state"], charge["actor"]) == ("published", "admin")
    package = download(stack, "1994-12-31", tmp_path)
    checked = stack.command_line("auditor", "package", "verify", str(package))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_schedule_releases_the_newest_wave_by_itself(stack: Stack, tmp_path: Path) -> None:
    """Unpausing the DAG made its newest past date due."""
    assert stack.wait_for_run(DAG, SCHEDULED, 900) == "success"
    charge = charges(stack)["2006-12-31"]
    assert (charge["state"], charge["actor"]) == ("published", "scheduler")
    assert (download(stack, "2006-12-31", tmp_path) / "datapackage.json").exists()


def test_a_period_that_is_released_costs_nothing_more(stack: Stack) -> None:
    before = pools(stack)
    assert clear(stack, "1994-12-31") == "success"
    assert tries(stack, "1994-12-31", "publish") == 2  # it did run again
    assert pools(stack) == before
    assert set(charges(stack)) == {"1994-12-31", "2006-12-31"}


def test_what_the_form_releases_goes_to_the_store_as_well(stack: Stack, tmp_path: Path) -> None:
    """The form names no connection: the store's address and key come from the environment."""
    conf = {
        "dataset": "gss_happiness",
        "requester": "labour_team",
        "period": "2002-by-hand",
        "partition_column": "year",
        "partition_value": "2002",
    }
    token = stack.token()
    stack.api("PATCH", "/api/v2/dags/manual_release", {"is_paused": False}, token)
    asked = {"logical_date": None, "conf": conf}
    run = stack.api("POST", "/api/v2/dags/manual_release/dagRuns", asked, token)
    assert stack.wait_for_run("manual_release", run["dag_run_id"], 900) == "success"
    assert charges(stack)["2002-by-hand"]["state"] == "published"
    assert (download(stack, "2002-by-hand", tmp_path) / "datapackage.json").exists()


def test_a_release_waits_for_a_second_person_and_needs_no_triggerer(stack: Stack) -> None:
    """Unpausing makes its newest wave due; asked for by the schedule, anybody else may approve."""
    stack.api("PATCH", f"/api/v2/dags/{REVIEWED}", {"is_paused": False}, stack.token())
    run_id = SCHEDULED
    until(lambda: run_id in runs(stack, REVIEWED))
    task = f"/api/v2/dags/{REVIEWED}/dagRuns/{quote(run_id)}/taskInstances/approve"
    until(lambda: stack.api("GET", task, token=stack.token())["state"] == "awaiting_input")
    behind = f"/api/v2/dags/{REVIEWED}/dagRuns"
    asked = {"logical_date": None, "conf": {"period": "1994-12-31"}}
    next_one = stack.api("POST", behind, asked, stack.token())["dag_run_id"]
    time.sleep(10)  # some turns of the scheduler
    assert runs(stack, REVIEWED)[next_one]["state"] == "queued"  # docs/steward-guide.md
    stack.api("PATCH", f"{behind}/{quote(next_one)}", {"state": "failed"}, stack.token())
    answer = {"chosen_options": ["Approve"], "params_input": {}}
    with pytest.raises(AssertionError, match="403"):
        stack.api("PATCH", f"{task}/-1/hitlDetails", answer, stack.token("viewer"))
    stack.api("PATCH", f"{task}/-1/hitlDetails", answer, stack.token("approver"))
    assert stack.wait_for_run(REVIEWED, run_id, 900) == "success"
    (charge,) = [one for one in every_charge(stack) if one["release"] == "happiness_reviewed"]
    assert (charge["period"], charge["state"]) == ("2006-12-31", "published")


def test_the_budget_pages_need_a_login_and_show_what_was_spent(stack: Stack) -> None:
    """The api-server reads the ledger as its auditor."""
    assert stack.page("/privacy-budget/")[0] == 401
    status, text = stack.page("/privacy-budget/", stack.token("viewer"))
    assert status == 200
    assert "us_adults_gss" in text
    assert "1994-12-31" in text


def test_a_user_who_may_only_look_cannot_trigger(stack: Stack) -> None:
    with pytest.raises(AssertionError, match="403"):
        release(stack, "1996-12-31", user="viewer")
    assert "1996-12-31" not in charges(stack)


def test_the_auditor_verifies_the_ledger_and_may_not_write_it(stack: Stack) -> None:
    verified = stack.command_line("auditor", "verify", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert json.loads(verified.stdout)["ok"] is True
    for statement in ("DELETE FROM dp_entry", "UPDATE dp_charge SET state = 'void'"):
        assert refused(stack, "dp_ledger_auditor", statement), statement


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM dp_entry",
        "TRUNCATE dp_entry",
        "UPDATE dp_entry SET body = '{}'",
        "UPDATE dp_pool SET cap_pico = cap_pico * 2",
        "INSERT INTO dp_pool SELECT * FROM dp_pool",
        "ALTER TABLE dp_entry DISABLE TRIGGER ALL",
        "SELECT * FROM connection",
        "SELECT * FROM dag_run",
    ],
)
def test_the_login_of_the_tasks_can_do_no_more_than_charge(stack: Stack, statement: str) -> None:
    assert refused(stack, "dp_ledger_writer", statement)


def test_a_database_restored_from_a_backup_sells_nothing_twice(
    stack: Stack, tmp_path: Path
) -> None:
    """docs/operations.md, "Restore and reconcile", with a release made after the backup."""
    backup = str(tmp_path / "airflow.dump")
    stack.database_tool("pg_dump", "--format=custom", f"--file={backup}", "airflow")
    assert release(stack, "1996-12-31") == "success"
    spent_before = spent(stack)
    stack.stop()
    stack.database_tool("dropdb", "airflow")
    stack.database_tool("createdb", "airflow")
    stack.database_tool("pg_restore", "--dbname=airflow", backup)
    stack.start()
    assert "1996-12-31" not in charges(stack)  # the ledger has forgotten it ...

    assert release(stack, "1998-12-31") == "failed"  # ... and is not believed
    assert "restored from a backup" in stack.logs()
    assert "1998-12-31" not in charges(stack)

    keys = map(str, (stack.folder / "var" / "keys" / "public").glob("*.pem"))
    reconciled = stack.command_line(
        *("steward", "admin", "reconcile", "--key", *keys),
        *("--authorised-by", "the data protection officer", "--reason", "disk failure"),
    )
    assert reconciled.returncode == 0, reconciled.stderr
    assert spent(stack) == spent_before
    assert release(stack, "2000-12-31") == "success"
    assert stack.command_line("auditor", "verify").returncode == 0


def test_the_publishers_key_can_delete_nothing_and_open_no_other_bucket(stack: Stack) -> None:
    """The store holds it to the policy of the compose file; publishing above needed no more."""
    client = stack.store()
    key = client.list_objects_v2(Bucket=stack.bucket)["Contents"][0]["Key"]
    with pytest.raises(client.exceptions.ClientError, match="AccessDenied"):
        client.delete_object(Bucket=stack.bucket, Key=key)
    with pytest.raises(client.exceptions.ClientError, match="AccessDenied"):
        client.create_bucket(Bucket="another")


def test_no_secret_is_in_any_log(stack: Stack) -> None:
    logs = stack.logs()
    assert len(logs) > 10_000
    secrets = {
        value
        for service in stack.services.values()
        for name, value in service.environment.items()
        if name.endswith(("_PASSWORD", "_SECRET", "_KEY"))
    }
    assert len(secrets) >= 8
    assert not [secret for secret in secrets if secret in logs]


def release(stack: Stack, wave: str, user: str = "admin") -> str:
    """Trigger the demo's release for one wave over the REST API and wait; returns its state."""
    token = stack.token(user)
    stack.api("PATCH", f"/api/v2/dags/{DAG}", {"is_paused": False}, token)
    asked = {"logical_date": f"{wave}T00:00:00Z", "conf": {}}
    run = stack.api("POST", f"/api/v2/dags/{DAG}/dagRuns", asked, token)
    return stack.wait_for_run(DAG, run["dag_run_id"], 900)


def runs(stack: Stack, dag_id: str) -> dict[str, dict[str, Any]]:
    """The runs of a DAG, by their ids."""
    found = stack.api("GET", f"/api/v2/dags/{dag_id}/dagRuns", token=stack.token())["dag_runs"]
    return {run["dag_run_id"]: run for run in found}


def until(holds: Callable[[], bool], seconds: float = 900) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(1)


def clear(stack: Stack, wave: str) -> str:
    """Clear a whole run, as a person does in the UI, and wait until it has run again."""
    run_id = run_of(stack, wave)
    path = f"/api/v2/dags/{DAG}/dagRuns/{quote(run_id)}/clear"
    stack.api("POST", path, {"dry_run": False}, stack.token())
    return stack.wait_for_run(DAG, run_id, 900)


def run_of(stack: Stack, wave: str) -> str:
    dates = {name: str(run["logical_date"]) for name, run in runs(stack, DAG).items()}
    (run_id,) = [name for name, date in dates.items() if date.startswith(wave)]
    return run_id


def tries(stack: Stack, wave: str, task: str) -> int:
    path = f"/api/v2/dags/{DAG}/dagRuns/{quote(run_of(stack, wave))}/taskInstances/{task}"
    return int(stack.api("GET", path, token=stack.token())["try_number"])


def charges(stack: Stack) -> dict[str, dict[str, Any]]:
    """The charges of the release that needs no approval, and of the form, by their period."""
    found = [one for one in every_charge(stack) if one["release"] != "happiness_reviewed"]
    return {charge["period"]: charge for charge in found}


def every_charge(stack: Stack) -> list[dict[str, Any]]:
    return list(json.loads(stack.command_line("auditor", "charges", "--json").stdout))


def pools(stack: Stack) -> list[dict[str, Any]]:
    return list(json.loads(stack.command_line("auditor", "pools", "--json").stdout))


def spent(stack: Stack) -> dict[str, int]:
    return {pool["pool_id"]: pool["spent_pico"] for pool in pools(stack)}


def download(stack: Stack, period: str, folder: Path) -> Path:
    """Fetch a period's release from the store as a data user would; returns its folder."""
    client = stack.store()
    listing = client.list_objects_v2(Bucket=stack.bucket, Prefix="public/")["Contents"]
    keys = [entry["Key"] for entry in listing if f"/{period}/" in entry["Key"]]
    (manifest,) = [key for key in keys if key.endswith("/datapackage.json")]
    prefix = manifest.removesuffix("datapackage.json")
    for key in keys:
        target = folder / key.removeprefix(prefix)
        target.parent.mkdir(parents=True, exist_ok=True)
        client.download_file(stack.bucket, key, str(target))
    return folder
