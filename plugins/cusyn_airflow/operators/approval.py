"""approve: a second person looks at the report before anything is published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowFailException

from cusyn_airflow.hooks.ledger import DEFAULT_CONN_ID, PrivacyLedgerHook
from cusyn_airflow.links import ChargeLink
from cusyn_airflow.requests import release_run
from include.settings import load_settings

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.stages.run import ReleaseRun, Workplace


class ReleaseApprovalOperator(ApprovalOperator):
    """Wait until somebody other than the requester approves or rejects the release.

    A rejection withholds the charge in the ledger; what was spent stays spent. A release that is
    already published is not asked about again.

    Args:
        request: as for `ReleaseOperator`; templated.
        ledger_conn_id: Airflow connection of the privacy ledger.

    Privacy: post-processing.
    """

    template_fields = ("request", "subject", "body")
    operator_extra_links = (ChargeLink(),)

    def __init__(
        self, *, request: dict[str, Any], ledger_conn_id: str = DEFAULT_CONN_ID, **kwargs: Any
    ) -> None:
        super().__init__(
            subject=f"Publish {request.get('file', 'this release')}, period {request['period']}?",
            body="The budget is spent either way. Approving makes the package visible to its "
            "readers; rejecting withholds it for good.",
            **kwargs,
        )
        self.request = request
        self.ledger_conn_id = ledger_conn_id
        self.charge_id: str | None = None

    def execute(self, context: Context) -> Any:
        """Ask, unless the release is visible already."""
        from include.stages.approval import is_decided

        run, place = self._at_work(context)
        if is_decided(run, place):
            self.log.info("approve: this release was decided on before; nobody is asked again.")
            return None
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Record who decided what; the requester may not approve their own release."""
        from include.errors import CuSynError
        from include.stages.approval import approve, reject

        answer = super().execute_complete(context, event)
        run, place = self._at_work(context)
        by = str((event.get("responded_by_user") or {}).get("name") or "unknown")
        decide = approve if self.APPROVE in answer["chosen_options"] else reject
        try:
            words = decide(run, place, by)
        except CuSynError as error:
            fault = str(error)
        else:
            self.log.info("approve: %s", words)
            return answer
        raise AirflowFailException(fault)

    def _at_work(self, context: Context) -> tuple[ReleaseRun, Workplace]:
        from include.stages.run import Workplace

        ledger = PrivacyLedgerHook(self.ledger_conn_id).get_ledger()
        return release_run(self.request, context), Workplace(load_settings(), ledger)
