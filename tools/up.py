"""`make up`: the Airflow UI on 127.0.0.1 with the demo loaded, until Ctrl-C.

Runs `airflow standalone` on the embedded default under `var/`. What Airflow prints goes to a log
file; the screen says where the UI is and how to log in. `PORT=8081 make up` takes another port.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from tools import embedded

VAR = embedded.ROOT / "var"
READY_SECONDS = 300
STOP_SECONDS = 60
PASSWORDS = "simple_auth_manager_passwords.json.generated"


class Standalone:
    """`airflow standalone` in a process group of its own.

    Args:
        environment: variables of `embedded.environment`, and what else the caller wants.
        log: file that takes all that Airflow prints.
    """

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        # `airflow standalone` starts its parts by the name `airflow`.
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        self.environment = {"PATH": programs, **environment}
        self.url = self.environment["AIRFLOW__API__BASE_URL"]
        self.passwords = Path(self.environment["AIRFLOW_HOME"]) / PASSWORDS
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "airflow", "standalone"],
                env=os.environ | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches it once, through `stop`
                preexec_fn=_heed_interrupts,
            )

    def wait_ready(self, seconds: float = READY_SECONDS) -> bool:
        """Wait until the UI answers and scheduler and DAG processor are at work."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            if self._healthy():
                return True
            time.sleep(1)
        return False

    def _healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/api/v2/monitor/health", timeout=10) as answer:
                health = json.load(answer)
            # The first call of the execution API is slow; a task should not have to wait for it.
            urllib.request.urlopen(f"{self.url}/execution/health", timeout=60).close()
        except (OSError, ValueError, urllib.error.URLError):
            return False
        parts = ("metadatabase", "scheduler", "dag_processor")
        return all((health.get(part) or {}).get("status") == "healthy" for part in parts)

    def users(self) -> dict[str, str]:
        """Return the passwords that Airflow made up for its users."""
        found: dict[str, str] = json.loads(self.passwords.read_text(encoding="utf-8"))
        self.passwords.chmod(0o600)
        return found

    def stop(self, seconds: float = STOP_SECONDS) -> int:
        """Stop all of it (it stops cleanly on SIGINT only); returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            return self.process.wait()


def _heed_interrupts() -> None:
    """Undo the shell's habit of letting background jobs ignore SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    """Load the demo if need be, start Airflow, say how to reach it, wait for Ctrl-C."""
    port = int(os.environ.get("PORT", "8080"))
    if not port_is_free(port):
        raise SystemExit(f"Port {port} is taken by another program: run PORT={port + 1} make up.")
    if not demo_is_loaded():
        print("The demo has not been run yet; this comes first.", flush=True)
        subprocess.run([sys.executable, "-m", "tools.demo"], cwd=embedded.ROOT, check=True)
    log = VAR / "airflow" / "up.log"
    print(f"Starting Airflow; its log is {shown(log)} ...", flush=True)
    airflow = Standalone(embedded.environment(VAR, port=port), log)
    for sign in (signal.SIGINT, signal.SIGTERM):
        signal.signal(sign, signal.default_int_handler)
    try:
        if not airflow.wait_ready():
            raise SystemExit(f"Airflow did not start; the last lines of {shown(log)} say why.")
        print(greeting(airflow), flush=True)
        airflow.process.wait()
        raise SystemExit(f"Airflow has stopped by itself; the last lines of {shown(log)} say why.")
    except KeyboardInterrupt:
        print("\nStopping Airflow ...", flush=True)
    finally:
        airflow.stop()


def greeting(airflow: Standalone) -> str:
    """Return the lines that lead a steward into the UI."""
    users = "\n".join(f"  {name:8} {password}" for name, password in airflow.users().items())
    return (
        f"\nAirflow is ready: {airflow.url}\n\nLog in (user and password, kept in "
        f"{shown(airflow.passwords)}):\n{users}\n\n"
        "admin may trigger releases; viewer may only look. Ctrl-C stops it."
    )


def shown(path: Path) -> Path:
    """Return a path as a steward in the project's folder writes it."""
    return path.relative_to(embedded.ROOT) if path.is_relative_to(embedded.ROOT) else path


def demo_is_loaded() -> bool:
    """Tell whether the ledger under var/ holds a published release."""
    from include.budget.reader import LedgerReader
    from include.budget.store import connect
    from include.errors import CuSynError

    database = VAR / "airflow" / "airflow.db"
    try:
        return bool(LedgerReader(connect(f"sqlite:///{database}")).releases())
    except CuSynError:
        return False


def port_is_free(port: int) -> bool:
    """Tell whether the port can be taken on 127.0.0.1."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


if __name__ == "__main__":
    main()
