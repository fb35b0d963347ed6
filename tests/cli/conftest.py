"""The clinic: see tests/clinic.py."""

from tests.clinic import make_run, place, settings

__all__ = ["make_run", "place", "settings"]
