"""The audit of one release on one page: manifest, charge, entries, plan re-costed, sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine

from include.accounting.accountant import Accounting, Cost, cost_in_currency
from include.accounting.amounts import format_amount
from include.budget.costing import recost as compose_journalled
from include.budget.errors import UnknownName
from include.budget.journal import entry_hash
from include.budget.models import Charge, digest_of
from include.budget.policy import UNIT
from include.budget.reader import Entry, LedgerReader, Pool, Release
from include.budget.store import queries
from include.budget.store.engine import reading

Recost = Callable[[Mapping[str, Any]], Cost]
"""A planner that prices a journalled plan again; None leaves it to the journalled events."""


@dataclass(frozen=True)
class Check:
    """One thing an auditor asks, and the answer.

    Args:
        question: What is asked.
        passed: Whether the answer is as it should be.
        answer: The answer, or why there is none and what to do.
        checked: False where the question could not be answered from here; then it has not passed.

    Privacy: ledger only.
    """

    question: str
    passed: bool
    answer: str
    checked: bool = True

    @property
    def verdict(self) -> str:
        """What stands before the question on the page."""
        if not self.checked:
            return "NOT CHECKED"
        return "passed" if self.passed else "FAILED"


@dataclass(frozen=True)
class AuditReport:
    """Everything the ledger knows of one release.

    Args:
        release: The release: manifest digest and place.
        charge: Its charge: who asked, what was granted, which plan.
        entries: Its journal entries, in order, in plain words.
        commitment: Commitment to the snapshot it was measured on.
        pools: The budget pools it charged, as they stand now.
        checks: What was re-computed.

    Privacy: ledger only.
    """

    release: Release
    charge: Charge
    entries: tuple[Entry, ...]
    commitment: str | None
    pools: tuple[Pool, ...]
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every check was made and passed."""
        return all(check.passed for check in self.checks)

    @property
    def wrong(self) -> bool:
        """Whether a check that was made failed."""
        return any(check.checked and not check.passed for check in self.checks)

    @property
    def complete(self) -> bool:
        """Whether every check was made."""
        return all(check.checked for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """Describe the audit in JSON types."""
        return {
            "ok": self.ok,
            "wrong": self.wrong,
            "complete": self.complete,
            "release": self.release.to_dict(),
            "charge": self.charge.to_dict(),
            "snapshot_commitment": self.commitment,
            "entries": [entry.to_dict() for entry in self.entries],
            "pools": [pool.to_dict() for pool in self.pools],
            "checks": [asdict(check) for check in self.checks],
        }

    def to_text(self) -> str:
        """Write the audit as one page of plain text."""
        release, charge = self.release, self.charge
        lines = [
            f"Release {release.release_id}",
            f"  manifest   sha256:{release.manifest_digest}",
            f"  package    {release.uri}",
            f"  published  {release.published_at}" + _withdrawn(release),
            f"Charge {charge.charge_id}: {charge.state}, fence {charge.fence}",
            f"  asked      epsilon {format_amount(charge.requested_pico)} by {charge.actor} for "
            f"{charge.requester}, dataset {charge.dataset}, period {charge.period}",
            f"  granted    epsilon {format_amount(charge.granted_pico)}, bound by {charge.binding}",
            f"  mechanism  {charge.mechanism}, plan sha256:{charge.plan_digest}",
            f"  transcript sha256:{charge.transcript_digest}",
            f"  snapshot   {charge.snapshot_id or 'not named'}, commitment "
            f"{self.commitment or 'none'}",
            "Journal",
            *(f"  {e.seq:>6}  {e.at}  {e.words}" for e in self.entries),
            "Budget pools",
            *(_pool_line(pool, charge) for pool in self.pools),
            "Checks",
            *(f"  {check.verdict}  {check.question}: {check.answer}" for check in self.checks),
        ]
        return "\n".join(lines) + "\n"


def audit_release(engine: Engine, release_id: str, recost: Recost | None = None) -> AuditReport:
    """Re-compute everything the ledger claims about one release.

    Args:
        engine: The ledger's database.
        release_id: A published release.
        recost: Prices the journalled plan again (the planner's own accountant).

    Returns:
        The report; a failed check is an answer, not an error.

    Raises:
        UnknownName: No release has that id.
        LedgerUnavailable: The ledger cannot be read.

    Privacy: ledger only.
    """
    reader = LedgerReader(engine)
    release = reader.release(release_id)
    charge = reader.charge(release.charge_id)
    with reading(engine) as connection:
        rows = list(queries.entries(connection, charge_id=charge.charge_id))
        snapshots = {
            row["snapshot_id"]: str(row["commitment"])
            for row in queries.projection(connection, "snapshot")
        }
    entries = tuple(reader.entries(charge.charge_id))
    pools = tuple(pool for pool in reader.pools() if pool.pool_id in charge.amounts_pico)
    checks = [
        _sealed(charge, rows),
        _published(release, charge),
        _plan_digest(charge),
        *_costs(charge, entries, recost),
        *(_pool_check(pool, charge) for pool in pools),
    ]
    return AuditReport(
        release, charge, entries, snapshots.get(charge.snapshot_id), pools, tuple(checks)
    )


def _sealed(charge: Charge, rows: Sequence[Mapping[str, Any]]) -> Check:
    good = all(row["hash"] == entry_hash(row["seq"], row["prev_hash"], row["body"]) for row in rows)
    kinds = [row["kind"] for row in rows]
    ordered = kinds[0] == "reserve" and kinds.index("open") < kinds.index("seal")
    told = f"{len(rows)} entries, sealed by entry {charge.sealed_seq} {charge.sealed_hash}"
    return Check("entries keep their hashes, spent before sealed", good and ordered, told)


def _published(release: Release, charge: Charge) -> Check:
    same = release.manifest_digest == charge.manifest_digest
    return Check("release and charge name one manifest", same, release.manifest_digest)


def _plan_digest(charge: Charge) -> Check:
    digest = digest_of(charge.plan)
    return Check("the plan gives its digest", digest == charge.plan_digest, digest)


def _costs(charge: Charge, entries: Sequence[Entry], recost: Recost | None) -> list[Check]:
    if charge.cost is None or charge.plan is None:
        raise UnknownName(f"charge {charge.charge_id} has no plan: it was never opened.")
    paid = charge.cost
    rounds = [
        event for entry in entries if entry.kind == "begin_round" for event in entry.facts["events"]
    ]
    found = {
        "the plan's events, composed again": compose_journalled(charge.events),
        "the rounds that ran, composed again": compose_journalled(rounds),
    }
    if recost is not None:
        found["the plan, priced again by its planner"] = recost(charge.plan)
    return [_cost_check(question, cost, paid) for question, cost in found.items()]


def _cost_check(question: str, cost: Cost, paid: Cost) -> Check:
    told = f"rho {format_amount(cost.rho_pico)}, paid rho {format_amount(paid.rho_pico)}"
    return Check(f"{question}, cost no more than paid", cost.rho_pico <= paid.rho_pico, told)


def _pool_check(pool: Pool, charge: Charge) -> Check:
    paid = charge.amounts_pico[pool.pool_id]
    due = 0
    if charge.cost is not None:
        currency: Accounting = "zcdp" if pool.accounting == "zcdp" else "epsilon"
        due = cost_in_currency(charge.cost, currency, int(pool.delta.removeprefix("1e-")))
    within = pool.held_pico + pool.spent_pico <= pool.cap_pico
    told = (
        f"paid {format_amount(paid)} for {format_amount(due)}; held and spent "
        f"{format_amount(pool.held_pico + pool.spent_pico)} of {format_amount(pool.cap_pico)}"
    )
    return Check(f"{pool.pool_id} was paid and is within its cap", paid >= due and within, told)


def _pool_line(pool: Pool, charge: Charge) -> str:
    unit = UNIT[pool.accounting]
    paid = format_amount(charge.amounts_pico[pool.pool_id])
    return (
        f"  {pool.pool_id}: this release {unit} {paid}; spent epsilon {pool.spent_epsilon} of "
        f"{pool.epsilon} at delta {pool.delta}, largest next release {pool.largest_release_epsilon}"
    )


def _withdrawn(release: Release) -> str:
    if release.withdrawn_at is None:
        return ""
    return f", withdrawn {release.withdrawn_at}: {release.withdrawn_reason}"
