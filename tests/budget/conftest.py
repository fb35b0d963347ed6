"""Fresh ledgers on SQLite and PostgreSQL; one PostgreSQL server for the whole session."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from sqlalchemy import URL, Engine

from include.budget.store import connect
from tests.budget.servers import PostgresServer, SqliteFiles
from tests.budget.world import World


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def sqlite() -> Iterator[SqliteFiles]:
    files = SqliteFiles()
    yield files
    shutil.rmtree(files.folder)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> SqliteFiles | PostgresServer:
    """Where ledgers are made: every test that asks for it runs on both databases."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def url(place: SqliteFiles | PostgresServer) -> Iterator[URL]:
    made = place.fresh()
    yield made
    place.done(made)


@pytest.fixture
def engine(url: URL) -> Iterator[Engine]:
    made = connect(url)
    yield made
    made.dispose()


@pytest.fixture
def own_engine(place: SqliteFiles | PostgresServer) -> Iterator[Engine]:
    """For tests that spoil the schema: a database nobody gets after them."""
    made = connect(place.fresh())
    yield made
    made.dispose()


@pytest.fixture
def world(engine: Engine) -> World:
    """A ledger with one population, one dataset and two users."""
    return World(engine).registered()
