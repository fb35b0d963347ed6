"""publish: the package, its manifest last, and the ledger's last entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import Asset

from cusyn_airflow.operators.base import ReleaseOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.stages.run import ReleaseRun, Workplace


class PublishOperator(ReleaseOperator):
    """Write the release package where its readers look, and tell the ledger.

    It asks the ledger whether the charge is sealed, not Airflow for the colour of the task before
    it. The asset event carries the release id: after a clear Airflow emits a second event for the
    same release, and whoever listens recognises it by that id.

    Privacy: post-processing.
    """

    ui_color = "#e3e9f7"

    def stage(self, run: ReleaseRun, place: Workplace, context: Context) -> dict[str, str]:
        """Publish, or return the release that this charge already has."""
        from cusyn_airflow.hooks.sources import s3_parameters
        from include.stages.publish import publish

        published = publish(run, place, s3=s3_parameters(run.release.publish.conn_id))
        self.charge_id = published.charge_id
        facts = {"release_id": published.release_id, "uri": published.uri}
        for asset in self.outlets:
            if isinstance(asset, Asset):
                context["outlet_events"][asset].extra = facts
        self.log.info("publish: %s", published.words)
        return facts
