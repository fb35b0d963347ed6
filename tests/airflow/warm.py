"""Imported once by the fork server: what a worker process needs, before it is forked."""

from __future__ import annotations

import asyncio

import airflow.dag_processing.dagbag
import airflow.sdk.execution_time.task_runner
import fastapi.testclient
import httpx
import opendp.prelude
import pandas
from airflow.sdk.execution_time.supervisor import in_process_api_server

import include.data.private
import include.stages.publish
import include.stages.synthesize
import include.synthesis.registry

LOADED = (airflow, fastapi, opendp, pandas, include)


async def first_call() -> int:
    """Let the execution API build its routes; this takes seconds, and no thread outlives it."""
    transport = httpx.ASGITransport(app=in_process_api_server().app)
    async with httpx.AsyncClient(transport=transport, base_url="http://in-process") as client:
        return (await client.get("/health")).status_code


STATUS = asyncio.run(first_call())
