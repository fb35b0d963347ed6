"""Which code, configuration and packages a release was made with: for its manifest."""

from __future__ import annotations

import hashlib
import os
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from include.settings import load_settings

if TYPE_CHECKING:
    from include.config.datasets import DatasetConfig
    from include.config.requests import ReleaseConfig


def lineage(release: ReleaseConfig, dataset: DatasetConfig) -> dict[str, str]:
    """Return versions and digests as text; a fact that cannot be had is left empty.

    A local DAG bundle has no version of its own, so the code's revision is recorded here.

    Privacy: ledger only.
    """
    from airflow import __version__ as airflow_version

    from include import __version__ as product_version
    from include.config.digest import config_digest

    root = load_settings().project_root
    declared = config_digest(release) + config_digest(dataset)
    return {
        "airflow_version": airflow_version,
        "product_version": product_version,
        "code_revision": _revision(root),
        "config_digest": hashlib.sha256(declared.encode()).hexdigest(),
        "lock_digest": _file_digest(root / "requirements.txt"),
    }


@lru_cache
def _revision(root: Path) -> str:
    named = os.environ.get("CUSYN_CODE_REVISION")
    if named or not (root / ".git").exists():
        return named or ""
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


@lru_cache
def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
