"""A Hypothesis state machine: the ledger against a model that fits on one page.

The model knows two populations, three users, both currencies, and for every charge its state, fence
and amounts. After each step balances are compared; at the end of a run the whole ledger is verified
and exported, and every answer ever given is asked for again (I7).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule
from sqlalchemy import Engine

from include.accounting.accountant import Cost, cost_in_currency
from include.budget.errors import (
    AlreadyOpened,
    DigestMismatch,
    IdempotencyConflict,
    PeriodTaken,
    PlanExceedsGrant,
    StaleFence,
    WrongState,
)
from include.budget.models import Charge, OpenedCharge, Request
from tests.budget.world import DIGEST, World, pico, pure, zcdp

DATASETS = {"survey": ["people"], "school": ["people", "teachers"]}
USERS = ("lab", "press")
EPSILONS = st.sampled_from(["0.001", "0.1", "0.3", "0.7", "1", "1.4", "2.5"])


@dataclass
class Known:
    """What the model remembers of a charge."""

    charge: Charge
    request: Request
    state: str
    fence: int = 0
    attempt: int = 0
    spent: dict[str, int] = field(default_factory=dict)
    table: str = ""
    reports: list[tuple[str, bool]] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.charge.charge_id


class LedgerMachine(RuleBasedStateMachine):
    """Subclasses give `make_engine`."""

    charges = Bundle("charges")

    def make_engine(self) -> Engine:
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.make_engine())
        self.world.population("people", epsilon_pico=pico("3"))
        self.world.population(
            "teachers",
            epsilon_pico=pico("2"),
            accounting="epsilon",
            per_operation_limit_pico=None,
        )
        for dataset, populations in DATASETS.items():
            self.world.dataset(dataset, *populations)
            for user in USERS:
                self.world.user(user, dataset, "2", "1")
        self.caps = {pool.pool_id: pool.cap_pico for pool in self.world.reader.pools()}
        self.held = dict.fromkeys(self.caps, 0)
        self.spent = dict.fromkeys(self.caps, 0)
        self.known: dict[str, Known] = {}
        self.head = self.world.reader.head()["seq"]
        self.anchors: list[tuple[int, str]] = []

    # Rules: each is one arrow of the machine, or the refusal the model expects.

    @rule(
        target=charges,
        name=st.integers(0, 9),
        period=st.integers(0, 5),
        epsilon=EPSILONS,
        dataset=st.sampled_from(sorted(DATASETS)),
        user=st.sampled_from([*USERS, "stranger"]),
        planner=st.sampled_from([zcdp, pure]),
        floor=st.sampled_from(["0.001", "0.3"]),
    )
    def reserve(
        self,
        name: int,
        period: int,
        epsilon: str,
        dataset: str,
        user: str,
        planner: object,
        floor: str,
    ) -> str:
        request = self.world.request(
            str(name),
            epsilon,
            period=f"p{period}",
            dataset=dataset,
            requester=user,
            mechanism=getattr(planner, "__name__", ""),
            accept_at_least_pico=min(pico(floor), pico(epsilon)),
        )
        expected = self._expected(request)
        if expected in (IdempotencyConflict, PeriodTaken):
            self._refused(expected, lambda: self.world.ledger.reserve(request, planner))  # type: ignore[arg-type]
            return next(iter(self.known), "none")
        charge = self.world.ledger.reserve(request, planner)  # type: ignore[arg-type]
        if isinstance(expected, Known):
            assert charge.replayed and charge.charge_id == expected.id
            return expected.id
        assert not charge.replayed
        for pool, amount in charge.amounts_pico.items():
            assert 0 < amount <= self.caps[pool] - self.held[pool] - self.spent[pool]
            self.held[pool] += amount
        assert charge.denied == (not charge.amounts_pico)
        if user == "stranger":
            assert charge.binding == "user_pool:stranger"
        elif not charge.denied:
            populations = {pool.split(":")[1] for pool in charge.amounts_pico}
            assert populations == {*DATASETS[dataset], f"{user}@{dataset}"}
            assert request.accept_at_least_pico <= charge.granted_pico <= pico("1")
        self.known[charge.charge_id] = Known(charge, request, charge.state)
        return charge.charge_id

    def _expected(self, request: Request) -> object:
        """What the model expects: an earlier charge, a refusal, or None for a new decision."""
        for known in self.known.values():
            if known.request.key == request.key:
                same = known.request.digest() == request.digest()
                return known if same else IdempotencyConflict
        for known in self.known.values():
            taken = known.request.period == request.period
            if taken and known.state not in ("denied", "void"):
                same = known.request.digest() == request.digest()
                return known if same else PeriodTaken
        return None

    @rule(which=charges, share=st.sampled_from([0, 1, 2]))
    def open(self, which: str, share: int) -> None:
        known = self.known.get(which)
        if known is None:
            return
        planned = known.charge.planned or Cost(1, 1)
        cost = planned
        if share and planned.epsilon_pure_pico is None:
            cost = Cost(planned.rho_pico // share, None)
        if known.state != "reserved":
            expected = AlreadyOpened if known.state == "opened" else WrongState
            self._refused(expected, lambda: self._open(known, cost))
            return
        if share == 0:
            dear = Cost(planned.rho_pico + 1, planned.epsilon_pure_pico)
            if planned.epsilon_pure_pico is not None:
                dear = Cost(planned.rho_pico, planned.epsilon_pure_pico + 1)
            self._refused(PlanExceedsGrant, lambda: self._open(known, dear))
            return
        assert self._open(known, cost).fence == 1
        for pool, held in known.charge.amounts_pico.items():
            currency = "epsilon" if ":epsilon:" in pool else "zcdp"
            known.spent[pool] = cost_in_currency(cost, currency, 9)
            self.held[pool] -= held
            self.spent[pool] += known.spent[pool]
        known.state, known.fence, known.attempt = "opened", 1, 1

    def _open(self, known: Known, cost: Cost) -> OpenedCharge:
        return self.world.open(known.charge, cost=cost)

    @rule(which=charges, newer=st.booleans())
    def resume(self, which: str, newer: bool) -> None:
        known = self.known.get(which)
        if known is None:
            return
        attempt = known.attempt + newer

        def step() -> OpenedCharge:
            return self.world.ledger.resume(known.id, attempt=str(attempt), last_round=0)

        if known.state != "opened":
            self._refused(WrongState, step)
        elif not newer:
            self._refused(AlreadyOpened, step)
        else:
            known.fence += 1
            known.attempt = attempt
            assert step().fence == known.fence

    @rule(which=charges, stale=st.booleans(), digest=st.sampled_from([DIGEST, "ff" * 32]))
    def seal(self, which: str, stale: bool, digest: str) -> None:
        known = self.known.get(which)
        if known is None:
            return
        right = OpenedCharge(known.id, known.fence - stale)
        sealed = known.charge.transcript_digest
        if known.state == "opened" and not stale:
            known.charge = self.world.ledger.seal(right, digest)
            known.state = "sealed"
            self.anchors.append((known.charge.sealed_seq or 0, known.charge.sealed_hash or ""))
        elif sealed is None:
            expected = StaleFence if known.state == "opened" else WrongState
            self._refused(expected, lambda: self.world.ledger.seal(right, digest))
        elif stale:
            self._refused(StaleFence, lambda: self.world.ledger.seal(right, digest))
        elif digest != sealed:
            self._refused(DigestMismatch, lambda: self.world.ledger.seal(right, digest))
        else:
            again = self.world.ledger.seal(right, digest)
            assert again.sealed_hash == known.charge.sealed_hash

    @rule(which=charges)
    def forfeit(self, which: str) -> None:
        self._arrow(which, "opened", "forfeited", lambda i: self.world.ledger.forfeit(i, "x"))

    @rule(which=charges)
    def withhold(self, which: str) -> None:
        self._arrow(which, "sealed", "withheld", lambda i: self.world.ledger.withhold(i, "x"))

    @rule(which=charges)
    def void(self, which: str) -> None:
        known = self.known.get(which)
        before = known.state if known else ""
        self._arrow(which, "reserved", "void", lambda i: self.world.ledger.void(i, "x"))
        if known and before == "reserved":
            self._give_back(known)

    @rule(which=charges, digest=st.sampled_from([DIGEST, "ee" * 32]))
    def state_table(self, which: str, digest: str) -> None:
        known = self.known.get(which)
        if known is None:
            return

        def step() -> object:
            return self.world.ledger.state_table(known.id, digest, beside={})

        if known.table:
            same = digest == known.table
            assert step() if same else self._refused(DigestMismatch, step) is None
        elif known.state not in ("sealed", "publishing"):
            self._refused(WrongState, step)
        else:
            step()
            known.table = digest

    @rule(which=charges, digest=st.sampled_from([DIGEST, "dd" * 32]), passed=st.booleans())
    def state_report(self, which: str, digest: str, passed: bool) -> None:
        known = self.known.get(which)
        if known is None:
            return

        def step() -> object:
            return self.world.ledger.state_report(known.id, digest, beside={}, passed=passed)

        said, last = (digest, passed), known.reports[-1] if known.reports else None
        if said == last:
            step()
        elif known.state == "publishing":
            self._refused(DigestMismatch, step)
        elif known.state != "sealed" or not known.table or (passed and last and not last[1]):
            self._refused(WrongState, step)
        else:
            step()
            known.reports.append(said)

    @rule(which=charges)
    def begin_publishing(self, which: str) -> None:
        step, known = self.world.ledger.begin_publishing, self.known.get(which)
        if known and known.reports and not known.reports[-1][1]:
            return  # verify names it: see test_statements
        self._arrow(which, "sealed", "publishing", step, also=("published",))

    @rule(which=charges)
    def publish(self, which: str) -> None:
        self._arrow(
            which,
            "publishing",
            "published",
            lambda i: self.world.ledger.publish(
                i, manifest_digest="cd" * 32, uri="x", release_id=f"release-{i}"
            ),
        )

    @rule(days=st.sampled_from([1, 8]))
    def expire(self, days: int) -> None:
        self.world.clock.forward(days=days)
        voided = {charge.charge_id for charge in self.world.ledger.expire()}
        now = f"{self.world.clock():%Y-%m-%dT%H:%M:%S.%fZ}"
        for known in self.known.values():
            due = known.state == "reserved" and (known.charge.expires_at or "") <= now
            assert due == (known.id in voided)
            if due:
                known.state = "void"
                self._give_back(known)

    def _give_back(self, known: Known) -> None:
        for pool, amount in known.charge.amounts_pico.items():
            self.held[pool] -= amount

    def _arrow(
        self, which: str, start: str, end: str, step: object, also: tuple[str, ...] = ()
    ) -> None:
        known = self.known.get(which)
        if known is None:
            return
        if known.state in (end, *also):
            assert step(known.id).replayed  # type: ignore[operator]
        elif known.state != start:
            self._refused(WrongState, lambda: step(known.id))  # type: ignore[operator]
        else:
            assert step(known.id).state == end  # type: ignore[operator]
            known.state = end

    def _refused(self, expected: object, step: object) -> None:
        try:
            step()  # type: ignore[operator]
        except expected:  # type: ignore[misc]
            return
        raise AssertionError(f"{expected} was not raised")

    # Invariants.

    @invariant()
    def balances_are_the_models(self) -> None:
        for pool_id, (held, spent) in self.world.figures().items():
            assert (held, spent) == (self.held[pool_id], self.spent[pool_id]), pool_id
            assert held >= 0 and spent >= 0 and held + spent <= self.caps[pool_id]

    @invariant()
    def the_journal_only_grows(self) -> None:
        seq = self.world.reader.head()["seq"]
        assert seq >= self.head
        self.head = seq

    def teardown(self) -> None:
        report = self.world.verify(*self.anchors)
        assert report.ok, report.problems
        for known in self.known.values():
            now = self.world.reader.charge(known.id)
            assert (now.state, now.fence) == (known.state, known.fence)
            said = [e for e in self.world.reader.entries(known.id) if e.kind == "report"]
            told = [(e.facts["digest"], e.facts["passed"]) for e in said]
            assert told == known.reports
            again = self.world.ledger.reserve(known.request, zcdp)
            assert again.charge_id == known.id and again.granted_pico == known.charge.granted_pico
            assert replace(now, replayed=True) == again
        self.world.engine.dispose()
        self.finished()

    def finished(self) -> None:
        """Give the database back."""
