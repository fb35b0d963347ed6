"""A run that stands still where a test wants to strike it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.e2e.client import Client
from tests.e2e.house import House, until
from tests.e2e.long.acts import WAIT, charges_of, shows, task


class Struck:
    """A run of a release whose tasks stand still at brakes.

    Args:
        house: what runs.
        alice: who asks.
        name: the release; it has no schedule.
        brakes: where it stands, e.g. `synthesize.1` or `budget_eval.1.done`; the empty one is
            inside the measurement.
    """

    def __init__(self, house: House, alice: Client, name: str, *brakes: str) -> None:
        self.house, self.alice, self.name = house, alice, name
        self.dag_id = f"release__{name}"
        for one in brakes or ("",):
            self.brake(one).touch()
        alice.unpause(self.dag_id)
        status, answer = alice.trigger(self.dag_id, conf={"period": "p1"})
        assert status == 200, answer
        self.run_id = answer["dag_run_id"]
        if not brakes:
            self.wait_measuring()

    def brake(self, name: str = "") -> Path:
        return self.house.rig.root / "brake" / ".".join(filter(None, (self.dag_id, name)))

    def wait_measuring(self) -> None:
        def measuring() -> bool:
            found = charges_of(self.house, self.name)
            kinds = self.house.rig.kinds(found[0].charge_id) if found else []
            return kinds.count("begin_round") >= 2

        until(measuring, f"{self.name} does not measure", WAIT)
        self.spent = self.house.rig.spent()

    def wait_running(self, name: str, attempt: int) -> None:
        """Wait until a try of a task runs: it then stands at its brake, or will."""

        def runs() -> bool:
            found = self.task(name)
            return found["state"] == "running" and found["try_number"] == attempt

        until(runs, f"{self.name}: try {attempt} of {name} does not run", WAIT)

    @property
    def charge(self) -> Any:
        (charge,) = charges_of(self.house, self.name)
        return charge

    @property
    def kinds(self) -> list[str]:
        return list(self.house.rig.kinds(self.charge.charge_id))

    def task(self, name: str = "synthesize") -> dict[str, Any]:
        return task(self.alice, self.dag_id, self.run_id, name)

    def processes(self, name: str = "synthesize") -> tuple[psutil.Process, psutil.Process]:
        """Return the worker and, below it, the process that does the task's work."""
        child = psutil.Process(self.task(name)["pid"])
        return child.parent(), child

    def ended(self, tries: int | None = None, resumed: int | None = None) -> None:
        """The run ends well, paid for once and by what was spent before the blow; a page says so.

        Args:
            tries: how often the measurement must have been tried, where that is certain.
            resumed: how often it went on from an earlier try; else at every further try.
        """
        state = self.alice.wait(self.dag_id, self.run_id, WAIT)
        assert state == "success", self.alice.states(self.dag_id, self.run_id)
        tried = self.task()["try_number"]
        assert self.charge.state == "published" and tried == (tries or tried)
        entries = self.house.rig.reader().entries(self.charge.charge_id)
        begun = [entry.facts["round"] for entry in entries if entry.kind == "begin_round"]
        kinds = [entry.kind for entry in entries]
        assert len(begun) == len(set(begun))  # no round is drawn twice
        assert kinds.count("open") == kinds.count("seal") == kinds.count("publish") == 1
        assert kinds.count("resume") == (tried - 1 if resumed is None else resumed)
        self.house.rig.verify()
        shows(self.house, self.charge.charge_id, "published")

    @contextmanager
    def only_its_own(self) -> Iterator[None]:
        """No pool moves."""
        yield
        assert self.house.rig.spent() == self.spent
