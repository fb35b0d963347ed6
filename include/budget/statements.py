"""What a sealed charge says of its release: its table, its report, and who approved them.

Statements change no row and move no budget; they name in the journal what a file beside the ledger
could only claim. A table is stated once. Of several reports the last one counts, and an approval is
of the report it names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from include.budget import states
from include.budget.errors import DigestMismatch, InvalidRequest, NotApproved, WrongState
from include.budget.journal import Draft
from include.budget.models import Charge, require_text, same_person
from include.budget.store.transaction import Transaction

APPROVE = "approve"
REPORT = "report"

_SHA256 = re.compile(r"[0-9a-f]{64}")


def state_table(
    tx: Transaction, charge_id: str, digest: str, *, beside: Mapping[str, str]
) -> dict[str, Any]:
    """Name the one synthetic table that was made of a sealed transcript.

    Args:
        tx: The transaction, under the lock: no row changes that could tell two writers apart.
        charge_id: A sealed charge.
        digest: SHA-256 of the table's file, hex.
        beside: SHA-256, by name, of the files that were made with it.

    Returns:
        The statement's facts; repeated with the same digests, the earlier ones.

    Raises:
        WrongState: It is not sealed, or is over.
        DigestMismatch: Another table was stated.
        InvalidRequest: A digest is not SHA-256 in hex.

    Privacy: ledger only.
    """
    facts = {"digest": _sha256(digest), "beside": {n: _sha256(d) for n, d in beside.items()}}
    charge = tx.charge(charge_id)
    for body in tx.bodies(charge_id, "table"):
        return _the_same(charge_id, facts, body["facts"])
    _require_sealed(charge, "a table is stated")
    tx.append(
        Draft(
            kind="table",
            actor=charge.actor,
            words=f"Charge {charge_id}: the synthetic table made of its sealed measurements is "
            f"sha256:{digest}; no other is published.",
            charge_id=charge_id,
            facts=facts,
        )
    )
    return facts


def state_report(
    tx: Transaction, charge_id: str, digest: str, *, beside: Mapping[str, str], passed: bool
) -> dict[str, Any]:
    """Name the report of a stated table; until publishing begins a later one may replace it.

    A report also tells what the pools held when it was made, so a lost one cannot always be made
    again byte for byte: several entries are allowed, and the last one counts. That gives nobody a
    second try at the gate. The verdict depends on the sealed transcript and the stated table only,
    both of which are fixed; and should the gate itself be edited, no report passes after one that
    did not.

    Args:
        tx: The transaction, under the lock: no row changes that could tell two writers apart.
        charge_id: A sealed charge whose table is stated.
        digest: SHA-256 of report.json, hex.
        beside: SHA-256, by name, of the files that say the same.
        passed: Whether the table passed the gate.

    Returns:
        The statement's facts; nothing is appended where the last one says the same.

    Raises:
        WrongState: It is not sealed, has no table, or did not pass before.
        DigestMismatch: Publishing has begun with another report.
        InvalidRequest: A digest is not SHA-256 in hex.

    Privacy: ledger only.
    """
    facts = {
        "digest": _sha256(digest),
        "beside": {name: _sha256(other) for name, other in beside.items()},
        "passed": bool(passed),
    }
    charge, last = tx.charge(charge_id), _last_report(tx, charge_id)
    if last == facts:
        return facts
    _require_sealed(charge, "a report is stated")
    _require_may_replace(tx, charge, last, passed)
    verdict = "passed" if passed else "did not pass"
    tx.append(
        Draft(
            kind=REPORT,
            actor=charge.actor,
            words=f"Charge {charge_id}: the report of its table is sha256:{digest}; the table "
            f"{verdict} the gate.",
            charge_id=charge_id,
            facts=facts,
        )
    )
    return facts


def state_approval(
    tx: Transaction, charge_id: str, *, by: str, table: str, report: str
) -> dict[str, Any]:
    """Record who approved the publication of which table and report.

    Args:
        tx: The transaction, under the lock: no row changes that could tell two writers apart.
        charge_id: A sealed charge.
        by: The authenticated person.
        table: SHA-256 of the stated table, hex.
        report: SHA-256 of the report they were shown, hex.

    Returns:
        The statement's facts; repeated by the same person, the earlier ones.

    Raises:
        NotApproved: The approver asked for the release themselves.
        WrongState: It is not sealed, or is over.
        DigestMismatch: The table is not the stated one, or the report not the last stated one.
        InvalidRequest: A digest is not SHA-256 in hex.

    Privacy: ledger only.
    """
    facts = {"decision": APPROVE, "table": _sha256(table), "report": _sha256(report)}
    charge = tx.charge(charge_id)
    if same_person(require_text(by, name="approver"), charge.actor):
        raise NotApproved(
            f"charge {charge_id}: {by} asked for this release and cannot approve it; let another "
            "person answer after clearing this task."
        )
    _require_sealed(charge, "an approval is recorded")
    if [body["facts"]["digest"] for body in tx.bodies(charge_id, "table")] != [table]:
        raise DigestMismatch(
            f"charge {charge_id}: the journal names another table than the one to be approved; run "
            "synthesize again."
        )
    if (_last_report(tx, charge_id) or {}).get("digest") != report:
        raise DigestMismatch(
            f"charge {charge_id}: the journal names another report than the one to be approved; "
            "run quality_check again."
        )
    if any((it["actor"], it["facts"]) == (by, facts) for it in tx.bodies(charge_id, APPROVE)):
        return facts
    tx.append(
        Draft(
            kind=APPROVE,
            actor=by,
            words=f"Charge {charge_id}: {by} approved the publication of table sha256:{table} with "
            f"report sha256:{report}.",
            charge_id=charge_id,
            facts=facts,
        )
    )
    return facts


def asks_approval(parameters: Mapping[str, Any]) -> bool:
    """Tell whether a charge was asked for with an approval.

    Privacy: ledger only.
    """
    return parameters.get("approval") == "required"


def require_approval(tx: Transaction, charge: Charge) -> None:
    """Refuse to begin publishing what was asked for with an approval that nobody gave.

    An approval is of one report: after a later one it does not count.

    Raises:
        NotApproved: As said.

    Privacy: ledger only.
    """
    if not asks_approval(charge.parameters):
        return
    tx.under_lock()  # a report stated meanwhile changes no row that this step starts from
    last = (_last_report(tx, charge.charge_id) or {}).get("digest")
    approved = {body["facts"]["report"] for body in tx.bodies(charge.charge_id, APPROVE)}
    if last not in approved:
        raise NotApproved(
            f"charge {charge.charge_id}: it was asked for with an approval and none is recorded "
            "for its last report; answer the task approve first."
        )


def _last_report(tx: Transaction, charge_id: str) -> dict[str, Any] | None:
    found = tx.bodies(charge_id, REPORT)
    return dict(found[-1]["facts"]) if found else None


def _require_may_replace(
    tx: Transaction, charge: Charge, last: dict[str, Any] | None, passed: bool
) -> None:
    if charge.state == states.PUBLISHING:
        raise DigestMismatch(
            f"charge {charge.charge_id}: publishing has begun with another report; restore the "
            "work folder from its backup."
        )
    if not tx.bodies(charge.charge_id, "table"):
        raise WrongState(
            f"charge {charge.charge_id}: its table is not stated, so no report of it is; run "
            "synthesize first."
        )
    if passed and last is not None and not last["passed"]:
        raise WrongState(
            f"charge {charge.charge_id}: its table did not pass the gate before, and nothing but "
            "the gate can have changed; restore the gate in the release file."
        )


def _the_same(charge_id: str, facts: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
    if facts != earlier:
        raise DigestMismatch(
            f"charge {charge_id}: its journal names another synthetic table than the one made now; "
            "restore the work folder from its backup, since one table is published for ever."
        )
    return earlier


def _require_sealed(charge: Charge, what: str) -> None:
    if charge.state not in (states.SEALED, states.PUBLISHING):
        raise WrongState(
            f"charge {charge.charge_id} is {charge.state}: {what} of a sealed charge only."
        )


def _sha256(digest: str) -> str:
    if not _SHA256.fullmatch(digest):
        raise InvalidRequest("a digest must be SHA-256 in 64 lower-case hex digits.")
    return digest
