"""The work folder held against the journal: nothing is measured or published that it disowns."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Set
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


def stated_report(place: Workplace, charge_id: str) -> dict[str, Any] | None:
    """Return what the journal last says of a charge's report, or None before it says anything.

    Privacy: ledger only.
    """
    entries = place.reader.entries(charge_id)
    return next((entry.facts for entry in reversed(entries) if entry.kind == "report"), None)


def require_stated(place: Workplace, charge: Charge, desk: Desk) -> dict[str, bytes]:
    """Read the synthetic table, and check that it is the one the journal names.

    Returns:
        What it and the files beside it hold, by name: the very bytes that were compared.

    Raises:
        CuSynError: it is missing or was never stated.
        DigestMismatch: it, or a file made with it, is another one.

    Privacy: post-processing.
    """
    facts, found = stated_table(place, charge.charge_id), desk.made()
    if facts is None or desk.table.name not in found:
        raise CuSynError(
            f"charge {charge.charge_id}: its synthetic table is missing; run synthesize again, "
            "which costs nothing"
        )
    if _digests(found) != {desk.table.name: facts["digest"], **facts["beside"]}:
        raise DigestMismatch(
            f"charge {charge.charge_id}: the synthetic table in the work folder, or a file beside "
            "it, is not the one the journal names; delete it and run synthesize again, which costs "
            "nothing"
        )
    return found


def report_as_stated(
    place: Workplace, charge: Charge, desk: Desk
) -> tuple[dict[str, Any], Mapping[str, bytes]] | None:
    """Read the report's files where they are the ones the journal names last.

    Returns:
        The statement's facts, and the very bytes that were compared, by file name; None where a
        file is missing or another one, or no report was ever stated.

    Privacy: post-processing.
    """
    facts, found = stated_report(place, charge.charge_id), desk.report()
    named = {} if facts is None else {desk.report_json.name: facts["digest"], **facts["beside"]}
    return None if facts is None or _digests(found) != named else (facts, found)


def require_report(
    place: Workplace, charge: Charge, desk: Desk
) -> tuple[dict[str, Any], Mapping[str, bytes]]:
    """Read the report's files, and check that they are the ones the journal names last.

    Returns:
        As `report_as_stated`.

    Raises:
        CuSynError: no report was ever stated.
        DigestMismatch: a file is missing or another one.

    Privacy: post-processing.
    """
    found = report_as_stated(place, charge, desk)
    if found is not None:
        return found
    if stated_report(place, charge.charge_id) is None:
        raise CuSynError(
            f"charge {charge.charge_id}: the journal names no report of it; run quality_check "
            "first, which costs nothing"
        )
    raise DigestMismatch(
        f"charge {charge.charge_id}: the report in the work folder is missing or not the one the "
        "journal names last; run quality_check again, which costs nothing"
    )


def _digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
