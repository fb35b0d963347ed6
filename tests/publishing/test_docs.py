"""What docs/release-package.md tells data users to run works as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "release-package.md").read_text(encoding="utf-8")


def test_every_python_snippet_runs_inside_a_package(package):
    snippets = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    assert len(snippets) == 3
    for snippet in snippets:
        assert len(snippet.strip().splitlines()) == 3
        done = subprocess.run(
            [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-c", snippet],
            cwd=package.path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


def test_the_shell_commands_accept_a_package(package):
    commands = [line for line in PAGE.splitlines() if line.startswith(("sha256sum", "openssl"))]
    assert len(commands) == 2
    for command in commands:
        done = subprocess.run(
            command.split(), cwd=package.path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


def test_every_file_of_a_package_is_described(package):
    for file in package.path.iterdir():
        name = file.name.removeprefix("SHA256SUMS") if "." in file.name else file.name
        assert f"`{name}`" in PAGE, file.name
