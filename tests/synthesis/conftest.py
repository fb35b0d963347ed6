"""Hypothesis without deadlines: the machine that runs the tests may be busy with others."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
