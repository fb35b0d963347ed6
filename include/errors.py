"""The root of every error a steward can meet."""

from __future__ import annotations


class CuSynError(Exception):
    """A fault told in one plain sentence that names the place and the fix.

    The text never quotes a value of the protected data: it may reach logs and the Airflow UI.
    `retry_helps` says whether the same call may succeed later with nothing changed (a locked
    database, a flapping endpoint); subclasses set it.

    Privacy: post-processing.
    """

    retry_helps: bool = False
