"""What happens to a charge apart from measuring: void, expire, withhold, publish, withdraw."""

from __future__ import annotations

from typing import Any

from include.budget import statements, states
from include.budget.errors import DigestMismatch, StaleFence, UnknownName
from include.budget.journal import AVAILABLE, HELD, Change, Draft, move
from include.budget.models import LONGEST_REASON, Charge, require_text
from include.budget.store.transaction import Transaction
from include.budget.words import amounts_in_words


def void(
    tx: Transaction, charge_id: str, reason: str, *, kind: str = "void", actor: str | None = None
) -> Charge:
    """Give back a reservation nobody opened: nothing was measured.

    Args:
        tx: The transaction.
        charge_id: A reserved charge.
        reason: Why.
        kind: "void", or "expire" when time did it.
        actor: Who does it; the charge's actor by default.

    Returns:
        The charge; repeated, the earlier answer.

    Raises:
        WrongState: It is not reserved.

    Privacy: ledger only.
    """
    require_text(reason, name="reason", longest=LONGEST_REASON)
    charge, pools = tx.charge_with_pools(charge_id)
    if charge.state == states.VOID:
        return charge.become(replayed=True)
    states.require(kind, charge_id, charge.state)
    tx.append(
        Draft(
            kind=kind,
            actor=require_text(actor or charge.actor, name="actor"),
            words=f"Charge {charge_id} voided before anything was measured: {reason}; returned "
            f"{amounts_in_words(charge.amounts_pico, pools)}.",
            charge_id=charge_id,
            changes=[_step(charge, {"state": states.VOID, "note": reason})],
            postings=move(charge.amounts_pico, HELD, AVAILABLE),
        )
    )
    return charge.become(state=states.VOID, note=reason)


def withhold(tx: Transaction, charge_id: str, reason: str, *, actor: str | None = None) -> Charge:
    """Keep a sealed release from ever being published; what was spent stays spent.

    Args:
        tx: The transaction.
        charge_id: A sealed charge.
        reason: What the gate or the steward said.
        actor: Who withholds it; the charge's actor by default.

    Returns:
        The charge; repeated, the earlier answer.

    Raises:
        WrongState: It is not sealed, or publishing has begun.

    Privacy: ledger only.
    """
    require_text(reason, name="reason", longest=LONGEST_REASON)
    charge = tx.charge(charge_id)
    if charge.state == states.WITHHELD:
        return charge.become(replayed=True)
    states.require("withhold", charge_id, charge.state)
    tx.append(
        Draft(
            kind="withhold",
            actor=require_text(actor or charge.actor, name="actor"),
            words=f"Charge {charge_id} withheld from publication: {reason}; what was spent stays "
            "spent.",
            charge_id=charge_id,
            changes=[_step(charge, {"state": states.WITHHELD, "note": reason})],
        )
    )
    return charge.become(state=states.WITHHELD, note=reason)


def begin_publishing(tx: Transaction, charge_id: str, *, fence: int | None = None) -> Charge:
    """Pass the point after which a manifest may be visible, so withholding is over.

    Args:
        tx: The transaction.
        charge_id: A sealed charge.
        fence: The fence under which it was sealed, when the caller knows it.

    Returns:
        The charge; repeated, the earlier answer.

    Raises:
        WrongState: It is not sealed.
        StaleFence: The caller's fence is older.
        NotApproved: It was asked for with an approval, and none is recorded.

    Privacy: ledger only.
    """
    charge = tx.charge(charge_id)
    _require_fence(charge, fence)
    if charge.state in (states.PUBLISHING, states.PUBLISHED):
        return charge.become(replayed=True)
    states.require("begin_publishing", charge_id, charge.state)
    statements.require_approval(tx, charge)
    tx.append(
        Draft(
            kind="begin_publishing",
            actor=charge.actor,
            words=f"Charge {charge_id} begins publishing: from now on it cannot be withheld.",
            charge_id=charge_id,
            changes=[_step(charge, {"state": states.PUBLISHING})],
        )
    )
    return charge.become(state=states.PUBLISHING)


