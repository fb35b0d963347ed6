"""The task of a DAG whose release file is broken: it says so and fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk import Context


class ConfigurationErrorOperator(BaseOperator):
    """Fail with the one sentence that names file, key and fix.

    Args:
        sentence: what the configuration loader said.

    Privacy: ledger only.
    """

    ui_color = "#f9dede"

    def __init__(self, *, sentence: str, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.sentence = sentence

    def execute(self, context: Context) -> None:
        """Fail for good: a retry reads the same file."""
        raise AirflowFailException(self.sentence)
