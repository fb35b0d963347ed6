"""What people do to runs over REST, and what they then see."""

from __future__ import annotations

import html
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.e2e.client import Client
from tests.e2e.house import House, until

WAIT = 600  # seconds for a run on a busy machine


def charges_of(house: House, release: str) -> list[Any]:
    return [charge for charge in house.rig.charges() if charge.release == release]


def charge_of(house: House, run_id: str) -> Any:
    (charge,) = [charge for charge in house.rig.charges() if charge.run_id == run_id]
    return charge


@contextmanager
def nothing_spent(house: House) -> Iterator[None]:
    """Nothing is charged or journalled for a charge, and no published byte changes."""

    def seen() -> Any:
        charges = house.rig.charges()
        journal = [house.rig.kinds(charge.charge_id) for charge in charges]
        return house.rig.spent(), journal, house.rig.package_bytes()

    before = seen()
    yield
    assert seen() == before
    house.rig.verify()


def shows(house: House, charge_id: str, state: str, *words: str) -> None:
    """The ledger says a charge is in a state, and so do the pages to somebody who may only look.

    Args:
        house: what runs.
        charge_id: the charge.
        state: its state.
        words: what else its page says.
    """
    charge = house.rig.reader().charge(charge_id)
    assert charge.state == state
    token, badge = house.client("viewer").token, f'<span class="state {state}">{state}</span>'
    status, text = page(house, f"/privacy-budget/charges/{charge_id}", token)
    assert status == 200, text[-2000:]
    assert badge in text
    for told in (*words, *(one.words for one in house.rig.reader().entries(charge_id))):
        assert told in html.unescape(text), told
    assert badge in row_of(house, charge_id, token)


def row_of(house: House, charge_id: str, token: str) -> str:
    """Return a charge's row of the overview, on whichever of its pages it stands."""
    for number in range(1, 100):
        status, text = page(house, f"/privacy-budget/?page={number}", token)
        assert status == 200
        for row in text.split("<tr>"):
            if f"/charges/{charge_id}" in row:
                return row
    raise AssertionError(f"{charge_id} is on no page")


def page(house: House, path: str, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(house.airflow.url + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


def run(client: Client, dag_id: str, **body: Any) -> tuple[str, str]:
    status, answer = client.trigger(dag_id, **body)
    assert status == 200, answer
    return answer["dag_run_id"], client.wait(dag_id, answer["dag_run_id"], WAIT)


def task(client: Client, dag_id: str, run_id: str, name: str) -> dict[str, Any]:
    return dict(client.get(f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{name}"))


def insist(client: Client, method: str, path: str, body: Any = None) -> Any:
    """Call until it succeeds: on SQLite Airflow answers 500 while its scheduler is writing."""
    for _ in range(10):
        status, answer = client.call(method, path, body)
        if status < 500:
            break
        time.sleep(2)
    assert status in (200, 204), (status, answer)
    return answer


def clear(client: Client, dag_id: str, run_id: str, *tasks: str) -> str:
    """Clear a run, or some of its tasks, as a person does in the UI; returns how it ends."""
    if tasks:
        body = {"dag_run_id": run_id, "task_ids": list(tasks), "only_failed": False}
        path = f"/api/v2/dags/{dag_id}/clearTaskInstances"
        insist(client, "POST", path, body | {"dry_run": False})
    else:
        path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/clear"
        insist(client, "POST", path, {"dry_run": False})
    return client.wait(dag_id, run_id, WAIT)


def mark(client: Client, dag_id: str, run_id: str, name: str) -> None:
    """Set a task's colour to success by hand."""
    path = f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{name}"
    insist(client, "PATCH", path, {"new_state": "success"})


def made_run(client: Client, dag_id: str) -> str:
    """Wait for the one run that a schedule makes; returns its id."""
    path = f"/dags/{dag_id}/dagRuns"
    until(lambda: bool(client.get(path)["dag_runs"]), "the schedule made no run")
    (only,) = client.get(path)["dag_runs"]
    return str(only["dag_run_id"])
