"""Fixtures of the quality room."""

from __future__ import annotations

import pytest

from include.publishing.signing import Signer, load_signer


@pytest.fixture(scope="session")
def signer(tmp_path_factory: pytest.TempPathFactory) -> Signer:
    return load_signer(tmp_path_factory.mktemp("keys"))
