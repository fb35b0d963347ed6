"""Every night: expire unopened reservations, verify the whole ledger, sign a checkpoint."""

from __future__ import annotations

from airflow.sdk import DAG

from cusyn_airflow.dag_factory import DEFAULT_ARGS, START, TAG
from cusyn_airflow.operators.ledger_audit import (
    CheckpointOperator,
    ExpireReservationsOperator,
    VerifyLedgerOperator,
)

with DAG(
    dag_id="ledger_audit",
    description=__doc__,
    schedule="@daily",
    start_date=START,
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULT_ARGS,
    tags=[TAG, "audit"],
    doc_md=__doc__,
):
    _ = (
        ExpireReservationsOperator(task_id="expire_reservations")
        >> VerifyLedgerOperator(task_id="verify_ledger")
        >> CheckpointOperator(task_id="sign_checkpoint")
    )
