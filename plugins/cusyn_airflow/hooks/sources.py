"""Airflow connections as the plain parameters `include/` understands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

if TYPE_CHECKING:
    from include.connections import S3Parameters, SqlParameters


def s3_parameters(conn_id: str | None) -> S3Parameters | None:
    """Return how to reach an object store, from a connection of type `aws`.

    Login and password are the access keys; `endpoint_url` and `region_name` stand in its extra
    field. Without a connection the environment's own AWS settings apply.

    Privacy: ledger only.
    """
    from include.connections import S3Parameters

    if conn_id is None:
        return None
    conn = BaseHook.get_connection(conn_id)
    extra: dict[str, Any] = conn.extra_dejson
    return S3Parameters(
        endpoint_url=extra.get("endpoint_url"),
        region=extra.get("region_name"),
        access_key=conn.login or extra.get("aws_access_key_id"),
        secret_key=conn.password or extra.get("aws_secret_access_key"),
        session_token=extra.get("aws_session_token"),
    )


def sql_parameters(conn_id: str | None) -> SqlParameters | None:
    """Return how to reach a database, from a connection of type `sqlite` or `postgres`.

    Privacy: ledger only.
    """
    from cusyn_airflow.hooks.ledger import connection_url
    from include.connections import SqlParameters

    return None if conn_id is None else SqlParameters(url=connection_url(conn_id))
