"""What a stage is told: which release, for which period, asked by whom."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from include.errors import CuSynError
from include.folders import make_folder

if TYPE_CHECKING:
    from include.budget.ledger import Ledger
    from include.budget.models import Charge
    from include.budget.reader import LedgerReader
    from include.config.datasets import DatasetConfig
    from include.config.requests import BudgetsConfig, ReleaseConfig
    from include.settings import Settings

BUDGET_TASK = "budget_eval"


class NotAllowed(CuSynError):
    """The authenticated user may not ask in the name of this requester."""


class NothingPaid(CuSynError):
    """There is no budget for what is asked, so nothing may be measured or published."""


@dataclass(frozen=True)
class ReleaseRun:
    """One run of one release.

    Args:
        release, dataset, budgets: the steward's declarations, as they stand at this run.
        period: the key of the one-release-per-period rule, e.g. `1994-12-31`.
        actor: the user Airflow authenticated, or `scheduler`; never taken from the run's conf.
        scheduled: True where Airflow itself made the run from the release's schedule.
        dag_id, run_id, map_index: Airflow's names of the run, kept as text.
        attempt: this try's number, rising with every retry and clear.
        is_alive: whether Airflow still works on a run, by dag_id and run_id.
        lineage: versions and digests for the manifest.

    Privacy: ledger only.
    """

    release: ReleaseConfig
    dataset: DatasetConfig
    budgets: BudgetsConfig
    period: str
    actor: str
    scheduled: bool
    dag_id: str
    run_id: str
    map_index: int = -1
    attempt: int = 1
    is_alive: Callable[[str, str], bool] = lambda dag_id, run_id: True
    lineage: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The idempotency key: made of names that survive retries and clears."""
        return f"{self.dag_id}|{self.run_id}|{BUDGET_TASK}|{self.map_index}"


@dataclass(frozen=True)
class Workplace:
    """Where a stage works: the places on disk and the ledger.

    Privacy: ledger only.
    """

    settings: Settings
    ledger: Ledger

    @property
    def reader(self) -> LedgerReader:
        """The reading side of the same ledger."""
        from include.budget.reader import LedgerReader

        return LedgerReader(self.ledger.engine)

    def desk(self, charge_id: str) -> Path:
        """Return the folder of one charge's transcript, table and report, made if need be."""
        return make_folder(self.settings.work_dir / charge_id)


def earlier_charge(run: ReleaseRun, place: Workplace) -> Charge | None:
    """Return the charge this run, or an earlier run of the same release and period, already has.

    Privacy: ledger only.
    """
    return place.ledger.find_charge(key=run.key) or place.ledger.find_charge(
        release=run.release.release, period=run.period
    )


def paid_charge(run: ReleaseRun, place: Workplace) -> Charge:
    """Return the charge that pays for this release and period.

    Raises:
        NothingPaid: BudgetEval was not asked, or said no.

    Privacy: ledger only.
    """
    charge = earlier_charge(run, place)
    if charge is None or charge.state in ("denied", "void"):
        said = "has none" if charge is None else f"charge {charge.charge_id} is {charge.state}"
        raise NothingPaid(
            f"release {run.release.release}, period {run.period}: no budget is reserved ({said}); "
            f"run {BUDGET_TASK} first"
        )
    return charge


def authorise_once(run: ReleaseRun, place: Workplace) -> None:
    """Refuse as `authorise` does, unless this very run has its charge: then it asks for nothing.

    Whoever clears a run is not named to its tasks, and a backfill runs a scheduled one again as
    nobody's.

    Raises:
        NotAllowed: naming the actor, the requester and the line to add.

    Privacy: ledger only.
    """
    if place.ledger.find_charge(key=run.key) is None:
        authorise(run)


def authorise(run: ReleaseRun) -> None:
    """Refuse an actor whom the steward has not allowed to ask for this requester.

    A scheduled run needs no entry: its release file names the requester, and whoever may write
    that file is a steward. Everyone else is denied by default.

    Raises:
        NotAllowed: naming the actor, the requester and the line to add.

    Privacy: ledger only.
    """
    requester = run.release.requester
    if run.scheduled or run.budgets.may_act_for(run.actor, requester):
        return
    raise NotAllowed(
        f"Airflow user {run.actor!r} may not request releases for {requester!r}; a steward can "
        f"allow it in budgets.yaml under airflow_users: {{{run.actor}: [{requester}]}}"
    )
