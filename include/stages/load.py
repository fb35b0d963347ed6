"""load: the declared source becomes an immutable snapshot in the protected store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from include.stages.beforehand import require_destination
from include.stages.run import ReleaseRun, Workplace, authorise_once, earlier_charge
from include.stages.store import require_held, snapshot_store
from include.stages.task import partition_of

if TYPE_CHECKING:
    from include.connections import S3Parameters, SqlParameters


def load(
    run: ReleaseRun,
    place: Workplace,
    *,
    s3: S3Parameters | None = None,
    sql: SqlParameters | None = None,
) -> str:
    """Take a snapshot of the source, or name the one that an earlier try was charged for.

    A retry, a clear or a second run of the same period gets the charge's own snapshot, even where
    the source has changed since: a charge pays for measuring one table only.

    Args:
        run: what is released.
        place: where it is done.
        s3: how to reach the object store, for a source there.
        sql: how to reach the database, for a source there.

    Returns:
        The snapshot's random id, which says nothing about its content.

    Raises:
        NotAllowed: the actor may not ask for this requester.
        ConfigError: it would be published where readers must not look.
        SnapshotLost: the ledger knows this content by a snapshot that the store lost.
        CuSynError: the source is missing or unreadable.

    Privacy: reads raw data inside the protected store; only the id leaves it.
    """
    from include.data.loaders import read_source
    from include.data.partition import Partition

    authorise_once(run, place)
    require_destination(run.release, place.settings)
    charge = earlier_charge(run, place)
    if charge is not None and charge.snapshot_id is not None:
        return charge.snapshot_id
    chosen = run.release.partition
    part = Partition(chosen.column, chosen.value) if chosen else None
    reading = read_source(
        run.dataset,
        place.settings.project_root,
        partition_column=part.column if part else None,
        s3=s3,
        sql=sql,
    )
    store = snapshot_store(place.settings)
    snapshot = store.write(reading.chunks, part, scope=run.dataset.dataset, facts=reading.facts)
    known = place.ledger.register_snapshot(
        snapshot.snapshot_id,
        dataset=run.dataset.dataset,
        commitment=snapshot.commitment,
        mac=snapshot.mac,
        locator=f"{snapshot.path.parent.name}/{snapshot.path.name}",
        actor=run.actor,
        partition=partition_of(run),
    )
    require_held(place.settings, known)
    return known
