"""approve: a second person looks at the report before anything is published."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from cusyn_airflow.hooks.ledger import DEFAULT_CONN_ID, PrivacyLedgerHook
from cusyn_airflow.links import ChargeLink
from cusyn_airflow.requests import release_run
from include.errors import CuSynError
from include.settings import load_settings

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.stages.run import ReleaseRun, Workplace

T = TypeVar("T")


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

        if self._with_ledger(context, is_decided):
            self.log.info("approve: this release was decided on before; nobody is asked again.")
            return None
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Record who decided what; the requester may not approve their own release."""
        from include.stages.approval import approve, reject

        if chosen := event.get("chosen_options"):
            by = str((event.get("responded_by_user") or {}).get("name") or "unknown")
            decide = approve if self.APPROVE in chosen else reject
            words = self._with_ledger(context, lambda run, place: decide(run, place, by))
            self.log.info("approve: %s", words)
        # Last: after a rejection it skips what follows by raising.
        return super().execute_complete(context, event)

    def _with_ledger(self, context: Context, step: Callable[[ReleaseRun, Workplace], T]) -> T:
        """Do a step with the ledger; what goes wrong is told in one sentence."""
        from include.stages.run import Workplace

        try:
            ledger = PrivacyLedgerHook(self.ledger_conn_id).get_ledger()
            return step(release_run(self.request, context), Workplace(load_settings(), ledger))
        except CuSynError as error:
            fault = (AirflowException if error.retry_helps else AirflowFailException)(str(error))
        raise fault
