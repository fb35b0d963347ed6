"""Deleting raw snapshots that are no longer needed; runs where the protected store is mounted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowSkipException

from cusyn_airflow.operators.base import LedgerOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.stages.run import Workplace


class PruneSnapshotsOperator(LedgerOperator):
    """Delete the data of snapshots older than the retention rule that no charge still needs.

    Privacy: ledger only; no row is read.
    """

    def work(self, place: Workplace, context: Context) -> dict[str, str]:
        """Skip where no rule is set: nothing is deleted unless the steward says so."""
        from include.stages.retention import prune_snapshots

        days = place.settings.snapshot_days
        if days is None:
            raise AirflowSkipException("no retention rule: CUSYN_SNAPSHOT_DAYS is not set")
        gone = prune_snapshots(place, days)
        self.log.info("retention: deleted the raw data of %d snapshots.", len(gone))
        return {"deleted": str(len(gone))}
