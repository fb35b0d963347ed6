"""The button on a task that leads to its charge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.models.taskinstancekey import TaskInstanceKey
    from airflow.sdk import BaseOperator

# Where the plugin's pages are mounted (cusyn_plugin.py).
PAGES = "/privacy-budget"


def charge_page(charge_id: str) -> str:
    """Return the address of a charge's page."""
    return f"{PAGES}/charges/{charge_id}"


class ChargeLink(BaseOperatorLink):
    """Leads from a task to the ledger page of its charge; before there is one, to all pools."""

    name = "Budget charge"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the charge's page; Airflow asks right after the task has run, and keeps it."""
        charge_id = getattr(operator, "charge_id", None)
        return charge_page(charge_id) if charge_id else f"{PAGES}/"
