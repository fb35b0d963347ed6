"""The work folder held against the journal: nothing is measured or published that it disowns."""

from __future__ import annotations

import hashlib
from collections.abc import Set
from typing import TYPE_CHECKING, Any, NamedTuple

from include.budget.errors import DigestMismatch, LedgerRewound
from include.errors import CuSynError

if TYPE_CHECKING:
    from include.budget.models import Charge
    from include.stages.desk import Desk
    from include.stages.run import Workplace


class Held(NamedTuple):
    """The rounds a work folder holds, read before the journal.

    Privacy: ledger only.
    """

    written: Set[int]
    sealed: Set[int]


def require_known(
    place: Workplace, charge: Charge, held: Held, begun: Set[int], answered: Set[int]
) -> None:
    """Refuse to measure a charge whose work folder remembers more than the journal does.

    A killed task leaves the file of a round that was begun and not answered, never more.

    Args:
        place: where the release is made.
        charge: a charge that is not sealed.
        held: what its work folder held before the journal was read.
        begun, answered: numbers of its journalled rounds.

    Raises:
        LedgerRewound: the folder holds what the journal does not know; an opened charge is
            forfeited, and nothing is drawn again.

    Privacy: ledger only.
    """
    unknown = (held.written - begun) | (held.sealed - answered)
    if not unknown:
        return
    what = f"its work folder holds round {min(unknown)}, which the ledger does not know"
    if charge.state == "opened":
        place.ledger.forfeit(charge.charge_id, f"{what}: the ledger was rewound")
    raise LedgerRewound(
        f"charge {charge.charge_id}: {what}, so the ledger was restored from a backup or "
        "rewritten; nothing is drawn again. Reconcile it, and release this data under a new period"
    )


def stated_table(place: Workplace, charge_id: str) -> dict[str, Any] | None:
    """Return what the journal says of a charge's table, or None before it says anything.

    Privacy: ledger only.
    """
    entries = place.reader.entries(charge_id)
    return next((entry.facts for entry in entries if entry.kind == "table"), None)


def require_stated(place: Workplace, charge: Charge, desk: Desk) -> bytes:
    """Read the synthetic table, and check that it is the one the journal names.

    Returns:
        The file's bytes, the very ones that were compared.

    Raises:
        CuSynError: it is missing or was never stated.
        DigestMismatch: it, or a file made with it, is another one.

    Privacy: post-processing.
    """
    facts = stated_table(place, charge.charge_id)
    if facts is None or not desk.table.exists():
        raise CuSynError(
            f"charge {charge.charge_id}: its synthetic table is missing; run synthesize again, "
            "which costs nothing"
        )
    data = desk.table.read_bytes()
    if hashlib.sha256(data).hexdigest() != facts["digest"] or desk.beside() != facts["beside"]:
        raise DigestMismatch(
            f"charge {charge.charge_id}: the synthetic table in the work folder, or a file beside "
            "it, is not the one the journal names; delete it and run synthesize again, which costs "
            "nothing"
        )
    return data
