"""load: the declared source becomes an immutable snapshot in the protected store."""

from __future__ import annotations

from include.stages.run import ReleaseRun, Workplace, authorise, earlier_charge


def load(run: ReleaseRun, place: Workplace) -> str:
    """Take a snapshot of the source, or name the one that an earlier try was charged for.

    A retry, a clear or a second run of the same period gets the charge's own snapshot, even where
    the source has changed since: a charge pays for measuring one table only.

    Returns:
        The snapshot's random id, which says nothing about its content.

    Raises:
        NotAllowed: the actor may not ask for this requester.
        CuSynError: the source is missing or unreadable.

    Privacy: reads raw data inside the protected store; only the id leaves it.
    """
    from include.data.snapshot import open_store

    authorise(run)
    charge = earlier_charge(run, place)
    if charge is not None and charge.snapshot_id:
        return charge.snapshot_id
    store = open_store(place.settings)
    return store.take(run.dataset, run.release.partition).snapshot_id
