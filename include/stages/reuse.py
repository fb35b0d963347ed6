"""Drawing on earlier releases of the same snapshot, where the dataset declares `reuse: dataset`.

An earlier transcript is a paid-for noisy answer: using it again is post-processing and costs the
dataset's pool nothing. It does break a user's pool read as a bound on what that user has seen
(docs/guarantee.md), so it is off unless the dataset's file says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from include.errors import CuSynError
from include.stages.desk import Desk
from include.stages.run import ReleaseRun, Workplace
from include.stages.sealed import sealed_transcript

if TYPE_CHECKING:
    from include.budget.models import Charge
    from include.synthesis.plan import Plan
    from include.synthesis.transcript import Transcript

REUSABLE = ("mwem_pgm", "aim")  # mechanisms whose selection and fit can draw on earlier answers
STATES = ("sealed", "publishing", "published")  # not what a gate or a steward has withheld


def earlier_transcripts(
    run: ReleaseRun, place: Workplace, charge: Charge, plan: Plan
) -> list[Transcript]:
    """Return the transcripts a measurement may draw on, oldest first.

    Those sealed before this charge was opened, of the same snapshot and the same columns: a
    resumed measurement finds the same ones. For a charge not yet opened, those sealed by now.

    Raises:
        CuSynError: one of them is missing or damaged.

    Privacy: post-processing.
    """
    if run.dataset.reuse == "off" or plan.mechanism not in REUSABLE:
        return []
    entries = place.reader.entries(charge.charge_id)
    opened = next((entry.seq for entry in entries if entry.kind == "open"), None)
    domain = plan.to_dict()["task"]["domain"]
    usable = [
        other
        for other in place.reader.charges(dataset=charge.dataset)
        if other.snapshot_id == charge.snapshot_id
        and other.mechanism in REUSABLE
        and other.state in STATES
        and other.sealed_seq is not None
        and (opened is None or other.sealed_seq < opened)
        and other.plan is not None
        and other.plan["task"]["domain"] == domain
    ]
    usable.sort(key=lambda other: other.decided_seq)
    return [sealed_transcript(other, Desk(place.desk(other.charge_id))) for other in usable]


def named_transcripts(
    run: ReleaseRun, place: Workplace, digests: Sequence[str]
) -> list[Transcript]:
    """Return the earlier transcripts that a sealed one names.

    Raises:
        CuSynError: one of them is no longer there.

    Privacy: post-processing.
    """
    if not digests:
        return []
    known = {
        other.transcript_digest: other
        for other in place.reader.charges(dataset=run.dataset.dataset)
        if other.transcript_digest is not None
    }
    missing = [digest for digest in digests if digest not in known]
    if missing:
        raise CuSynError(
            f"the earlier transcript {missing[0]} is not in the ledger; restore the ledger it was "
            "sealed in"
        )
    charges = [known[digest] for digest in digests]
    return [sealed_transcript(one, Desk(place.desk(one.charge_id))) for one in charges]
