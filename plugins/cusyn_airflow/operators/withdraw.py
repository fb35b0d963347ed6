"""withdraw: tell the ledger and the readers that a release should not be used any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cusyn_airflow.operators.base import LedgerOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.stages.run import Workplace


class WithdrawReleaseOperator(LedgerOperator):
    """Withdraw the release that the form names, through the connection it was published with.

    Whoever triggers it must be allowed, under `airflow_users`, to ask in the name of the release's
    requester. It may be repeated: the first reason stays, and a notice that is missing is put where
    readers look.

    Privacy: ledger only.
    """

    def work(self, place: Workplace, context: Context) -> dict[str, str]:
        """Check who asks, then withdraw in the ledger and beside the files."""
        from cusyn_airflow.hooks.sources import s3_parameters
        from cusyn_airflow.requests import acting_user
        from include.stages.withdraw import require_withdrawer, store_connection, withdraw

        actor = acting_user(context)
        release_id = str(context["params"]["release_id"]).strip()
        require_withdrawer(place, release_id, actor)
        s3 = s3_parameters(store_connection(place, release_id))
        words = withdraw(place, release_id, str(context["params"]["reason"]).strip(), actor, s3=s3)
        self.log.info("withdraw: %s", words)
        return {"release_id": release_id}
