"""A user of Airflow's REST API, with a token of its own."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from typing import Any


class Client:
    """One logged-in user.

    Args:
        url: where Airflow listens.
        user, password: as Airflow's SimpleAuthManager knows them.
    """

    def __init__(self, url: str, user: str, password: str) -> None:
        self.url, self.token = url, ""
        status, answer = self.call("POST", "/auth/token", {"username": user, "password": password})
        assert status == 201, answer
        self.token = answer["access_token"]

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return status and JSON of one call; a refusal is an answer, too."""
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as refusal:
            text = refusal.read().decode()
            return refusal.code, text

    def get(self, path: str) -> Any:
        """Return the JSON of a call that must succeed."""
        status, answer = self.call("GET", f"/api/v2{path}")
        assert status == 200, (path, answer)
        return answer

    def unpause(self, dag_id: str) -> None:
        """Let a DAG run."""
        status, answer = self.call("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": False})
        assert status == 200, answer

    def trigger(self, dag_id: str, **body: Any) -> tuple[int, Any]:
        """Ask for a run."""
        return self.call("POST", f"/api/v2/dags/{dag_id}/dagRuns", {"logical_date": None} | body)

    def wait(self, dag_id: str, run_id: str, seconds: float = 240) -> str:
        """Wait for the end of a run; returns its state."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            state = self.get(f"/dags/{dag_id}/dagRuns/{run_id}")["state"]
            if state in ("success", "failed"):
                return str(state)
            time.sleep(1)
        raise AssertionError(f"{dag_id} {run_id} did not end: {self.states(dag_id, run_id)}")

    def states(self, dag_id: str, run_id: str) -> dict[str, str]:
        """Return the state of each task of a run."""
        found = self.get(f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances")["task_instances"]
        return {task["task_id"]: task["state"] for task in found}

    def log(self, dag_id: str, run_id: str, task: str, attempt: int = 1) -> list[dict[str, Any]]:
        """Return the lines of a task's log, as the UI shows them."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task}/logs/{attempt}"
        lines: list[dict[str, Any]] = self.get(path)["content"]
        return lines
