"""approve: a second person's decision, an entry of the journal that `publish` asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from include.budget.errors import NotApproved
from include.budget.models import same_person
from include.stages.asked import require_as_asked
from include.stages.desk import Desk
from include.stages.run import ReleaseRun, Workplace, paid_charge
from include.stages.stated import require_report, require_stated, stated_report, stated_table

if TYPE_CHECKING:
    from include.budget.models import Charge

__all__ = ["NotApproved", "approve", "is_approved", "is_decided", "reject", "require_approval"]

NOBODY = "unknown"
"""Who answered, where Airflow names nobody."""


def approve(run: ReleaseRun, place: Workplace, by: str) -> str:
    """Record an approval of the table and the report as they lie in the work folder.

    Args:
        run: the release.
        place: where it is made.
        by: the user Airflow authenticated.

    Returns:
        A line for the log.

    Raises:
        NotApproved: the approver asked for the release themselves, is not named, or there is no
            report to approve.
        DigestMismatch: the table or the report is not the one the journal names.
        DeclarationChanged: a file says something else now than was asked.

    Privacy: post-processing.
    """
    charge = paid_charge(run, place)
    if by == NOBODY:
        raise NotApproved(
            f"charge {charge.charge_id}: Airflow does not name who answered, so nobody has "
            "approved it; clear this task and answer it logged in"
        )
    if any(same_person(by, asked) for asked in (charge.actor, run.actor)):
        raise NotApproved(
            f"charge {charge.charge_id}: {by} asked for this release and cannot approve it; let "
            "another person answer after clearing this task"
        )
    require_as_asked(run, place, charge)
    desk = Desk(place.desk(charge.charge_id))
    require_stated(place, charge, desk)
    table = stated_table(place, charge.charge_id)
    if table is None or stated_report(place, charge.charge_id) is None:
        raise NotApproved(
            f"charge {charge.charge_id}: there is no report to approve; run quality_check first"
        )
    report, _ = require_report(place, charge, desk)
    place.ledger.state_approval(
        charge.charge_id, by=by, table=table["digest"], report=report["digest"]
    )
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
    return charge.state in ("publishing", "published", "withheld") or is_approved(place, charge)


def is_approved(place: Workplace, charge: Charge) -> bool:
    """Tell whether the journal holds another person's approval of its table and its last report.

    Privacy: ledger only.
    """
    table = stated_table(place, charge.charge_id)
    report = stated_report(place, charge.charge_id)
    if table is None or report is None:
        return False
    named = (table["digest"], report["digest"])
    return any(
        entry.kind == "approve"
        and not same_person(entry.actor, charge.actor)
        and (entry.facts["table"], entry.facts["report"]) == named
        for entry in place.reader.entries(charge.charge_id)
    )


def require_approval(run: ReleaseRun, place: Workplace, charge: Charge) -> None:
    """Refuse to publish what needs an approval and has none, whatever colour its task shows.

    Raises:
        NotApproved: as said.

    Privacy: ledger only.
    """
    asked = charge.parameters.get("approval", run.release.approval)
    if "required" in (asked, run.release.approval) and not is_approved(place, charge):
        raise NotApproved(
            f"charge {charge.charge_id}: it was asked for with an approval and none is recorded "
            "for its table and report; answer the task approve first"
        )
