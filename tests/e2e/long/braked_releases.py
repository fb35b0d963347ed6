"""The releases' DAGs, with brakes; takes the place of dags/releases.py.

While one of these files exists below BRAKE, a process stands still, so that a test can strike a
real worker there: `<dag_id>` inside the measurement, at its second count; `<dag_id>.<task>.<try>`
before the task's work; `<dag_id>.<task>.<try>.done` after it. Retries come at once.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

from cusyn_airflow.dag_factory import release_dags  # builds every airflow dag of a release


def stand(file):
    while file.exists():
        time.sleep(0.1)


def place(context, end=""):
    ti = context["ti"]
    return Path(os.environ["BRAKE"]) / f"{ti.dag_id}.{ti.task_id}.{ti.try_number}{end}"


def before(context):
    from include.data import private

    file = Path(os.environ["BRAKE"]) / context["dag"].dag_id
    count, calls = private.count_many, []

    def braked(*args, **kwargs):
        calls.append(1)
        if len(calls) > 1:
            stand(file)
        return count(*args, **kwargs)

    private.count_many = braked
    stand(place(context))


def after(context, result):
    stand(place(context, ".done"))


found = release_dags()
for dag in found.values():
    for task in dag.tasks:
        task.retry_delay = timedelta(seconds=1)
        task._pre_execute_hook, task._post_execute_hook = before, after
    if dag.dag_id == "release__pets_timeout":
        dag.get_task("synthesize").execution_timeout = timedelta(seconds=45)
globals().update(found)
