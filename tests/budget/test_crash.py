"""Crashes: kill -9 of writers at random points, kill -9 of the whole PostgreSQL server."""

from __future__ import annotations

import os
import random  # noqa: TID251 - chooses when a test process dies, never noise
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL, Engine

from include.budget.errors import LedgerUnavailable
from include.budget.store import connect
from include.budget.store.engine import reading
from tests.budget import writers
from tests.budget.servers import PostgresServer, SqliteFiles
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


def _apart(act: Callable[[], object]) -> int:
    """Act in a forked process; return how it ended."""
    process = writers.FORK.Process(target=act)
    process.start()
    process.join(60)
    return process.exitcode if process.exitcode is not None else -1


def test_what_a_forked_writer_was_told_is_there_when_its_parent_is_not(
    world: World, url: URL
) -> None:
    """On SQLite a process that closes the file last removes the log; no writer may miss that."""
    world.reserve("parent", "0.01")  # leaves a connection in the pool
    reserved, closed = writers.FORK.Event(), writers.FORK.Event()
    acks = writers.FORK.SimpleQueue()

    def child() -> None:
        acks.put(world.reserve("1", "0.01").charge_id)
        reserved.set()
        assert closed.wait(30)
        acks.put(world.reserve("2", "0.01").charge_id)

    def stranger() -> None:
        other = World(connect(url))
        other.reserve("stranger", "0.01")
        other.engine.dispose()

    process = writers.FORK.Process(target=child)
    process.start()
    assert reserved.wait(30)
    world.engine.dispose()
    assert _apart(stranger) == 0
    closed.set()
    process.join(60)
    assert process.exitcode == 0
    for charge_id in (acks.get(), acks.get()):
        assert world.reader.charge(charge_id).state == "reserved"
    world.sound()


def test_a_process_forked_in_the_middle_of_a_step_writes_nothing(
    sqlite: SqliteFiles,
) -> None:
    world = World(connect(sqlite.fresh())).registered()

    def child() -> None:
        with pytest.raises(LedgerUnavailable, match="forked"):
            world.reserve("child", "0.01")

    with reading(world.engine) as connection:
        connection.exec_driver_sql("SELECT seq FROM dp_head")
        assert [_apart(child), _apart(child)] == [0, 0]
    assert world.reserve("parent", "0.01").state == "reserved"
    assert _apart(lambda: world.reserve("later", "0.01")) == 0
    world.sound()
    world.engine.dispose()


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
