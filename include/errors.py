"""The root of every error a steward can meet."""

from __future__ import annotations


class CuSynError(Exception):
    """A fault told in one plain sentence that names the place and the fix.

    The text never quotes a value of the protected data: it may reach logs and the Airflow UI.

    Privacy: post-processing.
    """
