"""What was asked is what is made, judged and stated: the files must still agree after the seal.

Nothing is measured after the seal, but the table is decoded by the declared columns and the
privacy claim states the declared unit. A file that says otherwise by then would relabel cells, or
claim for a household what was made for a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from include.errors import CuSynError
from include.stages.declared import require_units

if TYPE_CHECKING:
    from include.budget.models import Charge
    from include.stages.run import ReleaseRun, Workplace


class DeclarationChanged(CuSynError):
    """A file says something else now than when its budget was asked for."""


def require_as_asked(run: ReleaseRun, place: Workplace, charge: Charge) -> None:
    """Refuse files whose table or claim would not be the one that was asked and paid for.

    The charge stays as it is: once the file is restored, the same call goes on. What the sealed
    plan holds by itself (amounts, mechanism, queries, options) may change for later periods.

    Raises:
        DeclarationChanged: naming the file, its key and the charge.
        NotAsRegistered: the dataset's unit is not its population's.

    Privacy: ledger only.
    """
    changed = _changed(run, charge)
    if changed is not None:
        raise DeclarationChanged(
            f"{changed} changed since charge {charge.charge_id} was decided: restore it, or ask "
            "under a new period"
        )
    require_units(run.dataset, place.reader.units())


def _changed(run: ReleaseRun, charge: Charge) -> str | None:
    """Name the first key that no longer says what was asked, with its file."""
    from include.budget.models import canonical_json
    from include.stages.task import stated_parameters

    release = f"release {charge.release}"
    asked, now = charge.parameters, stated_parameters(run)
    if run.dataset.dataset != charge.dataset:
        return f"{release}: dataset in its file"
    if run.release.requester != charge.requester:
        return f"{release}: requester in its file"
    differ = [
        # A charge of an earlier version may lack a key; it cannot be held against it.
        key
        for key in now
        if key in asked and canonical_json(asked[key]) != canonical_json(now[key])
    ]
    where = {
        "unit": f"dataset {charge.dataset}: {_of_unit(asked.get('unit', {}), now['unit'])}",
        "what": f"dataset {charge.dataset}: privacy_unit.what in its file",
        "strict": f"dataset {charge.dataset}: strict in its file",
        "schema": f"dataset {charge.dataset}: columns in its file or in that of {release}",
        "rows": f"{release}: rows in its file",
        "partition": f"{release}: partition in its file",
    }
    return next((told for key, told in where.items() if key in differ), None)


def _of_unit(asked: dict[str, list[object]], now: dict[str, list[object]]) -> str:
    """Name the key by which populations, or how their units are found, differ."""
    if asked.keys() != now.keys():
        return "populations in its file"
    same_ids = all(asked[name][0] == now[name][0] for name in now)
    return f"{'max_rows' if same_ids else 'id_column'} in its file"
