"""Every night: delete raw snapshots older than the retention rule that no charge still needs."""

from __future__ import annotations

from airflow.sdk import DAG

from cusyn_airflow.dag_factory import DEFAULT_ARGS, START, TAG
from cusyn_airflow.operators.retention import PruneSnapshotsOperator

with DAG(
    dag_id="snapshot_retention",
    description=__doc__,
    schedule="@daily",
    start_date=START,
    catchup=False,
    max_active_runs=1,
    default_args=DEFAULT_ARGS,
    tags=[TAG, "audit"],
    doc_md=__doc__,
):
    PruneSnapshotsOperator(task_id="prune_snapshots")
