"""Races: many processes on the same pools, one key fired at once, one charge opened at once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from sqlalchemy import URL, Engine

from include.budget.errors import AlreadyOpened
from include.budget.ledger import Ledger
from include.budget.models import Charge, OpenedCharge
from include.budget.store import connect
from tests.budget import writers
from tests.budget.world import World, zcdp


def _storm(engine: Engine, url: URL, folder: Path, processes: int, seconds: float) -> None:
    world = writers.declare(World(engine))
    engine.dispose()  # no connection may be shared with a forked writer
    acks = folder / "acks"
    until = time.time() + seconds
    started = [writers.start(url, seed, acks, until) for seed in range(processes)]
    for process in started:
        process.join(seconds + 100)
        assert process.exitcode == 0
    entries, acknowledged = writers.check(world, acks)
    states = Counter(charge.state for charge in world.reader.charges())
    print(f"\n{processes} processes, {seconds} s: {entries} entries, {acknowledged} acknowledged;")
    print(f"  {dict(states)}")
    for pool in world.reader.pools(owner="people"):
        print(f"  {pool.pool_id} spent {pool.spent_epsilon}, remaining {pool.remaining_epsilon}")
    assert acknowledged > processes


def test_four_processes_for_two_seconds(engine: Engine, url: URL, tmp_path: Path) -> None:
    _storm(engine, url, tmp_path, 4, 2)


@pytest.mark.slow
def test_sixteen_processes_for_ten_seconds(engine: Engine, url: URL, tmp_path: Path) -> None:
    _storm(engine, url, tmp_path, 16, 10)


def _at_once(url: URL, times: int, step: Callable[[Ledger], object]) -> list[object]:
    barrier = Barrier(times)

    def run(_: int) -> object:
        engine = connect(url)
        barrier.wait()
        try:
            return step(Ledger(engine))
        except AlreadyOpened as refusal:
            return refusal
        finally:
            engine.dispose()

    with ThreadPoolExecutor(times) as pool:
        return list(pool.map(run, range(times)))


def test_one_key_fired_32_times_at_once_gives_one_charge(world: World, url: URL) -> None:
    answers = _at_once(url, 32, lambda ledger: ledger.reserve(world.request(), zcdp))
    charges = [answer for answer in answers if isinstance(answer, Charge)]
    assert len(charges) == 32 and len({charge.charge_id for charge in charges}) == 1
    assert sum(not charge.replayed for charge in charges) == 1
    assert len(world.reader.charges()) == 1
    world.sound()


def test_one_charge_opened_32_times_at_once_gives_one_winner(world: World, url: URL) -> None:
    charge = world.reserve()
    answers = _at_once(
        url,
        32,
        lambda ledger: ledger.open(
            charge.charge_id, plan={}, cost=charge.planned, events=[], attempt="1"
        ),
    )
    assert sum(isinstance(answer, OpenedCharge) for answer in answers) == 1
    assert sum(isinstance(answer, AlreadyOpened) for answer in answers) == 31
    assert world.pool().spent_pico == zcdp(charge.granted_pico).rho_pico
    world.sound()


def test_one_period_fought_for_by_32_runs_gives_one_charge(world: World, url: URL) -> None:
    keys = iter(range(32))

    def step(ledger: Ledger) -> object:
        name = str(next(keys))
        return ledger.reserve(world.request(name, period="p"), zcdp)

    charges = _at_once(url, 32, step)
    assert len({charge.charge_id for charge in charges if isinstance(charge, Charge)}) == 1
    assert world.pool().held_pico == zcdp(world.request().epsilon_pico).rho_pico
    world.sound()
