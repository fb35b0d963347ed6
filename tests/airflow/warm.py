"""Imported once by the fork server: what a worker process needs, before it is forked."""

from __future__ import annotations

import airflow.api_fastapi.execution_api.app
import airflow.dag_processing.dagbag
import airflow.sdk.execution_time.supervisor
import airflow.sdk.execution_time.task_runner
import fastapi.testclient
import opendp.prelude
import pandas

import include.data.private
import include.stages.publish
import include.stages.synthesize
import include.synthesis.registry

LOADED = (airflow, fastapi, opendp, pandas, include)
