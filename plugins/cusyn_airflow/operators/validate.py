"""validate: format faults stop the run before any budget is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cusyn_airflow.operators.base import ReleaseOperator, loaded_snapshot

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.stages.run import ReleaseRun, Workplace


class ValidateOperator(ReleaseOperator):
    """Check the snapshot's format with Great Expectations.

    Passing does not prove that the values are right: bad rows are handled one by one by each
    column's declared policy, since stopping on them would reveal something about them.

    Privacy: reads raw data inside the protected store; only column and rule names leave it.
    """

    def stage(self, run: ReleaseRun, place: Workplace, context: Context) -> dict[str, str]:
        """Check the format; say how many rules were checked, never how many rows."""
        from include.stages.validate import validate

        snapshot_id = loaded_snapshot(context)
        checks = validate(run, place, snapshot_id)
        self.log.info(
            "validate: %s has its declared form (%d rules); bad rows follow their column's policy.",
            run.dataset.dataset,
            len(checks),
        )
        return {"snapshot_id": snapshot_id, "validation": "passed"}
