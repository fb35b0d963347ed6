"""Writes into a finished run's note what its budget decision was, and where its charge is.

A task cannot write the note of its own run; the scheduler can, when the run ends. Only Airflow's
own rows are read here: the scheduler needs no login to the ledger.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl

from cusyn_airflow.links import charge_page
from include.stages.run import BUDGET_TASK

if TYPE_CHECKING:
    from airflow.models.dagrun import DagRun

OURS = "Budget: "


@hookimpl
def on_dag_run_success(dag_run: DagRun, msg: str) -> None:
    """Note the decision of a run that has ended well."""
    note_decision(dag_run)


@hookimpl
def on_dag_run_failed(dag_run: DagRun, msg: str) -> None:
    """Note the decision of a run that has failed."""
    note_decision(dag_run)


def note_decision(dag_run: DagRun) -> None:
    """Write the note, unless BudgetEval decided nothing or a person has written one.

    Privacy: ledger only.
    """
    decided = _decision(dag_run)
    if decided is None or not (dag_run.note or OURS).startswith(OURS):
        return
    page = charge_page(decided["charge_id"])
    dag_run.note = f"{OURS}{decided['decision']} [What became of the charge]({page})"


def _decision(dag_run: DagRun) -> dict[str, Any] | None:
    """Return what BudgetEval left for its run."""
    from airflow.models.xcom import XComModel
    from sqlalchemy import select
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    if session is None:
        return None
    value = session.scalar(
        select(XComModel.value).where(
            XComModel.dag_id == dag_run.dag_id,
            XComModel.run_id == dag_run.run_id,
            XComModel.task_id == BUDGET_TASK,
            XComModel.key == "return_value",
        )
    )
    found = json.loads(value) if isinstance(value, str) else value
    return found if isinstance(found, dict) and "decision" in found else None
