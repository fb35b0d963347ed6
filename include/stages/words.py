"""One plain line a stage, for the auditor who reads the task log."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal
from typing import TYPE_CHECKING

from include.accounting import format_amount

if TYPE_CHECKING:
    from include.budget.models import Charge
    from include.budget.reader import LedgerReader


def decision_words(charge: Charge, remaining: str, withdrawn: str = "") -> str:
    """Say who asked for what, which constraint bound, what was charged and what remains.

    Args:
        charge: what BudgetEval answered.
        remaining: what the pools have left, in words.
        withdrawn: of a withdrawn release, when and why: `withdrawn_words`.

    Privacy: ledger only.
    """
    asked = (
        f"{charge.actor} asked epsilon {format_amount(charge.requested_pico)} for "
        f"{charge.requester}, release {charge.release}, period {charge.period}"
    )
    if charge.denied:
        return f"{asked}; {charge.reason}; nothing was charged."
    if charge.replayed:
        return (
            f"{asked}; this period already has charge {charge.charge_id} ({charge.state}"
            f"{', then ' + withdrawn if withdrawn else ''}); nothing more is charged."
        )
    granted = format_amount(charge.granted_pico)
    full = charge.granted_pico == charge.requested_pico
    how = f"granted {granted} in full" if full else f"granted {granted}, bound by {charge.binding}"
    return f"{asked}; {how}; charge {charge.charge_id} is reserved; left after it: {remaining}."


def withdrawn_words(charge: Charge, reader: LedgerReader) -> str:
    """Say when and why the release of a charge was withdrawn; empty where it was not.

    Privacy: ledger only.
    """
    if charge.release_id is None or charge.state != "published":
        return ""
    release = reader.release(charge.release_id)
    if release.withdrawn_at is None:
        return ""
    return f"withdrawn on {release.withdrawn_at[:10]}: {release.withdrawn_reason}"


def room_left(charge: Charge, reader: LedgerReader) -> str:
    """Say how much epsilon each pool of a charge has left, rounded down for reading.

    Privacy: ledger only.
    """
    pools = [pool for pool in reader.pools() if pool.pool_id in charge.amounts_pico]
    return ", ".join(
        f"{_shown(pool.remaining_epsilon)} of {pool.epsilon} for {pool.owner}" for pool in pools
    )


def _shown(amount: str) -> str:
    return format(Decimal(amount).quantize(Decimal("0.001"), ROUND_DOWN).normalize(), "f")
