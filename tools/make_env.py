"""Writes `.env` for docker-compose.yaml: `.env.example` with a fresh secret in each empty line.

Standard library only, so that it runs before anything is installed. It never overwrites: a new
password in `.env` would not change the one that the database already has.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EMPTY = re.compile(r"^(?P<name>[A-Z0-9_]+)=$", re.MULTILINE)


def fresh_secret(name: str) -> str:
    """Return a random secret of the form its reader expects, safe inside a URL.

    Args:
        name: the variable it is for; an Airflow Fernet key is 32 bytes in base64.
    """
    if name.endswith("FERNET_KEY"):
        return base64.urlsafe_b64encode(os.urandom(32)).decode()
    if name.endswith(("ACCESS_KEY", "ROOT_USER")):
        return secrets.token_hex(10)  # S3 access keys have 20 characters at most on some stores
    return secrets.token_hex(32)  # 64 characters: what HMAC-SHA512, behind the JWT, asks for


def fill(template: str) -> str:
    """Return the template with a fresh secret behind each `NAME=` that has no value."""
    return EMPTY.sub(lambda line: f"{line['name']}={fresh_secret(line['name'])}", template)


def write_env(target: Path) -> None:
    """Write the file, readable by its owner only.

    Raises:
        FileExistsError: it is there already.
    """
    text = fill((ROOT / ".env.example").read_text(encoding="utf-8"))
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / ".env"
    try:
        write_env(place)
    except FileExistsError:
        raise SystemExit(f"{place} exists and is kept; remove it first to start anew.") from None
    print(f"Wrote {place} with fresh secrets. Next: docker compose up --build --detach")
