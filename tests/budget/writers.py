"""Writers that hammer a ledger with mixed arrows, and write down what was acknowledged."""

from __future__ import annotations

import multiprocessing
import os
import random  # noqa: TID251 - chooses which step a test writer takes next, never noise
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL

from include.budget.errors import LedgerError, LedgerUnavailable
from include.budget.ledger import Ledger
from include.budget.models import Charge, OpenedCharge, Request
from include.budget.reader import LedgerReader
from include.budget.store import connect
from tests.budget.world import DIGEST, World, pico, pure, zcdp

FORK = multiprocessing.get_context("fork")
DATASETS = {
    "survey": ["people"],
    "school": ["people", "teachers"],
    "ward": ["patients"],
}
USERS = ("lab", "press", "board", "web")


def declare(world: World) -> World:
    """Three populations in both currencies, three datasets, four users; small enough to run dry."""
    world.population("people", epsilon_pico=pico("4"))
    world.population("teachers", epsilon_pico=pico("3"), accounting="epsilon")
    world.population("patients", epsilon_pico=pico("2"))
    for dataset, populations in DATASETS.items():
        world.dataset(dataset, *populations)
        for user in USERS:
            world.user(user, dataset, "2", "0.5")
    return world


@dataclass
class Writer:
    """One process: takes a random step at a time on its own charges and on everybody's."""

    url: URL
    seed: int
    acks: Path

    def run(self, until: float) -> None:
        self.choose = random.Random(self.seed)
        self.engine = connect(self.url)
        self.ledger, self.reader = Ledger(self.engine), LedgerReader(self.engine)
        self.file = os.open(self.acks, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.rights: dict[str, OpenedCharge] = {}
        self.mine: list[str] = []
        while time.time() < until:
            try:
                self.step()
            except LedgerUnavailable:
                time.sleep(0.05)  # the server is down: nothing was acknowledged
            except LedgerError:
                continue
        self.engine.dispose()

    def step(self) -> None:
        steps: list[Any] = [self.reserve] * 4 + [self.measure] * 4 + [self.finish] * 3
        steps += [self.void, self.forfeit, self.withhold, self.resume, self.replay]
        self.choose.choice(steps)()

    def acknowledged(self, kind: str, charge_id: str) -> None:
        os.write(self.file, f"{kind} {charge_id}\n".encode())

    def request(self, name: str) -> Request:
        epsilon = self.choose.choice(["0.003", "0.01", "0.03", "0.1"])
        return Request(
            key=f"{name}|{epsilon}",
            dataset=self.choose.choice(list(DATASETS)),
            requester=self.choose.choice(USERS),
            actor="admin",
            release="storm",
            period=name,
            mechanism="m",
            epsilon_pico=pico(epsilon),
            accept_at_least_pico=pico("0.002"),
        )

    def reserve(self) -> None:
        name = f"{self.seed}-{os.getpid()}-{self.choose.randrange(10**9)}"
        planner = self.choose.choice([zcdp, pure])
        charge = self.ledger.reserve(self.request(name), planner)
        self.acknowledged("reserve", charge.charge_id)
        if charge.state == "reserved":
            self.mine.append(charge.charge_id)

    def replay(self) -> None:
        """All writers fight for a few shared periods."""
        name = f"shared-{self.choose.randrange(20)}"
        charge = self.ledger.reserve(self.request(name), zcdp)
        self.acknowledged("reserve", charge.charge_id)

    def some(self, state: str) -> Charge | None:
        if self.mine and self.choose.random() < 0.7:
            charge = self.reader.charge(self.choose.choice(self.mine[-5:]))
            return charge if charge.state == state else None
        found = self.reader.charges(limit=10, state=state)
        return self.choose.choice(found) if found else None

    def measure(self) -> None:
        charge = self.some("reserved")
        if charge is None:
            return
        opened = self.ledger.open(
            charge.charge_id, plan={}, cost=charge.planned, events=[], attempt="1"
        )
        self.acknowledged("open", charge.charge_id)
        self.rights[charge.charge_id] = opened
        if self.choose.random() < 0.5:
            self.ledger.begin_round(opened, 1, [])
            self.acknowledged("begin_round", charge.charge_id)
            self.ledger.answer_round(opened, 1, DIGEST)
            self.acknowledged("answer_round", charge.charge_id)
        if self.choose.random() < 0.8:
            self.ledger.seal(opened, DIGEST)
            self.acknowledged("seal", charge.charge_id)

    def finish(self) -> None:
        charge = self.some("sealed") or self.some("publishing")
        if charge is None:
            return
        self.ledger.begin_publishing(charge.charge_id)
        self.acknowledged("begin_publishing", charge.charge_id)
        self.ledger.publish(
            charge.charge_id,
            manifest_digest="cd" * 32,
            uri="x",
            release_id=f"release-{charge.charge_id}",
        )
        self.acknowledged("publish", charge.charge_id)

    def void(self) -> None:
        charge = self.some("reserved")
        if charge is not None:
            self.ledger.void(charge.charge_id, "not needed")
            self.acknowledged("void", charge.charge_id)

    def forfeit(self) -> None:
        charge = self.some("opened")
        if charge is not None:
            self.ledger.forfeit(charge.charge_id, "lost")
            self.acknowledged("forfeit", charge.charge_id)

    def withhold(self) -> None:
        charge = self.some("sealed")
        if charge is not None:
            self.ledger.withhold(charge.charge_id, "no")
            self.acknowledged("withhold", charge.charge_id)

    def resume(self) -> None:
        charge = self.some("opened")
        if charge is None:
            return
        attempt = str(int(charge.attempt or 0) + 1)
        opened = self.ledger.resume(
            charge.charge_id, attempt=attempt, last_round=charge.rounds_answered
        )
        self.acknowledged("resume", charge.charge_id)
        with suppress(LedgerError):
            self.ledger.seal(opened, DIGEST)
            self.acknowledged("seal", charge.charge_id)


def start(url: URL, seed: int, acks: Path, until: float) -> Any:
    """Fork a writer."""
    process = FORK.Process(target=Writer(url, seed, acks).run, args=(until,), daemon=True)
    process.start()
    return process


def check(world: World, acks: Path) -> tuple[int, int]:
    """Verify the ledger, and that all that was acknowledged is in its journal.

    Returns:
        Journal entries, and acknowledged steps.
    """
    report = world.verify()
    assert report.ok, report.problems
    told = [line.split() for line in acks.read_text().splitlines()] if acks.exists() else []
    journalled = {(entry.kind, entry.charge_id) for entry in world.reader.entries()}
    lost = [line for line in told if tuple(line) not in journalled]
    assert not lost, f"acknowledged and lost: {lost[:5]}"
    for pool in world.reader.pools():
        assert pool.held_pico + pool.spent_pico <= pool.cap_pico
    return report.entries, len(told)
