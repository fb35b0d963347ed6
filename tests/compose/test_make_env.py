"""tools/make_env.py: fresh secrets, once, for their owner's eyes."""

from __future__ import annotations

import base64
import stat
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.compose.composefile import ASSIGNMENT, EXAMPLE
from tools.make_env import fill, write_env


def values(text: str) -> dict[str, str]:
    return dict(ASSIGNMENT.findall(text))


def test_every_empty_line_gets_a_secret_and_no_other_changes() -> None:
    example, filled = values(EXAMPLE.read_text()), values(fill(EXAMPLE.read_text()))
    assert filled.keys() == example.keys()
    for name, value in filled.items():
        assert value
        assert example[name] in ("", value)


def test_no_two_secrets_are_alike_and_all_may_stand_in_a_url() -> None:
    example = values(EXAMPLE.read_text())
    both = [values(fill(EXAMPLE.read_text())), values(fill(EXAMPLE.read_text()))]
    secrets = [v for filled in both for name, v in filled.items() if not example[name]]
    assert len(set(secrets)) == len(secrets) >= 30
    assert all(quote(v, safe="=") == v and len(v) >= 20 for v in secrets)


def test_the_fernet_key_is_one() -> None:
    key = values(fill("CUSYN_FERNET_KEY=\n"))["CUSYN_FERNET_KEY"]
    assert len(base64.urlsafe_b64decode(key)) == 32


def test_the_file_is_private_and_never_overwritten(tmp_path: Path) -> None:
    target = tmp_path / ".env"
    write_env(target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    before = target.read_text()
    with pytest.raises(FileExistsError):
        write_env(target)
    assert target.read_text() == before
