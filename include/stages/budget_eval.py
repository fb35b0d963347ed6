"""budget_eval: Algorithm 1 of the CuSyn paper, before any row is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from include.errors import CuSynError
from include.stages.beforehand import (
    require_budgets,
    require_delta,
    require_destination,
    require_predecessor,
)
from include.stages.declared import require_registered
from include.stages.run import ReleaseRun, Workplace, authorise_once, earlier_charge
from include.stages.task import budget_request, delta_exponent_of, synthesis_task

if TYPE_CHECKING:
    from include.budget.models import Charge


class PeriodMissing(CuSynError):
    """A run without a logical date did not say which period it releases."""


class ReservationVoid(CuSynError):
    """This run's reservation was given back before anything was measured."""


def budget_eval(run: ReleaseRun, place: Workplace, snapshot_id: str | None) -> Charge:
    """Reserve what the release will cost in every pool it draws on, or record why not.

    The planner prices each epsilon the negotiation tries: what is held is the cost of the plan
    that will really run, in each pool's own currency.

    Returns:
        The charge, reserved or denied; `replayed` where this run or this period had it already.

    Raises:
        NotAllowed: the actor may not ask for this requester.
        PeriodMissing: the run names no period.
        NotAsRegistered: the dataset's file differs from its registration.
        ConfigError: it would be published where readers must not look, replaces what is not its
            own earlier release, or a figure of budgets.yaml is not the registered one.
        ReservationVoid: the run's reservation has expired.
        CuSynError: the ledger refused to consider the request; nothing was charged.

    Source: CuSyn, Algorithms 1 and 2.

    Privacy: ledger only.
    """
    from include.synthesis import cost_of

    authorise_once(run, place)
    if not run.period:
        raise PeriodMissing(
            f"release {run.release.release}: this run has no date of its own; trigger it again "
            "with a logical date or fill in the field 'period'"
        )
    require_registered(run, place)
    require_destination(run.release, place.settings)
    require_predecessor(run.release, place.reader)
    require_delta(run, place.reader)
    earlier = earlier_charge(run, place)
    if earlier is None or earlier.state in ("denied", "void"):  # what was decided stands
        require_budgets(run, place.reader)
    prices = cost_of(synthesis_task(run), run.release.mechanism, delta_exponent_of(run))
    charge = place.ledger.reserve(budget_request(run, snapshot_id), prices)
    if charge.state == "void":
        raise ReservationVoid(
            f"charge {charge.charge_id} of this run was given back ({charge.note}); trigger a new "
            "run to ask again"
        )
    return charge
