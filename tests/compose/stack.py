"""The whole of docker-compose.yaml as processes: PostgreSQL, an S3 store, and Airflow's three."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg

from tests.compose.composefile import ROOT, filled_env, resolved
from tests.compose.local import LocalService, make_image_folder
from tests.compose.machines import binaries, control, data_folder, free_port, postgres, s3_store
from tools.demo import fetch_survey

AIRFLOW = ("api-server", "dag-processor", "scheduler")


@dataclass
class Stack:
    """Everything that runs, and how to reach it.

    Args:
        folder: what stands for /opt/cusyn.
        services: Airflow's, by their names in the compose file.
        ports: `postgres`, `store` and `ui`, on 127.0.0.1.
        bucket: the releases' bucket.
    """

    folder: Path
    services: dict[str, LocalService]
    ports: dict[str, int]
    bucket: str

    def login(self, role: str) -> psycopg.Connection:
        """Log in to the database as one of the roles, with the password of the environment file."""
        secrets = self.services["init"].environment
        passwords = {
            "postgres": str(urlsplit(secrets["CUSYN_SUPERUSER_URL"]).password),
            "dp_ledger_owner": secrets["CUSYN_DB_OWNER_PASSWORD"],
            "airflow": secrets["CUSYN_DB_AIRFLOW_PASSWORD"],
            "dp_ledger_writer": secrets["CUSYN_LEDGER_WRITER_PASSWORD"],
            "dp_ledger_admin": secrets["CUSYN_LEDGER_ADMIN_PASSWORD"],
            "dp_ledger_auditor": secrets["CUSYN_LEDGER_AUDITOR_PASSWORD"],
        }
        return psycopg.connect(
            host="127.0.0.1",
            port=self.ports["postgres"],
            dbname="airflow",
            user=role,
            password=passwords[role],
            autocommit=True,
        )

    def store(self) -> Any:
        """An S3 client with the publisher's key, as the scheduler's connection gives it."""
        import boto3

        connection = json.loads(
            self.services["scheduler"].environment["AIRFLOW_CONN_RELEASE_STORE"]
        )
        return boto3.client(
            "s3",
            endpoint_url=connection["extra"]["endpoint_url"],
            region_name=connection["extra"]["region_name"],
            aws_access_key_id=connection["login"],
            aws_secret_access_key=connection["password"],
        )

    def token(self, user: str = "admin") -> str:
        """Log in over the REST API with the user's password of the environment file."""
        variable = f"CUSYN_UI_{user.upper()}_PASSWORD"
        password = self.services["init"].environment[variable]
        answer = self.api("POST", "/auth/token", {"username": user, "password": password})
        return str(answer["access_token"])

    def api(
        self, method: str, path: str, body: Any = None, token: str | None = None
    ) -> dict[str, Any]:
        """Call the REST API of the api-server."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ports['ui']}{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Content-Type": "application/json"},
        )
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()[:500]!r}") from error

    def wait_for_run(self, dag_id: str, run_id: str, seconds: float) -> str:
        """Wait until a run has ended; returns its state."""
        token, deadline = self.token(), time.monotonic() + seconds
        path = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}"
        while True:
            state = str(self.api("GET", path, token=token)["state"])
            if state in ("success", "failed") or time.monotonic() > deadline:
                return state
            time.sleep(1)

    def command_line(self, service: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Do as `docker compose run --rm SERVICE ARGUMENTS` does."""
        return self.services[service].run(*arguments)

    def stop(self) -> None:
        """Stop Airflow's services; the database and the store go on."""
        for name in reversed(AIRFLOW):
            self.services[name].stop()

    def start(self) -> None:
        """Run `init`, then start Airflow's services in the order the compose file asks for."""
        done = self.services["init"].run()
        assert done.returncode == 0, done.stderr[-3000:]
        for name in AIRFLOW:
            self.services[name].start()
            self.services[name].wait_until_healthy(300)

    @contextmanager
    def without_database(self) -> Iterator[None]:
        """Stop PostgreSQL, Airflow's rows and the ledger with it, for as long as the block lasts.

        What has ended over it is started again afterwards, as Compose does (`restart:`).
        """
        password = urlsplit(self.services["init"].environment["CUSYN_SUPERUSER_URL"]).password
        data = data_folder(self.ports["postgres"], str(password))
        control(data, "-m", "fast", "stop")
        try:
            yield
        finally:
            control(data, "-l", str(data.parent / "log"), "restart")
        for name in AIRFLOW:
            service = self.services[name]
            if service.process is not None and service.process.poll() is not None:
                service.start()
            service.wait_until_healthy(300)

    def database_tool(self, name: str, *arguments: str) -> None:
        """Run one of PostgreSQL's own programs as the superuser."""
        password = urlsplit(self.services["init"].environment["CUSYN_SUPERUSER_URL"]).password
        subprocess.run(
            [str(binaries() / name), *arguments],
            env={
                "PGHOST": "127.0.0.1",
                "PGPORT": str(self.ports["postgres"]),
                "PGUSER": "postgres",
                "PGPASSWORD": str(password),
            },
            check=True,
        )

    def page(self, path: str, token: str | None = None) -> tuple[int, str]:
        """Get a page of the api-server; returns its status and text."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports['ui']}{path}")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(errors="replace")

    def logs(self) -> str:
        """All that any service or task has written."""
        services = [service.log for service in self.services.values() if service.log.exists()]
        tasks = (self.folder / "var" / "airflow" / "logs").rglob("*.log")
        return "\n".join(path.read_text(errors="replace") for path in [*services, *tasks])


def steward_configuration(folder: Path, bucket: str) -> Path:
    """Copy the demo's YAML: releases go to the bucket, and one of two needs an approval."""
    config = folder / "config"
    shutil.copytree(
        ROOT / "include" / "config", config, ignore=shutil.ignore_patterns("*.py", "__pycache__")
    )
    path = config / "releases" / "happiness_by_wave.yaml"
    text = path.read_text(encoding="utf-8")
    assert "publish: {uri: var/releases}" in text
    to_store = f"publish: {{uri: 's3://{bucket}/public', conn_id: release_store}}"
    text = text.replace("publish: {uri: var/releases}", to_store)
    path.write_text(text, encoding="utf-8")
    # The same once more, for a second pair of eyes.
    assert "approval: auto" in text
    reviewed = text.replace("approval: auto", "approval: required")
    reviewed = reviewed.replace("release: happiness_by_wave", "release: happiness_reviewed")
    path.with_name("happiness_reviewed.yaml").write_text(reviewed, encoding="utf-8")
    return config


