"""validate: format faults stop a run before any budget is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from include.stages.run import ReleaseRun, Workplace, earlier_charge
from include.stages.store import require_snapshot, snapshot_store
from include.stages.task import schema_of

if TYPE_CHECKING:
    from include.data.validation import CheckResult


def validate(run: ReleaseRun, place: Workplace, snapshot_id: str) -> list[CheckResult]:
    """Check that a snapshot has the declared columns, types and id.

    Only the form decides. Rows that break a rule are handled one by one when they are encoded,
    since a run that stops on them would tell something about them; a dataset declared `strict`
    stops all the same and says so in its manifests.

    A finished charge was validated before it was paid for; once its raw data are deleted there is
    nothing left to look at.

    Returns:
        One boolean result a column and rule, all passed; none for a finished charge whose raw data
        are deleted.

    Raises:
        FormatError, RowFaultError: naming column and rule.
        SnapshotLost: a charge pays for this snapshot and it cannot be opened.

    Privacy: reads raw data inside the protected store; names of columns and rules leave it.
    """
    from include.data.validation import validate_format

    store = snapshot_store(place.settings)
    charge = earlier_charge(run, place)
    measured = charge is not None and charge.transcript_digest is not None
    if measured and store.is_deleted(snapshot_id):
        return []
    if charge is not None and charge.snapshot_id == snapshot_id:
        snapshot = require_snapshot(place.settings, charge)
    else:
        snapshot = store.open(snapshot_id)
    return validate_format(snapshot, schema_of(run), run.dataset)
