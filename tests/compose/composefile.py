"""Reads docker-compose.yaml as Compose itself does: its own parser, which needs no engine.

The parser comes with the test requirements. It checks the file against the Compose schema, fills
in the variables and merges what YAML merges, so the tests look at what would really be started.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tools.make_env import fill

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docker-compose.yaml"
EXAMPLE = ROOT / ".env.example"
PARSER = Path(sys.executable).parent / "docker-compose"
ASSIGNMENT = re.compile(r"^([A-Z0-9_]+)=(.*)$", re.MULTILINE)
OPTIONAL = re.compile(r"^# ([A-Z0-9_]+)=(.*)$", re.MULTILINE)  # shown, not set


def compose(
    *arguments: str, env_file: Path | None = None, profiles: str | None = "*"
) -> subprocess.CompletedProcess[str]:
    """Run Compose on the project's file, seeing only `env_file` and not this shell's variables.

    Args:
        arguments: of Compose.
        env_file: where it finds variables.
        profiles: which services, besides those that always start; None: as `env_file` says.
    """
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    command = [str(PARSER), "--file", str(FILE), "--env-file", str(env_file or os.devnull)]
    command += [] if profiles is None else ["--profile", profiles]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, env=environment, check=False
    )


def resolved(env_file: Path) -> dict[str, Any]:
    """Return the whole file with variables and merges resolved."""
    done = compose("config", "--format", "json", env_file=env_file)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def documented() -> dict[str, str]:
    """Return the variables of .env.example with the values shown there."""
    return dict(ASSIGNMENT.findall(EXAMPLE.read_text(encoding="utf-8")))


def optional() -> dict[str, str]:
    """Return the variables that .env.example shows behind a #, with the values shown there."""
    return dict(OPTIONAL.findall(EXAMPLE.read_text(encoding="utf-8")))


def filled_env(folder: Path, **values: str) -> Path:
    """Write an environment file: .env.example with fresh secrets and these values in place."""
    text = fill(EXAMPLE.read_text(encoding="utf-8"))
    for name, value in values.items():
        text, found = re.subn(rf"^{name}=.*$", f"{name}={value}", text, flags=re.MULTILINE)
        assert found == 1, f"{name} is not in .env.example"
    path = folder / "compose.env"
    path.write_text(text, encoding="utf-8")
    return path
