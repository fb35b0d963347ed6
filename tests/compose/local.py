"""Turns a service of the compose file into a process of this machine.

A container's world is moved, not rewritten: the image's folder becomes the repository, its volumes
a scratch folder, and each host name a port on 127.0.0.1. Command, environment and health check are
the file's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.compose.composefile import ROOT


def localise(
    value: Any, scratch: Path, ports: dict[str, int] | None = None, config: Path | None = None
) -> Any:
    """Return an environment, a command or a text with the container's places replaced.

    Args:
        value: text, or a list or mapping of it.
        scratch: what stands for the volumes.
        ports: `host:port` of the compose network -> port on 127.0.0.1.
        config: what is mounted as the steward's configuration.
    """
    if isinstance(value, dict):
        return {key: localise(v, scratch, ports, config) for key, v in value.items()}
    if isinstance(value, list):
        return [localise(v, scratch, ports, config) for v in value]
    text = str(value)
    for address, port in (ports or {}).items():
        host, _, inside = address.partition(":")
        text = text.replace(address, f"127.0.0.1:{port}")
        # Connections name host and port apart.
        text = text.replace(
            f'"host": "{host}", "port": {inside}', f'"host": "127.0.0.1", "port": {port}'
        )
    text = text.replace("/opt/cusyn/config", str(config or ROOT / "include" / "config"))
    text = text.replace("/opt/cusyn/var", str(scratch))
    return text.replace("/opt/cusyn", str(ROOT))
