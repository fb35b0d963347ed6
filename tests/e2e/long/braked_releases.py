"""The releases' DAGs, with a brake inside the measurement; takes the place of dags/releases.py.

While the file BRAKE/<dag_id> exists, a measurement stands still at its second count, so that a test
can strike a real worker there. Retries come at once.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path

from cusyn_airflow.dag_factory import release_dags  # builds every airflow dag of a release


def brake(context):
    from include.data import private

    file = Path(os.environ["BRAKE"]) / context["dag"].dag_id
    count, calls = private.count_many, []

    def braked(*args, **kwargs):
        calls.append(1)
        while len(calls) > 1 and file.exists():
            time.sleep(0.1)
        return count(*args, **kwargs)

    private.count_many = braked


found = release_dags()
for dag in found.values():
    for task in dag.tasks:
        task.retry_delay = timedelta(seconds=1)
    if dag.has_task("synthesize"):
        dag.get_task("synthesize")._pre_execute_hook = brake
    if dag.dag_id == "release__pets_timeout":
        dag.get_task("synthesize").execution_timeout = timedelta(seconds=45)
globals().update(found)
