from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parent / "example"


@pytest.fixture
def config_dir(tmp_path: Path) -> Path:
    """A copy of an example configuration that a test may break."""
    target = tmp_path / "config"
    for name in ("datasets", "releases"):
        (target / name).mkdir(parents=True)
        for file in (EXAMPLE / name).glob("*.yaml"):
            shutil.copy(file, target / name / file.name)
    shutil.copy(EXAMPLE / "budgets.yaml", target / "budgets.yaml")
    return target


@pytest.fixture
def edit(config_dir: Path) -> Callable[[str, str, str], Path]:
    """Replace one text in one file; the text must be there."""

    def change(file: str, old: str, new: str) -> Path:
        path = config_dir / file
        text = path.read_text()
        assert old in text, f"{old!r} is not in {file}"
        path.write_text(text.replace(old, new, 1))
        return path

    return change
