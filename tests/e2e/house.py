"""A real `airflow standalone` that works on a rig, for tests that drive it from outside."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.airflow.rig import Rig
from tests.e2e.client import Client
from tools import embedded
from tools.up import Standalone

USERS = "alice:op,bob:op,local:op,viewer:viewer"


@dataclass
class House:
    """A running Airflow and the rig it works on.

    Args:
        rig: the installation; its ledger lies in Airflow's own database.
        airflow: the processes.
        log: what they print.
        users: each user's password.
    """

    rig: Rig
    airflow: Standalone
    log: Path
    users: dict[str, str]

    @property
    def on_sqlite(self) -> bool:
        """Whether Airflow's database and the ledger are one SQLite file."""
        return self.rig.ledger_file.exists()

    def client(self, user: str = "alice") -> Client:
        """Log in over REST."""
        return Client(self.airflow.url, user, self.users[user])


@contextmanager
def standing(
    root: Path,
    patch: pytest.MonkeyPatch,
    prepare: Callable[[Rig], None],
    more: Mapping[str, str | None] | None = None,
    make_rig: Callable[[Path, pytest.MonkeyPatch], Rig] | None = None,
) -> Iterator[House]:
    """Start Airflow on a rig below a folder; stop all of it at the end.

    Args:
        root: the folder.
        patch: sets this process's variables to the same places.
        prepare: writes what the steward declares, before Airflow starts.
        more: settings of Airflow's that differ from the embedded default; None unsets one.
        make_rig: makes a rig whose ledger does not lie in Airflow's own database.
    """
    settings = embedded.environment(root / "var", port=free_port())
    settings |= {
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": USERS,
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
    }
    for name, value in (more or {}).items():
        if value is None:
            settings.pop(name, None)
            patch.delenv(name, raising=False)
        else:
            settings[name] = value
    for name, value in settings.items():
        patch.setenv(name, value)
    in_airflows = Path(settings["AIRFLOW_HOME"]) / "airflow.db"
    rig = make_rig(root, patch) if make_rig else Rig(root, patch, in_airflows)
    settings |= rig.airflow_environment()
    prepare(rig)
    log = root / "standalone.log"
    airflow = Standalone(settings, log)
    try:
        assert airflow.wait_ready(), log.read_text(errors="replace")[-3000:]
        rig.register()
        yield House(rig, airflow, log, airflow.users())
    finally:
        airflow.stop()


def free_port() -> int:
    """Return a TCP port of 127.0.0.1 that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(holds: Callable[[], bool], what: str, seconds: float = 300) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.5)
