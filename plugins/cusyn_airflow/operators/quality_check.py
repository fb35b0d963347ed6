"""quality-check: judges the synthetic table and the noisy measurements, never the raw data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cusyn_airflow.operators.base import ReleaseOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.stages.run import ReleaseRun, Workplace


class QualityCheckOperator(ReleaseOperator):
    """Check the synthetic table, write the report, and hold back what fails the declared gate.

    Privacy: post-processing.
    """

    def stage(self, run: ReleaseRun, place: Workplace, context: Context) -> dict[str, str]:
        """Check and report; a failed gate withholds the release and stays spent."""
        from include.stages.quality_check import quality_check

        verdict = quality_check(run, place)
        self.charge_id = verdict.charge_id
        self.log.info("quality-check: %s", verdict.words)
        return {"charge_id": verdict.charge_id, "verdict": "passed"}
