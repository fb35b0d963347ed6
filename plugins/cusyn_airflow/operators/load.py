"""load: the declared source becomes a snapshot in the protected store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowSkipException

from cusyn_airflow.operators.base import ReleaseOperator
from cusyn_airflow.requests import is_dry_run

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.stages.run import ReleaseRun, Workplace


class LoadOperator(ReleaseOperator):
    """Take an immutable snapshot of the declared source.

    Privacy: reads raw data inside the protected store; only a random id goes into XCom.
    """

    def stage(self, run: ReleaseRun, place: Workplace, context: Context) -> dict[str, str]:
        """Take the snapshot, or name the one an earlier try was charged for."""
        if is_dry_run(self.request):
            self._rehearse(run, place)
        from cusyn_airflow.hooks.sources import s3_parameters, sql_parameters
        from include.stages.load import load

        source = run.dataset.source
        is_file = source.path is not None
        snapshot_id = load(
            run,
            place,
            s3=s3_parameters(source.conn_id) if is_file else None,
            sql=None if is_file else sql_parameters(source.conn_id),
        )
        self.log.info(
            "load: %s for period %s, asked by %s for %s, lies in the protected store as %s.",
            run.dataset.dataset,
            run.period,
            run.actor,
            run.release.requester,
            snapshot_id,
        )
        return {"snapshot_id": snapshot_id}

    def _rehearse(self, run: ReleaseRun, place: Workplace) -> None:
        """Say what the request would cost and how exact it would be, and end the run there."""
        from include.stages.planning import dry_run
        from include.stages.run import authorise

        authorise(run)
        for line in dry_run(run, place.reader.pools()).lines:
            self.log.info("dry run: %s", line)
        raise AirflowSkipException("a dry run: nothing was read and nothing was spent.")
