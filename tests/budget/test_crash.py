"""Crashes: kill -9 of writers at random points, kill -9 of the whole PostgreSQL server."""

from __future__ import annotations

import os
import random  # noqa: TID251 - chooses when a test process dies, never noise
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL, Engine

from include.budget.store import connect
from tests.budget import writers
from tests.budget.servers import PostgresServer
from tests.budget.world import World


def _kill_writers(engine: Engine, url: URL, folder: Path, rounds: int, kills: int) -> None:
    world = writers.declare(World(engine))
    acks, choose = folder / "acks", random.Random(7)
    until = time.time() + 600
    seed = 0
    for _ in range(rounds):
        engine.dispose()
        living = []
        for _ in range(3):
            seed += 1
            living.append(writers.start(url, seed, acks, until))
        for _ in range(kills):
            _wait_for(acks, choose.randrange(1, 12), choose.uniform(0, 0.02))
            victim = living.pop(0)
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
            seed += 1
            living.append(writers.start(url, seed, acks, until))
        for process in living:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        entries, acknowledged = writers.check(world, acks)
    print(
        f"\n{rounds * (kills + 3)} writers killed: {entries} entries, {acknowledged} acknowledged"
    )
    assert acknowledged > 0


def _wait_for(acks: Path, steps: int, more: float) -> None:
    """Let the writers take some steps, and then stop in the middle of one."""
    size = acks.stat().st_size if acks.exists() else 0
    patience = time.time() + 10
    while time.time() < patience and not (
        acks.exists() and acks.stat().st_size > size + 30 * steps
    ):
        time.sleep(0.001)
    time.sleep(more)


def test_killed_writers_lose_nothing_and_leave_nothing_half_made(
    engine: Engine, url: URL, tmp_path: Path
) -> None:
    _kill_writers(engine, url, tmp_path, rounds=2, kills=7)


@pytest.mark.slow
def test_two_hundred_killed_writers(engine: Engine, url: URL, tmp_path: Path) -> None:
    _kill_writers(engine, url, tmp_path, rounds=10, kills=20)


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.stop()


def _kill_server(server: PostgresServer, folder: Path, kills: int) -> None:
    url = server.fresh()
    engine = connect(url)
    world = writers.declare(World(engine))
    acks, choose = folder / "acks", random.Random(11)
    until = time.time() + 600
    engine.dispose()
    living = [writers.start(url, seed, acks, until) for seed in range(4)]
    for _ in range(kills):
        time.sleep(choose.uniform(0.5, 1.5))
        server.kill()
        server.revive()
        engine.dispose()
        entries, acknowledged = writers.check(world, acks)
    for process in living:
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    engine.dispose()
    print(f"\n{kills} times the server killed: {entries} entries, {acknowledged} acknowledged")
    assert acknowledged > 0


def test_a_killed_server_loses_nothing_it_acknowledged(
    own_server: PostgresServer, tmp_path: Path
) -> None:
    _kill_server(own_server, tmp_path, kills=1)


@pytest.mark.slow
def test_ten_killed_servers(own_server: PostgresServer, tmp_path: Path) -> None:
    _kill_server(own_server, tmp_path, kills=10)
