"""One environment for each peer, made from its complete pins with uv, below var/peers."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.peers.catalogue import Peer

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "var" / "peers"
MARK = "pins.sha256"


class EnvironmentFault(Exception):
    """A peer's packages do not install here."""


def interpreter(peer: Peer) -> Path:
    """Make the peer's environment if its pins have changed, and return its Python.

    Raises:
        EnvironmentFault: uv is missing, or the packages do not install.
    """
    if peer.requirements is None:
        return Path(sys.executable)
    home = FOLDER / peer.name
    python = home / "bin" / "python"
    digest = hashlib.sha256(peer.requirements.read_bytes()).hexdigest()
    mark = home / MARK
    if not (mark.exists() and mark.read_text() == digest and python.exists()):
        print(f"Installing {peer.name} into var/peers/{peer.name} (once) ...", flush=True)
        uv("venv", "--clear", "--python", sys.executable, str(home))
        # The pins are complete: what is left out of them on purpose stays out.
        uv("pip", "install", "--no-deps", "--python", str(python), "-r", str(peer.requirements))
        mark.write_text(digest)
    return python


def uv(*arguments: str) -> None:
    """Run uv quietly."""
    beside = Path(sys.executable).with_name("uv")
    program = str(beside) if beside.exists() else shutil.which("uv")
    if program is None:
        raise EnvironmentFault("uv is not installed: run `make setup-dev`.")
    command = [program, *arguments, "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise EnvironmentFault(" ".join(lines)[:160] or f"uv ended with {done.returncode}")
