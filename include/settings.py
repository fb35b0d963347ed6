"""Every setting of `include/`, read in one place.

The embedded default keeps all it writes under one folder, `var/`, so that a demonstration can be
removed with one command. Production takes each path from its own variable.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from include.errors import CuSynError

PROJECT_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Settings:
    """Where things lie. Paths are absolute.

    Privacy: ledger only (names of places, never contents).
    """

    project_root: Path
    config_dir: Path  # the steward's YAML: datasets/, releases/, budgets.yaml
    var_dir: Path
    protected_dir: Path  # raw snapshots, nonces: only trusted workers mount it
    work_dir: Path  # transcripts, models, synthetic tables, reports: DP outputs, not yet published
    keys_dir: Path  # MAC and signing keys, mode 0600
    checkpoints_dir: Path  # signed checkpoints of the ledger: outside the database on purpose
    releases_uri: str  # where manual releases are published: a folder or s3://bucket/prefix
    ledger_url: str  # SQLAlchemy URL of the ledger (the metadata database by default)
    snapshot_days: float | None = None  # raw snapshots older than this are deleted; None keeps them


def load_settings() -> Settings:
    """Read the environment (`CUSYN_*`) over the embedded default.

    Returns:
        The settings of this process; nothing is created on disk.

    Privacy: ledger only.
    """
    env = os.environ
    root = Path(env.get("CUSYN_PROJECT_ROOT", PROJECT_ROOT)).resolve()
    var = Path(env.get("CUSYN_VAR_DIR", root / "var")).resolve()

    def place(name: str, default: Path) -> Path:
        return Path(env.get(name, default)).resolve()

    return Settings(
        project_root=root,
        config_dir=place("CUSYN_CONFIG_DIR", root / "include" / "config"),
        var_dir=var,
        protected_dir=place("CUSYN_PROTECTED_DIR", var / "protected"),
        work_dir=place("CUSYN_WORK_DIR", var / "work"),
        keys_dir=place("CUSYN_KEYS_DIR", var / "keys"),
        checkpoints_dir=place("CUSYN_CHECKPOINTS_DIR", var / "checkpoints"),
        releases_uri=env.get("CUSYN_RELEASES_URI", str(var / "releases")),
        ledger_url=env.get("CUSYN_LEDGER_URL", f"sqlite:///{var / 'airflow' / 'airflow.db'}"),
        snapshot_days=_days(env.get("CUSYN_SNAPSHOT_DAYS", "")),
    )


def _days(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        days = float(text)
    except ValueError:
        days = -1.0
    if not 0 < days < 100_000:
        raise CuSynError(
            "CUSYN_SNAPSHOT_DAYS is not a number of days; write such as 90, or leave it out to "
            "keep raw snapshots"
        )
    return days
