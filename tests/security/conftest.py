from __future__ import annotations

from tests.airflow.conftest import empty_ledger, rig

__all__ = ["empty_ledger", "rig"]
