"""Runs a service of the compose file as a process of this machine.

A container's world is moved, not rewritten: the image's folder /opt/cusyn becomes a scratch folder
filled as the Dockerfile fills it, and each address of the compose network a port on 127.0.0.1.
Command, environment and health check are the file's own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.compose.composefile import ROOT

IMAGE_FOLDER = "/opt/cusyn"
BINARIES = Path(sys.executable).parent


def make_image_folder(folder: Path, config: Path) -> None:
    """Lay out what the Dockerfile copies and what the compose file mounts, without copying it."""
    for name in ("include", "plugins", "dags", "tools", "requirements.txt"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "config").symlink_to(config)
    volumes = ("protected", "work", "keys", "checkpoints", "releases", "raw", "access")
    for name in ("airflow/logs", *volumes):
        (folder / "var" / name).mkdir(parents=True)


def localise(value: Any, folder: Path, addresses: dict[str, int] | None = None) -> Any:
    """Return an environment, a command or a text with the container's places replaced.

    Args:
        value: text, or a list or mapping of it.
        folder: what stands for the image's folder.
        addresses: `host:port` of the compose network -> port on 127.0.0.1.
    """
    if isinstance(value, dict):
        return {key: localise(v, folder, addresses) for key, v in value.items()}
    if isinstance(value, list):
        return [localise(v, folder, addresses) for v in value]
    text = str(value)
    apart = '"host": "{}", "port": {}'  # as connections name them
    for address, port in (addresses or {}).items():
        text = text.replace(address, f"127.0.0.1:{port}")
        text = text.replace(apart.format(*address.split(":")), apart.format("127.0.0.1", port))
    return text.replace(IMAGE_FOLDER, str(folder))


@dataclass
class LocalService:
    """One service of the compose file, run here.

    Args:
        name: as in the file.
        definition: the service, resolved by Compose.
        folder: what stands for the image's folder.
        addresses: `host:port` -> port on 127.0.0.1.
        overrides: variables that only a shared machine needs: ports that containers need not share.
    """

    name: str
    definition: dict[str, Any]
    folder: Path
    addresses: dict[str, int]
    overrides: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The file's environment, and nothing of this shell but where programs are."""
        here = {"PATH": f"{BINARIES}:{os.environ['PATH']}", "HOME": str(self.folder / "var")}
        given = localise(self.definition["environment"], self.folder, self.addresses)
        return {**here, **given, **self.overrides}

    @property
    def log(self) -> Path:
        """What the process says."""
        return self.folder / f"{self.name}.log"

    def start(self) -> None:
        """Start the file's command, in a process group of its own."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.definition["command"],
                env=self.environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the service to its end, with these arguments in place of the file's command."""
        entry = self.definition.get("entrypoint") or []
        return self._command([*entry, *(arguments or self.definition["command"])], timeout=180)

    def check_health(self) -> subprocess.CompletedProcess[str]:
        """Run the file's own health check once."""
        test = localise(self.definition["healthcheck"]["test"], self.folder, self.addresses)
        assert test[0] == "CMD"
        return self._command(test[1:], timeout=60)

    def wait_until_healthy(self, seconds: float) -> None:
        """Repeat the health check until it passes.

        Raises:
            AssertionError: with the service's last words.
        """
        deadline = time.monotonic() + seconds
        while self.check_health().returncode:
            ended = self.process is None or self.process.poll() is not None
            late = time.monotonic() > deadline
            assert not (ended or late), f"{self.name} is not healthy:\n{self.last_words()}"
            time.sleep(1)

    def last_words(self) -> str:
        """The end of the log."""
        return self.log.read_text(errors="replace")[-4000:]

    def stop(self, seconds: float = 30) -> None:
        """Ask the process to stop as `docker compose stop` does, then end its whole group."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _command(self, command: list[str], timeout: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
