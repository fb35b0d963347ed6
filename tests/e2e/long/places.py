"""Names that the slow suites share."""

from __future__ import annotations

RELEASE = "release__pets_by_year"
STRUCK = (
    "pets_killed",
    "pets_early",
    "pets_unreadable",
    "pets_stopped_task",
    "pets_stopped_worker",
    "pets_timeout",
    "pets_frozen",
    "pets_failed",
    "pets_marked",
    "pets_away",
)
BRAKED = tuple(f"release__{name}" for name in STRUCK)
