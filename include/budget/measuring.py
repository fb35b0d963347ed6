"""From an opened charge to a sealed transcript: one reader, fences, every round paid for.

Each round's events are journalled before the round runs, so that a crash can burn budget but never
hide a measurement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from include.accounting.amounts import format_amount
from include.budget import states
from include.budget.costing import recost, require_within
from include.budget.errors import AlreadyOpened, DigestMismatch, RoundMismatch, StaleFence
from include.budget.journal import NUMBER, Change, Draft
from include.budget.models import LONGEST_REASON, Charge, OpenedCharge, attempt_number, require_text
from include.budget.store.transaction import Transaction


def begin_round(
    tx: Transaction, opened: OpenedCharge, number: int, events: Sequence[Mapping[str, Any]]
) -> None:
    """Journal what a round is about to do; only then may it read.

    Args:
        tx: The transaction.
        opened: The right to read.
        number: One more than the last round begun; rounds count from 1.
        events: The round's events.

    Raises:
        StaleFence, WrongState: The right was lost.
        RoundMismatch: The number does not follow, or the last round has no answer yet.
        PlanExceedsGrant: The rounds together would cost more than the plan.

    Privacy: ledger only.
    """
    charge = _held_by(tx, opened, "begin_round")
    if number != charge.rounds_begun + 1 or charge.rounds_closed != charge.rounds_begun:
        raise RoundMismatch(
            f"charge {opened.charge_id}: round {number} does not follow, round "
            f"{charge.rounds_begun} was begun and {charge.rounds_closed} closed last."
        )
    earlier = [one for body in tx.bodies(opened.charge_id, "begin_round") for one in _of(body)]
    if charge.cost is not None:
        told = f"charge {opened.charge_id}: round {number} would overrun the plan"
        require_within(recost([*earlier, *events]), charge.cost, told)
    tx.append(
        Draft(
            kind="begin_round",
            actor=charge.actor,
            words=f"Charge {opened.charge_id} begins round {number}: {len(events)} measurements "
            f"paid for by the plan, at most rho {format_amount(recost(events).rho_pico)}.",
            charge_id=opened.charge_id,
            changes=[_step(charge, {"rounds_begun": number})],
            facts={"round": number, "events": [dict(event) for event in events]},
        )
    )


def _of(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(body["facts"]["events"])


def answer_round(tx: Transaction, opened: OpenedCharge, number: int, digest: str) -> None:
    """Journal the digest of a round's noisy answer, once it is durable.

    Args:
        tx: The transaction.
        opened: The right to read.
        number: The round begun last.
        digest: SHA-256 of the noisy answer.

    Raises:
        StaleFence, WrongState: The right was lost.
        RoundMismatch: Another round was begun last, or it has an answer.

    Privacy: ledger only.
    """
    charge = _held_by(tx, opened, "answer_round")
    if number != charge.rounds_begun or charge.rounds_closed == number:
        raise RoundMismatch(
            f"charge {opened.charge_id}: round {number} waits for no answer, round "
            f"{charge.rounds_begun} was begun last."
        )
    tx.append(
        Draft(
            kind="answer_round",
            actor=charge.actor,
            words=f"Charge {opened.charge_id} has the noisy answer of round {number}.",
            charge_id=opened.charge_id,
            changes=[_step(charge, {"rounds_closed": number, "rounds_answered": number})],
            facts={"round": number, "digest": digest},
        )
    )


def resume(tx: Transaction, charge_id: str, *, attempt: str, last_round: int) -> OpenedCharge:
    """Take over an opened charge after its reader died; the interrupted round's budget is burned.

    Args:
        tx: The transaction.
        charge_id: An opened charge.
        attempt: Airflow's try number; higher than the one that opened or resumed last.
        last_round: The last complete round the caller holds the noisy answer of; 0 for none.

    Returns:
        The right to read under a new fence; the old holder is refused from now on.

    Raises:
        WrongState: The charge is not opened.
        AlreadyOpened: The attempt is not newer.
        RoundMismatch: The caller's transcript ends elsewhere than the journal.

    Privacy: ledger only.
    """
    charge = tx.charge(charge_id)
    states.require("resume", charge_id, charge.state)
    if attempt_number(attempt) <= attempt_number(charge.attempt or "0"):
        raise AlreadyOpened(
            f"charge {charge_id} was opened by attempt {charge.attempt}: only a later attempt may "
            "resume it."
        )
    if last_round != charge.rounds_answered:
        raise RoundMismatch(
            f"charge {charge_id}: the transcript ends with round {last_round}, the journal with "
            f"round {charge.rounds_answered}: forfeit unless the full transcript is found."
        )
    fence = charge.fence + 1
    burned = [charge.rounds_begun] if charge.rounds_closed < charge.rounds_begun else []
    lost = f"; the budget of round {burned[0]} is burned" if burned else ""
    values = {"fence": fence, "attempt": attempt, "rounds_closed": charge.rounds_begun}
    tx.append(
        Draft(
            kind="resume",
            actor=charge.actor,
            words=f"Charge {charge_id} resumed by attempt {attempt} after round {last_round}, "
            f"fence {fence}{lost}.",
            charge_id=charge_id,
            changes=[_step(charge, values)],
            facts={"burned_rounds": burned},
        )
    )
    return OpenedCharge(charge_id, fence, charge.rounds_begun)


def seal(tx: Transaction, opened: OpenedCharge, digest: str) -> Charge:
    """Fix the transcript; from here on everything is post-processing.

    Args:
        tx: The transaction.
        opened: The right to read, given up by this.
        digest: SHA-256 of the transcript.

    Returns:
        The sealed charge; repeated with the same fence and digest, the earlier answer.

    Raises:
        StaleFence, WrongState: The right was lost.
        DigestMismatch: It was sealed with another digest.
        RoundMismatch: A round has no answer.

    Privacy: ledger only.
    """
    charge = tx.charge(opened.charge_id)
    require_text(digest, name="transcript digest")
    if charge.transcript_digest is not None:
        _same_fence(charge, opened)
        if charge.transcript_digest != digest:
            raise DigestMismatch(
                f"charge {charge.charge_id} is sealed with another transcript: a sealed "
                "measurement is never made again."
            )
        return charge.become(replayed=True)
    charge = _held_by(tx, opened, "seal", charge)
    if charge.rounds_closed != charge.rounds_begun:
        raise RoundMismatch(
            f"charge {charge.charge_id}: round {charge.rounds_begun} has no answer yet, so the "
            "transcript is not complete."
        )
    values = {"state": states.SEALED, "transcript_digest": digest, "sealed_seq": NUMBER}
    entry = tx.append(
        Draft(
            kind="seal",
            actor=charge.actor,
            words=f"Charge {charge.charge_id} sealed: the noisy measurements are final; everything "
            "after this is post-processing and free.",
            charge_id=charge.charge_id,
            changes=[_step(charge, values)],
        )
    )
    return charge.become(
        state=states.SEALED,
        transcript_digest=digest,
        sealed_seq=entry.seq,
        sealed_hash=entry.hash,
    )


def forfeit(tx: Transaction, charge_id: str, reason: str, *, actor: str | None = None) -> Charge:
    """Give up an opened charge for good; what was spent stays spent.

    Args:
        tx: The transaction.
        charge_id: An opened charge.
        reason: Why, in words that quote no data.
        actor: Who gives it up; the charge's actor by default.

    Returns:
        The charge; repeated, the earlier answer.

    Raises:
        WrongState: The charge is not opened.

    Privacy: ledger only.
    """
    require_text(reason, name="reason", longest=LONGEST_REASON)
    charge = tx.charge(charge_id)
    if charge.state == states.FORFEITED:
        return charge.become(replayed=True)
    states.require("forfeit", charge_id, charge.state)
    tx.append(
        Draft(
            kind="forfeit",
            actor=require_text(actor or charge.actor, name="actor"),
            words=f"Charge {charge_id} forfeited: {reason}; what was spent stays spent.",
            charge_id=charge_id,
            changes=[_step(charge, {"state": states.FORFEITED, "note": reason})],
        )
    )
    return charge.become(state=states.FORFEITED, note=reason)


def _held_by(
    tx: Transaction, opened: OpenedCharge, kind: str, known: Charge | None = None
) -> Charge:
    charge = known or tx.charge(opened.charge_id)
    states.require(kind, charge.charge_id, charge.state)
    _same_fence(charge, opened)
    return charge


def _same_fence(charge: Charge, opened: OpenedCharge) -> None:
    if charge.fence != opened.fence:
        raise StaleFence(
            f"charge {charge.charge_id} was resumed under fence {charge.fence}: the process with "
            f"fence {opened.fence} must stop and keep nothing."
        )


def _step(charge: Charge, values: Mapping[str, Any]) -> Change:
    was = {
        "state": charge.state,
        "fence": charge.fence,
        "rounds_begun": charge.rounds_begun,
        "rounds_closed": charge.rounds_closed,
    }
    return Change("charge", charge.charge_id, values, was=was)
