"""docker-compose.yaml: valid, without a secret, and every service with its own credential only."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from tests.compose.composefile import EXAMPLE, FILE, compose, documented, optional
from tools.prepare_database import UI_USERS

AIRFLOW_SERVICES = ("init", "api-server", "scheduler", "dag-processor")
COMMAND_LINES = ("steward", "auditor")
SECRET = re.compile(r"(PASSWORD|SECRET|KEY|ROOT_USER)")
Services = dict[str, dict[str, Any]]


def variables() -> dict[str, bool]:
    """Each variable of the file and whether Compose refuses to start without it."""
    lines = compose("config", "--variables").stdout.splitlines()[1:]
    return {name: required == "true" for name, required, *_ in (line.split() for line in lines)}


def own_services(services: Services) -> Services:
    return {name: services[name] for name in (*AIRFLOW_SERVICES, *COMMAND_LINES)}


def ledger_login(service: dict[str, Any]) -> str:
    return str(json.loads(service["environment"]["AIRFLOW_CONN_PRIVACY_LEDGER"])["login"])


def metadata_login(service: dict[str, Any]) -> str | None:
    return urlsplit(service["environment"]["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"]).username


def test_compose_accepts_the_file(env_file: Path) -> None:
    done = compose("config", "--quiet", env_file=env_file)
    assert (done.returncode, done.stderr) == (0, "")


def test_compose_would_refuse_a_misspelt_key(env_file: Path, tmp_path: Path) -> None:
    """The schema is really applied: otherwise the test above would prove nothing."""
    wrong = tmp_path / "docker-compose.yaml"
    wrong.write_text(
        FILE.read_text(encoding="utf-8").replace("healthcheck:", "healtcheck:", 1), encoding="utf-8"
    )
    done = compose("--file", str(wrong), "config", "--quiet", env_file=env_file)
    assert done.returncode != 0
    assert "healtcheck" in done.stderr


def test_nothing_starts_without_secrets() -> None:
    """Neither with no environment file nor with the example as it is shipped."""
    for env_file in (None, EXAMPLE):
        done = compose("config", "--quiet", env_file=env_file)
        assert done.returncode != 0
        assert "required variable" in done.stderr
        assert "tools/make_env.py" in done.stderr


def test_every_secret_is_required_and_has_no_default() -> None:
    secrets = {name for name in variables() if SECRET.search(name)}
    assert len(secrets) >= 15
    assert all(variables()[name] for name in secrets)
    assert not {name for name in secrets if documented()[name]}


def test_every_variable_is_documented_and_every_documented_one_is_used() -> None:
    for_compose_itself = {"COMPOSE_PROFILES"}
    assert set(variables()) | for_compose_itself == set(documented()) | set(optional())
    assert not {name for name in optional() if variables()[name]}


def test_documented_defaults_are_the_files_own() -> None:
    text = FILE.read_text(encoding="utf-8")
    for name, value in documented().items():
        if value and name != "COMPOSE_PROFILES":
            assert set(re.findall(rf"\$\{{{name}:-([^}}]*)\}}", text)) == {value}, name


def test_no_literal_secret_stands_in_the_file() -> None:
    """Whatever looks like a secret by its name takes its value from a variable."""
    for name, service in yaml.safe_load(FILE.read_text(encoding="utf-8"))["services"].items():
        for key, value in service.get("environment", {}).items():
            if SECRET.search(key) and not key.endswith("_FILE"):
                assert re.fullmatch(r"\$\{[A-Z0-9_]+:\?[^}]+\}", str(value)), f"{name}: {key}"
            for part in re.findall(r'://[^@\s/]*:([^@\s]*)@|"password": "([^"]*)"', str(value)):
                assert "".join(part).startswith("${"), f"{name}: {key}"


def test_every_service_that_imports_the_project_finds_it(services: Services) -> None:
    for name, service in own_services(services).items():
        assert service["environment"]["PYTHONPATH"] == "/opt/cusyn:/opt/cusyn/plugins", name
        assert service["environment"]["CUSYN_PROJECT_ROOT"] == "/opt/cusyn", name
        assert any(v["target"] == "/opt/cusyn/config" for v in service["volumes"]), name


def test_tasks_reach_the_ledger_as_its_writer_and_the_ui_as_its_auditor(services: Services) -> None:
    assert ledger_login(services["scheduler"]) == "dp_ledger_writer"
    assert ledger_login(services["api-server"]) == "dp_ledger_auditor"
    assert "AIRFLOW_CONN_PRIVACY_LEDGER" not in services["dag-processor"]["environment"]


def test_the_command_lines_log_in_as_admin_and_auditor_and_never_start_by_themselves(
    services: Services,
) -> None:
    for name, login in zip(COMMAND_LINES, ("dp_ledger_admin", "dp_ledger_auditor"), strict=True):
        assert urlsplit(services[name]["environment"]["CUSYN_LEDGER_URL"]).username == login
        assert services[name]["profiles"] == ["tools"]
        assert not {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"} & set(services[name]["environment"])


def test_every_user_of_the_ui_gets_a_password_and_two_may_approve(services: Services) -> None:
    """Airflow would print a password that it had to invent; approving needs a second person."""
    listed = services["init"]["environment"]["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"]
    roles = dict(user.split(":") for user in listed.split(","))
    assert set(roles) == set(UI_USERS)
    assert set(UI_USERS.values()) <= set(services["init"]["environment"])
    assert len([role for role in roles.values() if role in ("admin", "op")]) >= 2


def test_only_init_holds_the_owner_and_the_superuser(services: Services) -> None:
    assert metadata_login(services["init"]) == "dp_ledger_owner"
    secrets = services["init"]["environment"]
    for name in set(services) - {"init", "postgres"}:
        environment = str(services[name]["environment"])
        assert secrets["CUSYN_DB_OWNER_PASSWORD"] not in environment, name
        assert (secrets["CUSYN_LEDGER_ADMIN_PASSWORD"] in environment) == (name == "steward")
        assert str(urlsplit(secrets["CUSYN_SUPERUSER_URL"]).password) not in environment, name
        if name in AIRFLOW_SERVICES:
            assert metadata_login(services[name]) == "airflow", name


def test_only_the_tasks_see_raw_data_and_only_they_and_the_steward_reach_the_store(
    services: Services,
) -> None:
    private = {"/opt/cusyn/var/raw", "/opt/cusyn/var/protected", "/opt/cusyn/var/keys"}
    for name, service in own_services(services).items():
        mounted = {volume["target"] for volume in service["volumes"]}
        key = services["store-init"]["environment"]["S3_SECRET_KEY"]
        holds_key = key in str(service["environment"])
        assert holds_key == (name in ("scheduler", "steward")), name
        assert mounted & private == (private if name == "scheduler" else set()), name


def test_configuration_and_source_are_mounted_read_only(services: Services) -> None:
    for service in services.values():
        for volume in service.get("volumes", []):
            assert volume["type"] != "bind" or volume.get("read_only") is True, volume


def test_checkpoints_are_written_by_the_tasks_and_read_by_the_rest(services: Services) -> None:
    """They vouch for the ledger: whoever compares it with them cannot change them."""
    for name in ("scheduler", "api-server", "steward", "auditor"):
        (mount,) = [v for v in services[name]["volumes"] if v["target"].endswith("/checkpoints")]
        assert mount.get("read_only", False) == (name != "scheduler"), name


def test_every_port_is_bound_to_loopback(services: Services) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert len(ports) == 2
    assert {port["host_ip"] for port in ports} == {"127.0.0.1"}
    assert not services["postgres"].get("ports")


def test_all_share_one_jwt_secret_and_the_execution_api_is_the_api_servers(
    services: Services,
) -> None:
    environments = [services[name]["environment"] for name in AIRFLOW_SERVICES]
    assert len({e["AIRFLOW__API_AUTH__JWT_SECRET"] for e in environments}) == 1
    urls = {e["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] for e in environments}
    assert urls == {"http://api-server:8080/execution/"}


@pytest.mark.parametrize("name", ["postgres", "store", "api-server", "scheduler", "dag-processor"])
def test_every_long_running_service_has_a_health_check(services: Services, name: str) -> None:
    assert services[name]["healthcheck"]["test"][0] == "CMD"
    assert services[name]["restart"] == "unless-stopped"


def test_airflow_starts_after_init_and_tasks_after_the_bucket(services: Services) -> None:
    done = "service_completed_successfully"
    for name in ("api-server", "scheduler", "dag-processor"):
        assert services[name]["depends_on"]["init"]["condition"] == done
    assert services["scheduler"]["depends_on"]["store-init"]["condition"] == done
    assert services["init"]["depends_on"]["postgres"]["condition"] == "service_healthy"


def test_the_stand_in_for_a_store_can_be_left_out(env_file: Path, tmp_path: Path) -> None:
    """With the profile emptied the rest is still a whole: nothing depends on what is missing."""
    for profiles, expected in (("store", {"store", "store-init"}), ("", set())):
        path = tmp_path / "env"
        text = env_file.read_text(encoding="utf-8")
        path.write_text(text.replace("COMPOSE_PROFILES=store", f"COMPOSE_PROFILES={profiles}"))
        done = compose("config", "--services", env_file=path, profiles=None)
        started = set(done.stdout.split())
        assert done.returncode == 0, done.stderr
        assert (
            started == {"postgres", "init", "api-server", "scheduler", "dag-processor"} | expected
        )


def test_our_containers_run_without_root_and_without_capabilities(services: Services) -> None:
    for name, service in own_services(services).items():
        assert service["user"] == "50000:0", name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name


def test_every_foreign_image_is_pinned_to_one_release(services: Services) -> None:
    foreign = {services[name]["image"] for name in set(services) - set(own_services(services))}
    assert foreign == {
        "postgres:16.14-bookworm",
        "quay.io/minio/minio:RELEASE.2025-09-07T16-13-09Z",
    }


def test_the_publisher_may_not_delete(env_file: Path) -> None:
    text = json.loads(compose("config", "--format", "json", env_file=env_file).stdout)
    policy = json.loads(text["configs"]["publisher-policy"]["content"])
    actions = {action for statement in policy["Statement"] for action in statement["Action"]}
    assert "s3:PutObject" in actions
    assert not {action for action in actions if "Delete" in action or "*" in action}
