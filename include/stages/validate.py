"""validate: format faults stop a run before any budget is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from include.stages.run import ReleaseRun, Workplace
from include.stages.store import snapshot_store
from include.stages.task import schema_of

if TYPE_CHECKING:
    from include.data.validation import CheckResult


def validate(run: ReleaseRun, place: Workplace, snapshot_id: str) -> list[CheckResult]:
    """Check that a snapshot has the declared columns, types and id.

    Only the form decides. Rows that break a rule are handled one by one when they are encoded,
    since a run that stops on them would tell something about them; a dataset declared `strict`
    stops all the same and says so in its manifests.

    Returns:
        One boolean result a column and rule, all passed.

    Raises:
        FormatError, RowFaultError: naming column and rule.

    Privacy: reads raw data inside the protected store; names of columns and rules leave it.
    """
    from include.data.validation import validate_format

    snapshot = snapshot_store(place.settings).open(snapshot_id)
    return validate_format(snapshot, schema_of(run), run.dataset)
