"""Raw snapshots are not kept for ever: their data go when no charge needs them any more."""

from __future__ import annotations

from include.budget.states import OPENED, RESERVED
from include.stages.run import Workplace
from include.stages.store import snapshot_store

NEEDS_ITS_SNAPSHOT = (RESERVED, OPENED)
"""States in which a charge is still to be measured, and only on its own snapshot."""


def prune_snapshots(place: Workplace, max_age_days: float) -> list[str]:
    """Delete the data of old snapshots that no charge is still to be measured on.

    The commitment and its nonce stay in the protected store, so that an audit can still open the
    commitment in the journal. A finished release needs its snapshot no more.

    Args:
        place: where it is done.
        max_age_days: age in days, from the time of writing, above which data go.

    Returns:
        Ids of the snapshots whose data were deleted.

    Privacy: ledger only (ids and ages; no row is read).
    """
    store = snapshot_store(place.settings)
    needed = {
        charge.snapshot_id
        for state in NEEDS_ITS_SNAPSHOT
        for charge in place.reader.charges(state=state)
    }
    gone = [name for name in store.expired(max_age_days) if name not in needed]
    for snapshot_id in gone:
        store.delete(snapshot_id)
    return gone
