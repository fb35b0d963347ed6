"""One Airflow DAG for each release file in include/config/releases/."""

from __future__ import annotations

from cusyn_airflow.dag_factory import release_dags

globals().update(release_dags())
