"""approve: a second person's decision, kept beside the charge and asked for by `publish`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from include.errors import CuSynError
from include.stages.asked import require_as_asked
from include.stages.desk import Desk
from include.stages.run import ReleaseRun, Workplace, paid_charge

if TYPE_CHECKING:
    from include.budget.models import Charge


class NotApproved(CuSynError):
    """The release needs a second person's approval and does not have it."""


def approve(run: ReleaseRun, place: Workplace, by: str) -> str:
    """Record an approval.

    Args:
        run: the release.
        place: where it is made.
        by: the user Airflow authenticated.

    Returns:
        A line for the log.

    Raises:
        NotApproved: the approver asked for the release themselves.
        DeclarationChanged: a file says something else now than was asked.

    Privacy: post-processing.
    """
    charge = paid_charge(run, place)
    if by in (charge.actor, run.actor):
        raise NotApproved(
            f"charge {charge.charge_id}: {by} asked for this release and cannot approve it; let "
            "another person answer after clearing this task"
        )
    require_as_asked(run, place, charge)
    desk = Desk(place.desk(charge.charge_id))
    desk.write(desk.approval, json.dumps({"approved_by": by}).encode())
    return f"charge {charge.charge_id}: {by} approved its publication."


def reject(run: ReleaseRun, place: Workplace, by: str) -> str:
    """Record a rejection: the charge is withheld for good.

    Returns:
        A line for the log.

    Privacy: ledger only.
    """
    charge = paid_charge(run, place)
    place.ledger.withhold(charge.charge_id, f"{by} rejected its publication")
    return f"charge {charge.charge_id}: {by} rejected its publication; what was spent stays spent."


def is_decided(run: ReleaseRun, place: Workplace) -> bool:
    """Tell whether nobody needs to be asked any more.

    Privacy: ledger only.
    """
    charge = paid_charge(run, place)
    desk = Desk(place.desk(charge.charge_id))
    return charge.state in ("publishing", "published", "withheld") or desk.approval.exists()


def require_approval(run: ReleaseRun, charge: Charge, desk: Desk) -> None:
    """Refuse to publish what needs an approval and has none, whatever colour its task shows.

    Raises:
        NotApproved: as said.

    Privacy: ledger only.
    """
    asked = charge.parameters.get("approval", run.release.approval)
    if "required" in (asked, run.release.approval) and not desk.approval.exists():
        raise NotApproved(
            f"charge {charge.charge_id}: it was asked for with an approval and none is recorded; "
            "answer the task approve first"
        )
