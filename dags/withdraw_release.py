"""A published release marked as withdrawn, in the ledger and where its readers look."""

from __future__ import annotations

from airflow.sdk import DAG, Param

from cusyn_airflow.dag_factory import DEFAULT_ARGS, START, TAG
from cusyn_airflow.operators.withdraw import WithdrawReleaseOperator

with DAG(
    dag_id="withdraw_release",
    description=__doc__,
    schedule=None,
    start_date=START,
    catchup=False,
    default_args=DEFAULT_ARGS,
    tags=[TAG, "manual"],
    params={
        "release_id": Param(
            "",
            type="string",
            title="Release",
            description="The id of a published release, e.g. "
            "happiness_by_wave-1998-12-31-71d3a1228cff.",
        ),
        "reason": Param(
            "",
            type="string",
            description="One plain sentence that its readers will see. What was spent stays spent.",
        ),
    },
    doc_md=__doc__,
):
    WithdrawReleaseOperator(task_id="withdraw")
