"""The only writer of the privacy-budget ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import Engine

from include.accounting.accountant import Accounting, Cost
from include.budget import (
    amendments,
    claims,
    datasets,
    measuring,
    opening,
    reconcile,
    registration,
    releasing,
    reservation,
    statements,
)
from include.budget.errors import (
    InvalidRequest,
    LedgerRefused,
    LedgerRewound,
    LedgerUnavailable,
    WrongState,
)
from include.budget.models import Charge, OpenedCharge, Request
from include.budget.reader import LedgerReader
from include.budget.reconcile import Evidence
from include.budget.store.engine import Collision
from include.budget.store.optimistic import Memory, step
from include.budget.store.transaction import Clock, Transaction, stamp, utc_now

LIFETIME = timedelta(days=7)
"""How long a reservation stands: long enough for an approval over a weekend."""

GUARD_ACTOR = "ledger guard"
"""Who freezes a ledger that was found rewound."""

_PATIENCE = 20

T = TypeVar("T")


class Ledger:
    """Writes to the ledger; every method is one short transaction.

    Args:
        engine: From `store.engine.connect`.
        clock: Source of time.
        lifetime: How long a reservation stands before it expires.
        guard: Called first inside every transaction that reserves, opens, resumes, seals or
            publishes, to refuse a ledger that was rewound (see `anchors.guard`).

    Privacy: ledger only.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        clock: Clock = utc_now,
        lifetime: timedelta = LIFETIME,
        guard: Callable[[Transaction], None] = lambda tx: None,
    ) -> None:
        self.engine = engine
        self.clock = clock
        self.lifetime = lifetime
        self.guard = guard
        self._memory = Memory()

    # What a steward declares.

    def register_population(
        self,
        name: str,
        *,
        privacy_unit: str,
        epsilon_pico: int,
        delta_exponent: int,
        accounting: Accounting = "zcdp",
        per_operation_limit_pico: int | None = None,
        actor: str,
        additional_epsilon_pico: int | None = None,
    ) -> None:
        """Register a set of privacy units and its budget; see `registration`."""
        self._write(
            lambda tx: registration.register_population(
                tx,
                name,
                privacy_unit=privacy_unit,
                epsilon_pico=epsilon_pico,
                delta_exponent=delta_exponent,
                accounting=accounting,
                per_operation_limit_pico=per_operation_limit_pico,
                actor=actor,
                additional_epsilon_pico=additional_epsilon_pico,
            )
        )

    def register_dataset(
        self,
        name: str,
        *,
        populations: Mapping[str, Mapping[str, Any]],
        schema_digest: str,
        actor: str,
        reuse: str = "off",
    ) -> None:
        """Register a dataset and the populations it draws on; see `registration`."""
        self._write(
            lambda tx: datasets.register_dataset(
                tx,
                name,
                populations=populations,
                schema_digest=schema_digest,
                actor=actor,
                reuse=reuse,
            )
        )

    def register_user_pool(
        self,
        user: str,
        dataset: str,
        *,
        epsilon_pico: int,
        per_request_limit_pico: int | None = None,
        actor: str,
    ) -> None:
        """Give a user a budget for a dataset; see `registration`."""
        self._write(
            lambda tx: registration.register_user_pool(
                tx,
                user,
                dataset,
                epsilon_pico=epsilon_pico,
                per_request_limit_pico=per_request_limit_pico,
                actor=actor,
            )
        )

    def register_snapshot(
        self,
        snapshot_id: str,
        *,
        dataset: str,
        commitment: str,
        mac: str,
        locator: str,
        actor: str,
        partition: str | None = None,
    ) -> str:
        """Record a snapshot, or return the id of the known one; see `registration`."""
        return self._write(
            lambda tx: datasets.register_snapshot(
                tx,
                snapshot_id,
                dataset=dataset,
                commitment=commitment,
                mac=mac,
                locator=locator,
                actor=actor,
                partition=partition,
            )
        )

    # What an administrator changes later.

    def register_partitions(
        self,
        population: str,
        dataset: str,
        *,
        column: str,
        values: Sequence[str],
        at_most: int = 1,
        actor: str,
        authorised_by: str,
        reason: str,
    ) -> None:
        """Claim disjoint partitions, which compose in parallel; see `claims`."""
        self._write(
            lambda tx: claims.register_partitions(
                tx,
                population,
                dataset,
                column=column,
                values=values,
                at_most=at_most,
                actor=actor,
                authorised_by=authorised_by,
                reason=reason,
            )
        )

    def change_limit(
        self, subject: str, limit_pico: int | None, *, actor: str, reason: str
    ) -> None:
        """Change a limit on one operation or request; see `amendments`."""
        self._write(
            lambda tx: amendments.change_limit(tx, subject, limit_pico, actor=actor, reason=reason)
        )

    def new_generation(
        self,
        subject: str,
        epsilon_pico: int,
        *,
        actor: str,
        authorised_by: str,
        reason: str,
        additional_epsilon_pico: int | None = None,
    ) -> None:
        """Open a new generation of a pool instead of refilling it; see `amendments`."""
        self._write(
            lambda tx: amendments.new_generation(
                tx,
                subject,
                epsilon_pico,
                actor=actor,
                authorised_by=authorised_by,
                reason=reason,
                additional_epsilon_pico=additional_epsilon_pico,
            )
        )

    def amend_dataset(
        self,
        name: str,
        *,
        schema_digest: str | None = None,
        populations: Mapping[str, Mapping[str, Any]] | None = None,
        actor: str,
        reason: str,
    ) -> None:
        """Change a dataset's schema or add populations; see `amendments`."""
        self._write(
            lambda tx: datasets.amend_dataset(
                tx,
                name,
                schema_digest=schema_digest,
                populations=populations,
                actor=actor,
                reason=reason,
            )
        )

    def freeze(self, reason: str, *, actor: str) -> None:
        """Stop every pool until the ledger is reconciled; see `reconcile`."""
        self._write(lambda tx: reconcile.freeze(tx, reason, actor=actor))

    def reconcile(
        self, evidence: Evidence, *, actor: str, authorised_by: str, reason: str
    ) -> dict[str, int]:
        """Charge what a restored ledger has lost and thaw the pools; see `reconcile`."""
        return self._write(
            lambda tx: reconcile.reconcile(
                tx, evidence, actor=actor, authorised_by=authorised_by, reason=reason
            )
        )

    # The life of a charge.

    def reserve(self, request: Request, cost_of: Callable[[int], Cost]) -> Charge:
        """Decide a request and hold what it needs; see `reservation.reserve`."""
        with self._freezing():
            return reservation.reserve(
                self.engine,
                request,
                cost_of,
                clock=self.clock,
                lifetime=self.lifetime,
                before=self.guard,
            )

    def open(
        self,
        charge_id: str,
        *,
        plan: Mapping[str, Any],
        cost: Cost,
        events: Sequence[Mapping[str, Any]],
        attempt: str,
    ) -> OpenedCharge:
        """Spend, and get the right to read, once; see `opening.open_charge`."""
        return self._guarded(
            lambda tx: opening.open_charge(
                tx, charge_id, plan=plan, cost=cost, events=events, attempt=attempt
            )
        )

    def begin_round(
        self, opened: OpenedCharge, round: int, events: Sequence[Mapping[str, Any]]
    ) -> None:
        """Journal a round's events before it runs; see `measuring.begin_round`."""
        self._step(lambda tx: measuring.begin_round(tx, opened, round, events))

    def answer_round(self, opened: OpenedCharge, round: int, digest: str) -> None:
        """Journal the digest of a round's durable answer; see `measuring.answer_round`."""
        self._step(lambda tx: measuring.answer_round(tx, opened, round, digest))

    def resume(self, charge_id: str, *, attempt: str, last_round: int) -> OpenedCharge:
        """Take over after a crash under a new fence; see `measuring.resume`."""
        return self._guarded(
            lambda tx: measuring.resume(tx, charge_id, attempt=attempt, last_round=last_round)
        )

    def seal(self, opened: OpenedCharge, digest: str) -> Charge:
        """Fix the transcript; see `measuring.seal`."""
        return self._guarded(lambda tx: measuring.seal(tx, opened, digest))

    def forfeit(self, charge_id: str, reason: str, *, actor: str | None = None) -> Charge:
        """Give up an opened charge; see `measuring.forfeit`."""
        return self._write(lambda tx: measuring.forfeit(tx, charge_id, reason, actor=actor))

    def void(self, charge_id: str, reason: str, *, actor: str | None = None) -> Charge:
        """Give back a reservation; see `releasing.void`."""
        return self._write(lambda tx: releasing.void(tx, charge_id, reason, actor=actor))

    def withhold(self, charge_id: str, reason: str, *, actor: str | None = None) -> Charge:
        """Keep a sealed release back; see `releasing.withhold`."""
        return self._write(lambda tx: releasing.withhold(tx, charge_id, reason, actor=actor))

    def state_table(
        self, charge_id: str, digest: str, *, beside: Mapping[str, str]
    ) -> dict[str, Any]:
        """Name the one table made of a sealed transcript; see `statements.state_table`."""
        return self._stated(lambda tx: statements.state_table(tx, charge_id, digest, beside=beside))

    def state_report(
        self, charge_id: str, digest: str, *, beside: Mapping[str, str], passed: bool
    ) -> dict[str, Any]:
        """Name the report of a stated table; see `statements.state_report`."""
        return self._stated(
            lambda tx: statements.state_report(tx, charge_id, digest, beside=beside, passed=passed)
        )

    def state_approval(self, charge_id: str, *, by: str, table: str, report: str) -> dict[str, Any]:
        """Record a second person's approval; see `statements.state_approval`."""
        return self._stated(
            lambda tx: statements.state_approval(tx, charge_id, by=by, table=table, report=report)
        )

    def begin_publishing(self, charge_id: str, *, fence: int | None = None) -> Charge:
        """Pass the point after which a manifest may be visible; see `releasing`."""
        return self._guarded(lambda tx: releasing.begin_publishing(tx, charge_id, fence=fence))

    def publish(
        self,
        charge_id: str,
        *,
        manifest_digest: str,
        uri: str,
        release_id: str | None = None,
        fence: int | None = None,
    ) -> Charge:
        """Record a visible package; see `releasing.publish`."""
        return self._guarded(
            lambda tx: releasing.publish(
                tx,
                charge_id,
                manifest_digest=manifest_digest,
                uri=uri,
                release_id=release_id,
                fence=fence,
            )
        )

    def withdraw(self, release_id: str, reason: str, actor: str) -> Charge:
        """Mark a release as withdrawn; see `releasing.withdraw`."""
        return self._write(lambda tx: releasing.withdraw(tx, release_id, reason, actor))

    def expire(self, now: datetime | None = None) -> list[Charge]:
        """Void every reservation whose time is over.

        Args:
            now: The time; the clock's by default.

        Returns:
            The charges voided by this call.

        Privacy: ledger only.
        """
        at = stamp(now or self.clock())
        voided = []
        for charge_id in self._write(lambda tx: tx.due(at)):
            try:
                voided.append(self._expire_one(charge_id))
            except WrongState:
                continue  # somebody opened it in between: the compare-and-set decides
        return voided

    def find_charge(
        self, key: str | None = None, release: str | None = None, period: str | None = None
    ) -> Charge | None:
        """Find the charge of a key, or the one that occupies a period; see `LedgerReader`."""
        return LedgerReader(self.engine).find_charge(key=key, release=release, period=period)

    def _expire_one(self, charge_id: str) -> Charge:
        reason = "nobody opened it in time"
        return self._write(lambda tx: releasing.void(tx, charge_id, reason, kind="expire"))

    def _guarded(self, take: Callable[[Transaction], T]) -> T:
        """Write on a ledger that holds all that was seen outside, or not at all."""
        with self._freezing():
            return self._step(lambda tx: self._checked(tx, take))

    def _stated(self, take: Callable[[Transaction], T]) -> T:
        """The same under the lock: an entry that changes no row is no compare-and-set by itself."""
        with self._freezing():
            return self._write(lambda tx: self._checked(tx, take))

    def _checked(self, tx: Transaction, take: Callable[[Transaction], T]) -> T:
        self.guard(tx)
        return take(tx)

    @contextmanager
    def _freezing(self) -> Iterator[None]:
        try:
            yield
        except LedgerRewound as fault:
            # The freeze outlives this process; a login that may not freeze is refused each time.
            with suppress(LedgerRefused, InvalidRequest):
                self.freeze(str(fault), actor=GUARD_ACTOR)
            raise

    def _step(self, take: Callable[[Transaction], T]) -> T:
        """Take a step of a charge's life, whose only write is one entry at its end."""
        try:
            with step(self.engine, self.clock, locking=False, memory=self._memory) as tx:
                return take(tx)
        except Collision:
            return self._write(take)

    def _write(self, take: Callable[[Transaction], T]) -> T:
        for _ in range(_PATIENCE):
            try:
                with step(self.engine, self.clock, locking=True, memory=self._memory) as tx:
                    return take(tx)
            except Collision:
                continue
        raise LedgerUnavailable("the ledger is too busy for this step: try again.")
