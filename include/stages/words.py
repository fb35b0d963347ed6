"""One plain line a stage, for the auditor who reads the task log."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from include.accounting import format_amount

if TYPE_CHECKING:
    from include.budget.models import Charge
    from include.budget.reader import LedgerReader


def decision_words(charge: Charge, remaining: str) -> str:
    """Say who asked for what, which constraint bound, what was charged and what remains.

    Args:
        charge: what BudgetEval answered.
        remaining: the largest release the pools still allow, as text in epsilon.

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
            f"{asked}; this period already has charge {charge.charge_id} ({charge.state}); "
            "nothing more is charged."
        )
    return (
        f"{asked}; granted {format_amount(charge.granted_pico)}, bound by {charge.binding}; "
        f"charge {charge.charge_id} is reserved; largest release still possible: {remaining}."
    )


def room_left(charge: Charge, reader: LedgerReader) -> str:
    """Return the largest release that every pool of a charge still allows, as epsilon text.

    Privacy: ledger only.
    """
    pools = [pool for pool in reader.pools() if pool.pool_id in charge.amounts_pico]
    return min((pool.largest_release_epsilon for pool in pools), key=Decimal, default="0")
