"""Keeps the pages out of every process that only lists plugins: scheduler, workers, DAG parsing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class LazyApp:
    """An ASGI application that imports the real one at its first request."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on."""
        from cusyn_airflow.ui.app import app

        await app(scope, receive, send)
