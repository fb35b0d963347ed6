"""validate: format faults stop the run before any budget is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cusyn_airflow.operators.base import ReleaseOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.stages.run import ReleaseRun, Workplace


class ValidateOperator(ReleaseOperator):
    """Check the snapshot's format with Great Expectations.

    Passing does not prove that the values are right: bad rows are handled one by one by each
    column's declared policy, since stopping on them would reveal something about them.

    Args:
        snapshot_id: what `load` returned; templated.

    Privacy: reads raw data inside the protected store; only column and rule names leave it.
    """

    template_fields = ("request", "snapshot_id")

    def __init__(self, *, snapshot_id: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.snapshot_id = snapshot_id

    def stage(self, run: ReleaseRun, place: Workplace, context: Context) -> dict[str, str]:
        """Check the format; say how many rules were checked, never how many rows."""
        from include.stages.validate import validate

        checks = validate(run, place, self.snapshot_id)
        self.log.info(
            "validate: %s keeps its declared format (%d rules); bad rows follow each column's policy.",
            run.dataset.dataset,
            len(checks),
        )
        return {"snapshot_id": self.snapshot_id, "validation": "passed"}
