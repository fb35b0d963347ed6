"""A release asked for by hand, through a form in the Airflow UI."""

from __future__ import annotations

from airflow.sdk import DAG

from cusyn_airflow.dag_factory import DEFAULT_ARGS, START, TAG, pipeline
from cusyn_airflow.manual_form import manual_params, manual_request

with DAG(
    dag_id="manual_release",
    description="Ask for one release now: the same six stages, budgets and limits as a schedule.",
    schedule=None,
    start_date=START,
    catchup=False,
    default_args=DEFAULT_ARGS,
    tags=[TAG, "manual"],
    params=manual_params(),
    doc_md=__doc__,
):
    pipeline(manual_request(), release_name="manual")
