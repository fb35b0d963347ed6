"""The nightly look after the ledger: expire what nobody opened, verify, sign a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowFailException

from cusyn_airflow.operators.base import LedgerOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.stages.run import Workplace


class ExpireReservationsOperator(LedgerOperator):
    """Void the reservations whose time is over and give their budget back.

    Privacy: ledger only.
    """

    def work(self, place: Workplace, context: Context) -> dict[str, str]:
        """Expire through the same compare-and-set as any other step."""
        voided = place.ledger.expire()
        self.log.info("ledger: %d reservations expired; their budget is free again.", len(voided))
        return {"expired": str(len(voided))}


class VerifyLedgerOperator(LedgerOperator):
    """Replay the journal and compare it with every balance, state and exported checkpoint.

    Passing proves that the ledger agrees with itself and with what was exported; it does not prove
    that no release was made outside it.

    Privacy: ledger only.
    """

    def work(self, place: Workplace, context: Context) -> dict[str, str]:
        """Fail for good where anything is wrong: a retry finds the same."""
        from include.stages.ledger import verify_ledger

        report = verify_ledger(place)
        if not report.ok:
            found = "; ".join(map(str, report.problems[:3]))
            raise AirflowFailException(
                f"the ledger does not verify: {found}; freeze it and follow docs/operations.md"
            )
        self.log.info(
            "ledger: %d entries and %d releases verify against %d anchors; the head is %d %s.",
            report.entries,
            report.releases,
            report.anchors,
            report.head_seq,
            report.head_hash,
        )
        return {"entries": str(report.entries), "head": report.head_hash}


class CheckpointOperator(LedgerOperator):
    """Sign where the ledger stands and export the statement beside the releases.

    Privacy: ledger only.
    """

    def work(self, place: Workplace, context: Context) -> dict[str, str]:
        """Sign with the key outside the database."""
        from include.stages.ledger import witness

        name = witness(place)
        self.log.info("ledger: signed checkpoint %s is exported.", name)
        return {"checkpoint": name}
