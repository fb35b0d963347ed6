"""synthesize: the only stage whose output depends on rows, and it spends first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cusyn_airflow.operators.base import ReleaseOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.stages.run import ReleaseRun, Workplace


class SynthesizeOperator(ReleaseOperator):
    """Open the charge, measure, seal the transcript; then fit and sample.

    A retry continues from the last complete round under a new fence, or, where the transcript
    cannot be read, forfeits the charge and fails for good.

    Privacy: reads raw data through the spending primitives only; leaves noisy measurements.
    """

    ui_color = "#e3f1e5"

    def stage(self, run: ReleaseRun, place: Workplace, context: Context) -> dict[str, str]:
        """Measure what has been paid for, or read the sealed transcript again."""
        from include.stages.synthesize import synthesize

        made = synthesize(run, place)
        self.charge_id = made.charge_id
        self.log.info("synthesize: %s", made.words)
        return {"charge_id": made.charge_id, "transcript": made.transcript_digest}
