"""The dry run of a release: its exact price in each pool it would charge. Spends nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.accounting import Accounting, Cost, cost_in_currency, format_amount
from include.settings import Settings
from include.stages.beforehand import require_destination
from include.stages.rehearsal import expected_workload_error
from include.stages.run import ReleaseRun
from include.stages.task import delta_exponent_of, synthesis_task

if TYPE_CHECKING:
    from include.budget.models import Charge
    from include.budget.reader import Pool
    from include.synthesis.plan import Plan


@dataclass(frozen=True)
class PoolPrice:
    """What one pool would be charged.

    Args:
        pool: its id.
        currency: rho or epsilon.
        cost: decimal text, to the last digit of what will be debited.
        fits: whether the pool has that much left.
        releases_left: how many such releases it still holds.

    Privacy: ledger only.
    """

    pool: str
    currency: str
    cost: str
    fits: bool
    releases_left: int


@dataclass(frozen=True)
class DryRun:
    """A release as it would be planned and priced now.

    Privacy: ledger only.
    """

    run: ReleaseRun
    plan: Plan
    prices: tuple[PoolPrice, ...]
    workload_error: float | None = None

    @property
    def lines(self) -> list[str]:
        """The same in plain sentences, for a log."""
        told = [
            f"{one.pool} would be charged {one.currency} {one.cost}: "
            + (f"it fits, {one.releases_left} times" if one.fits else "it does NOT fit")
            for one in self.prices
        ]
        told += [
            f"{' x '.join(query.clique)}: expected error {query.expected_tv:.1%}, usable from "
            f"epsilon {query.usable_epsilon}"
            for query in self.plan.predictions
            if query.expected_tv is not None
        ]
        if self.workload_error is not None:
            told.append(
                f"in a rehearsal on made-up rows the workload erred {self.workload_error:.1%}"
            )
        return told + list(self.plan.warnings)

    def to_dict(self) -> dict[str, Any]:
        """Describe the dry run in JSON types."""
        return {
            "plan": self.plan.to_dict(),
            "costs": [asdict(price) for price in self.prices],
            "warnings": list(self.plan.warnings),
            "expected_workload_error": self.workload_error,
        }


def run_of_file(path: Path, settings: Settings) -> ReleaseRun:
    """Return a release file as a run that was never started.

    Raises:
        ConfigError: the file is broken, another one declares the same release, or it would be
            published where readers must not look.

    Privacy: ledger only.
    """
    from include.config.loader import file_label, load_checked, require_one_file

    checked = load_checked(path, settings.config_dir)
    require_one_file(path, checked.release, settings.config_dir)
    require_destination(checked.release, settings, file_label(path))
    return ReleaseRun(
        release=checked.release,
        dataset=checked.dataset,
        budgets=checked.budgets,
        period="",
        actor="",
        scheduled=False,
        dag_id="",
        run_id="",
    )


def dry_run(run: ReleaseRun, pools: list[Pool]) -> DryRun:
    """Plan a release at the epsilon it asks for, and price it in the pools it would charge.

    Args:
        run: the release.
        pools: the ledger's pools; none where there is no ledger yet.

    Raises:
        CuSynError: no plan exists within its epsilon and memory bound.

    Privacy: ledger only.
    """
    from include.synthesis import synthesizer

    delta = delta_exponent_of(run)
    mechanism = synthesizer(run.release.mechanism)
    planned = mechanism.plan(synthesis_task(run), run.release.epsilon_pico, delta)
    mine = [pool for pool in pools if charges_pool(pool, run)]
    prices = tuple(_price(pool, planned.cost, delta) for pool in mine)
    return DryRun(run, planned, prices, expected_workload_error(planned))


def warnings_of(run: ReleaseRun, charge: Charge) -> tuple[str, ...]:
    """Return what the plan of a fresh reservation warns of, before anything is spent.

    Privacy: ledger only.
    """
    from include.synthesis import synthesizer

    if charge.state != "reserved":
        return ()
    mechanism = synthesizer(charge.mechanism)
    task, delta = synthesis_task(run), delta_exponent_of(run)
    return mechanism.plan(task, charge.granted_pico, delta).warnings


def charges_pool(pool: Pool, run: ReleaseRun) -> bool:
    """Tell whether a release would charge a pool.

    Privacy: ledger only.
    """
    if pool.status == "retired":
        return False
    if pool.kind == "dataset":
        return pool.owner in run.dataset.populations
    return pool.owner == run.release.requester and pool.dataset == run.dataset.dataset


def price_in(pool: Pool, cost: Cost, delta_exponent: int) -> int:
    """Return a cost in a pool's currency, in units of 1e-12.

    Privacy: ledger only.
    """
    accounting: Accounting = "zcdp" if pool.accounting == "zcdp" else "epsilon"
    return cost_in_currency(cost, accounting, delta_exponent)


def _price(pool: Pool, cost: Cost, delta_exponent: int) -> PoolPrice:
    amount = price_in(pool, cost, delta_exponent)
    return PoolPrice(
        pool=pool.pool_id,
        currency="rho" if pool.accounting == "zcdp" else "epsilon",
        cost=format_amount(amount),
        fits=amount <= pool.remaining_pico,
        releases_left=pool.remaining_pico // amount,
    )
