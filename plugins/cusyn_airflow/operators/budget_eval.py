"""BudgetEval: Algorithm 1 of the CuSyn paper, in one ledger transaction, before any measurement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowSkipException

from cusyn_airflow.operators.base import ReleaseOperator, loaded_snapshot

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.stages.run import ReleaseRun, Workplace


class BudgetEvalOperator(ReleaseOperator):
    """Reserve the release's cost in every pool it draws on, or learn why not.

    A refusal is a normal end: the task and all after it are skipped, and the log names the
    constraint that bound.

    Privacy: ledger only.
    """

    ui_color = "#fdf3d8"

    def stage(self, run: ReleaseRun, place: Workplace, context: Context) -> dict[str, str]:
        """Ask the ledger; a second ask with the same key gets the first answer."""
        from include.stages.budget_eval import budget_eval
        from include.stages.planning import warnings_of
        from include.stages.words import decision_words, room_left, withdrawn_words

        charge = budget_eval(run, place, loaded_snapshot(context))
        self.charge_id = charge.charge_id
        withdrawn = withdrawn_words(charge, place.reader)
        line = decision_words(charge, room_left(charge, place.reader), withdrawn)
        self.log.info("BudgetEval: %s", line)
        told = {"charge_id": charge.charge_id, "decision": line}
        if charge.state == "denied":
            context["ti"].xcom_push("return_value", told)  # a skip returns nothing
            raise AirflowSkipException(line)
        for warning in warnings_of(run, charge):
            self.log.warning("BudgetEval: %s", warning)
        return told
