"""The services of docker-compose.yaml, run here without containers: PostgreSQL, S3, Airflow.

Commands, environment and health checks are the compose file's own; see `local.py` for what is
moved. Not covered, since no container engine is needed here: the image's build, MinIO and its
policies, volumes and restarts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from tests.compose.machines import free_port
from tests.compose.stack import AIRFLOW, Stack, running

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
DAG = "release__happiness_by_wave"


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
    assert {DAG, "manual_release"} <= dags
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
