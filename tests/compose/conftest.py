"""The compose file, parsed once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.compose.composefile import filled_env, resolved


@pytest.fixture(scope="session")
def env_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment file as `tools/make_env.py` writes it."""
    return filled_env(tmp_path_factory.mktemp("compose"))


@pytest.fixture(scope="session")
def services(env_file: Path) -> dict[str, dict[str, Any]]:
    """The services as Compose would start them."""
    return dict(resolved(env_file)["services"])
