"""Freezing a ledger, and thawing it after a restored backup.

What was lost may have been spent. So every reservation of the restored ledger is voided (it may
have been opened in the lost part), every opened charge is forfeited (it may have been measured
since), and every pool's spent is raised to the most that any checkpoint saw held or spent, and
further by every release that a manifest proves beyond the last of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from include.accounting.amounts import format_amount
from include.budget import measuring, releasing, states
from include.budget.anchors import anchor_of, unseen
from include.budget.errors import InvalidRequest
from include.budget.journal import AVAILABLE, SPENT, Change, Draft, Posting
from include.budget.models import LONGEST_REASON, require_pico, require_text, same_person
from include.budget.store.rows import PoolRow
from include.budget.store.transaction import Transaction
from include.budget.verify import Anchor


@dataclass(frozen=True)
class LostRelease:
    """A published release that the restored ledger does not know.

    Args:
        release_id: Its id.
        anchor: The sealed entry its manifest embeds.
        amounts_pico: What it cost each pool, by pool id, units of 1e-12 of the pool's currency.

    Privacy: ledger only.
    """

    release_id: str
    anchor: Anchor
    amounts_pico: Mapping[str, int]


@dataclass(frozen=True)
class Evidence:
    """What was seen of the lost part of a ledger.

    Args:
        checkpoints: Bodies of all exported checkpoints, whether or not the ledger knows them.
        releases: Published releases, whether or not the ledger knows them.

    Privacy: ledger only.
    """

    checkpoints: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    releases: Sequence[LostRelease] = field(default_factory=tuple)

    @property
    def anchors(self) -> list[Anchor]:
        """Every entry that was seen outside."""
        seen = [release.anchor for release in self.releases]
        return seen + [anchor_of(body, f"checkpoint {body['seq']}") for body in self.checkpoints]


def freeze(tx: Transaction, reason: str, *, actor: str) -> None:
    """Stop every open pool; nothing can be reserved or opened until it is reconciled.

    Args:
        tx: The transaction.
        reason: Why.
        actor: Who, or what noticed.

    Privacy: ledger only.
    """
    told = require_text(reason, name="reason", longest=LONGEST_REASON)
    pools = [pool for pool in tx.every_pool() if pool.status == "open"]
    if not pools:
        return
    tx.append(
        Draft(
            kind="freeze",
            actor=require_text(actor, name="actor"),
            words=f"{actor} froze all budget: {told}.",
            changes=[_status(pool, "frozen") for pool in pools],
        )
    )


def reconcile(
    tx: Transaction, evidence: Evidence, *, actor: str, authorised_by: str, reason: str
) -> dict[str, int]:
    """Charge what was lost, record which entries are gone, and thaw the pools.

    Args:
        tx: The transaction.
        evidence: What was seen outside.
        actor: Who reconciles.
        authorised_by: Who allows it; somebody else.
        reason: What happened.

    Returns:
        What each pool was charged, by pool id, units of 1e-12.

    Raises:
        InvalidRequest: One person wants to do both, or an amount cannot be meant.

    Privacy: ledger only.
    """
    second = require_text(authorised_by, name="authorised_by")
    if same_person(require_text(actor, name="actor"), second):
        raise InvalidRequest("reconciling a ledger needs two people: name another.")
    require_text(reason, name="reason", longest=LONGEST_REASON)
    for charge_id in tx.due("9999"):
        told = "the ledger was restored: it may have been opened since"
        releasing.void(tx, charge_id, told, actor=actor)
    pools = tx.every_pool()
    lost = unseen(tx, evidence.anchors)
    if lost:
        for row in tx.rows("charge", state=states.OPENED):
            told = "the ledger was restored: it may have been measured since"
            measuring.forfeit(tx, str(row["charge_id"]), told, actor=actor)
    owed = {pool.pool_id: _owed(pool, evidence, lost) for pool in pools}
    charged = {pool_id: amount for pool_id, amount in owed.items() if amount}
    told = ", ".join(f"{format_amount(amount)} to {pool_id}" for pool_id, amount in charged.items())
    tx.append(
        Draft(
            kind="reconcile",
            actor=actor,
            words=f"{actor}, authorised by {authorised_by}, reconciled the ledger: {reason}. "
            f"{len(lost)} entries seen outside are lost; charged {told or 'nothing'}.",
            changes=[_status(pool, "open") for pool in pools if pool.status == "frozen"],
            postings=[
                posting
                for pool_id, amount in sorted(charged.items())
                for posting in (
                    Posting(pool_id, AVAILABLE, -amount),
                    Posting(pool_id, SPENT, amount),
                )
            ],
            facts={
                "authorised_by": authorised_by,
                "lost_anchors": [list(one) for one in sorted({(a.seq, a.hash) for a in lost})],
                "lost_releases": _lost_releases(evidence, lost),
            },
        )
    )
    return charged


def _owed(pool: PoolRow, evidence: Evidence, lost: Sequence[Anchor]) -> int:
    """What must be added to spent; never more than the pool still has."""
    seen = [int(sum(body["pools"].get(pool.pool_id, ()))) for body in evidence.checkpoints]
    due = max([pool.spent_pico, *seen])
    seen_until = max((int(body["seq"]) for body in evidence.checkpoints), default=0)
    for release in evidence.releases:
        if release.anchor in lost and release.anchor.seq > seen_until:
            amount = release.amounts_pico.get(pool.pool_id)
            due += require_pico(amount, name=release.release_id) if amount else 0
    return min(due - pool.spent_pico, pool.cap_pico - pool.used_pico)


def _lost_releases(evidence: Evidence, lost: Sequence[Anchor]) -> list[str]:
    return sorted(one.release_id for one in evidence.releases if one.anchor in lost)


def _status(pool: PoolRow, status: str) -> Change:
    return Change("pool", pool.pool_id, {"status": status}, was={"status": pool.status})