def publish(
    tx: Transaction,
    charge_id: str,
    *,
    manifest_digest: str,
    uri: str,
    release_id: str | None = None,
    fence: int | None = None,
) -> Charge:
    """Record that the package is visible under its manifest.

    Args:
        tx: The transaction.
        charge_id: A charge in publishing.
        manifest_digest: SHA-256 of the manifest, hex.
        uri: Where the package lies.
        release_id: Its id; by default release, period and the first 12 digits of the digest.
        fence: The fence under which it was sealed, when the caller knows it.

    Returns:
        The published charge; repeated with the same digest, the earlier answer.

    Raises:
        WrongState: Publishing was not begun.
        StaleFence: The caller's fence is older.
        DigestMismatch: It was published with another manifest.

    Privacy: ledger only.
    """
    charge = tx.charge(charge_id)
    _require_fence(charge, fence)
    require_text(manifest_digest, name="manifest digest")
    require_text(uri, name="uri", longest=2000)
    if charge.state == states.PUBLISHED:
        if charge.manifest_digest != manifest_digest:
            raise DigestMismatch(
                f"charge {charge_id} is published with another manifest: a release is immutable; "
                "withdraw it and pay for a new one."
            )
        return charge.become(replayed=True)
    states.require("publish", charge_id, charge.state)
    name = release_id or f"{charge.release}-{charge.period}-{manifest_digest[:12]}"
    published: dict[str, Any] = {
        "manifest_digest": manifest_digest,
        "release_id": name,
        "uri": uri,
    }
    row = {
        "charge_id": charge_id,
        "manifest_digest": manifest_digest,
        "uri": uri,
        "published_at": tx.at,
        "withdrawn_at": None,
        "withdrawn_reason": None,
    }
    tx.append(
        Draft(
            kind="publish",
            actor=charge.actor,
            words=f"Charge {charge_id} published as release {name}.",
            charge_id=charge_id,
            changes=[
                _step(charge, {"state": states.PUBLISHED, **published}),
                Change("release", name, row),
            ],
        )
    )
    return charge.become(state=states.PUBLISHED, **published)


def withdraw(tx: Transaction, release_id: str, reason: str, actor: str) -> Charge:
    """Mark a published release as withdrawn; what was learnt cannot be taken back.

    Args:
        tx: The transaction.
        release_id: A published release.
        reason: Why; recipients read it.
        actor: Who withdraws it.

    Returns:
        Its charge; repeated, the earlier answer.

    Raises:
        UnknownName: No release has that id.

    Privacy: ledger only.
    """
    require_text(reason, name="reason", longest=LONGEST_REASON)
    found = tx.row("release", release_id)
    if found is None:
        raise UnknownName(f"release {release_id} is not in the ledger: check its id.")
    charge = tx.charge(str(found["charge_id"]))
    if found["withdrawn_at"] is not None:
        return charge.become(replayed=True)
    tx.append(
        Draft(
            kind="withdraw",
            actor=require_text(actor, name="actor"),
            words=f"Release {release_id} withdrawn by {actor}: {reason}; what was spent stays so.",
            charge_id=charge.charge_id,
            changes=[
                Change(
                    "release",
                    release_id,
                    {"withdrawn_at": tx.at, "withdrawn_reason": reason},
                    was={"withdrawn_at": None},
                )
            ],
        )
    )
    return charge


def _require_fence(charge: Charge, fence: int | None) -> None:
    if fence is not None and fence != charge.fence:
        raise StaleFence(
            f"charge {charge.charge_id} is under fence {charge.fence}, not {fence}: a later "
            "attempt has replaced this one."
        )


def _step(charge: Charge, values: dict[str, object]) -> Change:
    return Change(
        "charge", charge.charge_id, values, was={"state": charge.state, "fence": charge.fence}
    )
