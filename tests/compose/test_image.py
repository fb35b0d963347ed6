"""Dockerfile and .dockerignore: what is in the image, what is not, and who runs it."""

from __future__ import annotations

import re
import stat
import subprocess
from pathlib import Path

from tests.compose.composefile import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def instructions(name: str) -> list[str]:
    joined = DOCKERFILE.replace("\\\n", " ")
    return [line.split(None, 1)[1] for line in joined.splitlines() if line.startswith(f"{name} ")]


def test_the_base_is_pinned_to_one_python_release() -> None:
    assert re.search(r"^ARG PYTHON_IMAGE=python:3\.1[12]\.\d+-slim-\w+$", DOCKERFILE, re.MULTILINE)
    assert {line.split(" AS ")[0] for line in instructions("FROM")} == {"${PYTHON_IMAGE}"}


def test_the_image_runs_as_an_unprivileged_user() -> None:
    assert instructions("USER") == ["50000:0"]


def test_the_whole_lock_is_installed_and_nothing_else() -> None:
    installs = [line for line in instructions("RUN") if "pip install" in line]
    assert len(installs) == 1
    assert "--requirement /tmp/requirements.txt" in installs[0]


def test_every_folder_that_is_copied_exists_and_is_let_through() -> None:
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    copied = [line.split()[0] for line in instructions("COPY") if not line.startswith("--from")]
    assert {"include", "plugins", "dags", "tools", "requirements.txt"} == set(copied)
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignore
    assert ignore[1] == "*"  # all else stays out: no data, no keys, no .env


def test_every_volume_is_mounted_on_a_folder_that_the_image_gives_the_user() -> None:
    made = " ".join(line for line in instructions("RUN") if line.startswith("install "))
    compose = (ROOT / "docker-compose.yaml").read_text(encoding="utf-8")
    mounts = set(
        re.findall(r"^\s+- [a-z]+:/opt/cusyn/(var/[^\s:]+)(?::ro)?$", compose, re.MULTILINE)
    )
    assert len(mounts) >= 6
    assert mounts <= set(made.split())


def test_secrets_files_are_kept_out_of_git_and_modes_are_plain() -> None:
    ignored = subprocess.run(
        ["git", "check-ignore", ".env"], cwd=ROOT, capture_output=True, check=False
    )
    assert ignored.returncode == 0
    for name in ("Dockerfile", "docker-compose.yaml", ".env.example"):
        assert not Path(ROOT / name).stat().st_mode & stat.S_IXUSR
