"""A small declared world, and short ways to ask it for budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from sqlalchemy import Engine

from include.accounting.accountant import Cost, compose
from include.accounting.amounts import ONE, parse_amount
from include.accounting.events import DiscreteLaplace, Gaussian
from include.accounting.zcdp import rho_from_epsilon
from include.budget.ledger import Ledger
from include.budget.models import Charge, OpenedCharge, Request
from include.budget.reader import LedgerReader, Pool
from include.budget.verify import VerifyReport, verify

DELTA = 9
DIGEST = "ab" * 32


def pico(text: str | int) -> int:
    return parse_amount(text, name="test")


def zcdp(epsilon_pico: int) -> Cost:
    """A planner that spends all that an (epsilon, 1e-9) guarantee pays for."""
    return Cost(rho_from_epsilon(epsilon_pico, DELTA), None)


def pure(epsilon_pico: int) -> Cost:
    """A planner of pure mechanisms: rho is the worst case epsilon^2 / 2."""
    rho = Fraction(epsilon_pico, ONE) ** 2 / 2
    return Cost(-((-rho * ONE).__floor__()), epsilon_pico)


def gaussian_events(sigma: float, count: int = 1) -> list[dict[str, Any]]:
    return [Gaussian(sigma).to_dict() for _ in range(count)]


def laplace_events(epsilon: str, count: int = 1) -> list[dict[str, Any]]:
    below = math.nextafter(float(epsilon), 0)  # a planner calibrates downwards
    return [DiscreteLaplace(below).to_dict() for _ in range(count)]


def cost_of_events(events: list[dict[str, Any]]) -> Cost:
    from include.accounting.events import event_from_dict

    return compose(event_from_dict(event) for event in events)


@dataclass
class Clock:
    """A clock that moves only when told to."""

    now: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **by: float) -> None:
        self.now += timedelta(**by)


@dataclass
class World:
    engine: Engine
    clock: Clock = field(default_factory=Clock)
    ledger: Ledger = field(init=False)
    reader: LedgerReader = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = Ledger(self.engine, clock=self.clock)
        self.reader = LedgerReader(self.engine)

    def registered(self, **population: Any) -> World:
        self.population("people", **population)
        self.dataset("survey", "people")
        for user in ("lab", "press"):
            self.user(user, "survey")
        return self

    def population(self, name: str, **declared: Any) -> None:
        figures: dict[str, Any] = {
            "privacy_unit": "person",
            "epsilon_pico": pico("10"),
            "delta_exponent": DELTA,
            "accounting": "zcdp",
            "per_operation_limit_pico": pico("2"),
            "actor": "steward",
        }
        self.ledger.register_population(name, **figures | declared)

    def dataset(self, name: str, *populations: str, **declared: Any) -> None:
        links = {population: {"id_column": None, "max_rows": 1} for population in populations}
        figures: dict[str, Any] = {"populations": links, "schema_digest": DIGEST}
        self.ledger.register_dataset(name, actor="steward", **figures | declared)

    def user(self, name: str, dataset: str, epsilon: str = "4", limit: str | None = "1") -> None:
        self.ledger.register_user_pool(
            name,
            dataset,
            epsilon_pico=pico(epsilon),
            per_request_limit_pico=None if limit is None else pico(limit),
            actor="steward",
        )

    def request(self, name: str = "1", epsilon: str = "1", **fields: Any) -> Request:
        asked: dict[str, Any] = {
            "key": f"dag|run_{name}|budget_eval|-1",
            "dataset": "survey",
            "requester": "lab",
            "actor": "admin",
            "release": "monthly",
            "period": f"period_{name}",
            "mechanism": "mwem_pgm",
            "epsilon_pico": pico(epsilon),
            "accept_at_least_pico": min(pico(epsilon), pico("0.1")),
        }
        return Request(**asked | fields)

    def reserve(
        self, name: str = "1", epsilon: str = "1", planner: Any = zcdp, **fields: Any
    ) -> Charge:
        return self.ledger.reserve(self.request(name, epsilon, **fields), planner)

    def open(self, charge: Charge, attempt: str = "1", **given: Any) -> OpenedCharge:
        plan: dict[str, Any] = {
            "plan": {"rounds": 1},
            "cost": charge.planned,
            "events": [],
            "attempt": attempt,
        }
        return self.ledger.open(charge.charge_id, **plan | given)

    def opened(self, name: str = "1", epsilon: str = "1", **fields: Any) -> OpenedCharge:
        return self.open(self.reserve(name, epsilon, **fields))

    def sealed(self, name: str = "1", epsilon: str = "1", **fields: Any) -> Charge:
        return self.ledger.seal(self.opened(name, epsilon, **fields), DIGEST)

    def published(self, name: str = "1", epsilon: str = "1", **fields: Any) -> Charge:
        charge = self.ledger.begin_publishing(self.sealed(name, epsilon, **fields).charge_id)
        return self.ledger.publish(
            charge.charge_id,
            manifest_digest="cd" * 32,
            uri="releases/x",
            release_id=f"monthly-{charge.period}",
        )

    def pool(self, owner: str = "people", accounting: str = "zcdp") -> Pool:
        found = [
            pool
            for pool in self.reader.pools(owner=owner)
            if pool.kind != "partition" and pool.status != "retired"
        ]
        return next((p for p in found if p.accounting == accounting), found[0])

    def figures(self) -> dict[str, tuple[int, int]]:
        return {pool.pool_id: (pool.held_pico, pool.spent_pico) for pool in self.reader.pools()}

    def verify(self, *anchors: Any) -> VerifyReport:
        return verify(self.engine, anchors)

    def sound(self) -> None:
        report = self.verify()
        assert report.ok, "; ".join(map(str, report.problems))
