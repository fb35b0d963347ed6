"""The button on a task that leads to its charge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseOperatorLink, XCom

if TYPE_CHECKING:
    from airflow.models.taskinstancekey import TaskInstanceKey
    from airflow.sdk import BaseOperator

CHARGE_LINK_KEY = "charge_link"


class ChargeLink(BaseOperatorLink):
    """Leads from a task to the ledger page of the charge it worked on."""

    name = "Budget charge"

    @property
    def xcom_key(self) -> str:
        """The task itself pushes the link, once it knows the charge."""
        return CHARGE_LINK_KEY

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """Return the address pushed by the task, or nothing before it knows the charge."""
        return XCom.get_value(ti_key=ti_key, key=CHARGE_LINK_KEY) or ""