@contextmanager
def running(folder: Path) -> Iterator[Stack]:
    """Start everything in the order the compose file asks for; stop all of it at the end."""
    ports = {name: free_port() for name in ("ui", "health", "task_logs")}
    file = resolved(filled_env(folder))
    bucket = file["services"]["store-init"]["environment"]["S3_BUCKET"]
    policy = file["configs"]["publisher-policy"]["content"]
    image = folder / "image"
    image.mkdir()
    make_image_folder(image, steward_configuration(folder, bucket))
    fetch_survey(image)
    with ExitStack() as cleanup:
        store = cleanup.enter_context(s3_store(folder, bucket, policy))
        env_file = filled_env(
            folder,
            CUSYN_UI_PORT=str(ports["ui"]),
            CUSYN_PARALLELISM="2",
            CUSYN_S3_ACCESS_KEY=store.access_key,
            CUSYN_S3_SECRET_KEY=store.secret_key,
        )
        definitions = resolved(env_file)["services"]
        password = definitions["postgres"]["environment"]["POSTGRES_PASSWORD"]
        ports["postgres"] = cleanup.enter_context(postgres(password))
        ports["store"] = store.port
        stack = Stack(image, _services(definitions, image, ports), ports, bucket)
        cleanup.callback(stack.stop)
        stack.start()
        yield stack


def _services(
    definitions: dict[str, Any], image: Path, ports: dict[str, int]
) -> dict[str, LocalService]:
    addresses = {
        "postgres:5432": ports["postgres"],
        "store:9000": ports["store"],
        "api-server:8080": ports["ui"],
        "127.0.0.1:8080": ports["ui"],  # as the health checks, inside their containers, say it
        "127.0.0.1:8974": ports["health"],
    }
    shared_machine = {  # containers have a network of their own each; here all share one
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(ports["ui"]),
        "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_SERVER_PORT": str(ports["health"]),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(ports["task_logs"]),
        **_arithmetic(),
    }
    return {
        name: LocalService(name, definitions[name], image, addresses, shared_machine)
        for name in ("init", *AIRFLOW, "steward", "auditor")
    }


def _arithmetic() -> dict[str, str]:
    """This machine's own settings of its arithmetic libraries, where it has any."""
    return {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")}
