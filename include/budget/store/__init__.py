"""The only place of the ledger that speaks SQL."""

from __future__ import annotations

from include.budget.store.engine import connect

__all__ = ["connect"]
