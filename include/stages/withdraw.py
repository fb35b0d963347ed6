"""withdraw: the ledger first, then the notice where the release's readers look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from include.errors import CuSynError

if TYPE_CHECKING:
    from pathlib import Path

    from include.budget.reader import Release
    from include.connections import S3Parameters
    from include.stages.run import Workplace


class ReadersNotTold(CuSynError):
    """The release is withdrawn in the ledger, but the notice is not where its readers look."""

    def __init__(self, sentence: str, *, retry_helps: bool) -> None:
        super().__init__(sentence)
        self.retry_helps = retry_helps


class MayNotWithdraw(CuSynError):
    """The authenticated user may not act for the requester of this release."""


def withdraw(
    place: Workplace, release_id: str, reason: str, actor: str, *, s3: S3Parameters | None = None
) -> str:
    """Withdraw a published release; repeated, put the first notice where it may be missing.

    Args:
        place: the ledger and the places on disk.
        release_id: a published release.
        reason: one sentence for its readers; the first one stays.
        actor: who withdraws it.
        s3: how to reach the store of an s3:// address; without, the environment's AWS settings.

    Returns:
        What was done, in one sentence.

    Raises:
        CuSynError: the ledger knows no such release, or refused.
        ReadersNotTold: the ledger has it, the destination refused; the call may be repeated.

    Privacy: ledger only.
    """
    earlier = place.ledger.withdraw(release_id, reason, actor).replayed
    found = place.reader.release(release_id)
    try:
        base = _tell_readers(found, place.settings.project_root, s3)
    except CuSynError as fault:
        problem = ReadersNotTold(
            f"{release_id} is withdrawn in the ledger, but its readers are not told yet: "
            f"{str(fault).rstrip('.')}; then withdraw it again{_other_way(found)}",
            retry_helps=fault.retry_helps,
        )
    else:
        told = f"was already withdrawn ({found.withdrawn_reason})" if earlier else "is withdrawn"
        return f"{release_id} {told}; readers see the notice at {base}"
    raise problem


def require_withdrawer(place: Workplace, release_id: str, actor: str) -> None:
    """Refuse an Airflow user who may not act for the requester of a release.

    Raises:
        MayNotWithdraw: naming the user, the requester and the line to add.
        CuSynError: the ledger knows no such release.

    Privacy: ledger only.
    """
    from include.config.loader import load_budgets

    requester = place.reader.release(release_id).requester
    if not load_budgets(place.settings.config_dir).may_act_for(actor, requester):
        raise MayNotWithdraw(
            f"Airflow user {actor!r} may not withdraw releases of {requester!r}; a steward can "
            f"allow it in budgets.yaml under airflow_users: {{{actor}: [{requester}]}}"
        )


def store_connection(place: Workplace, release_id: str) -> str | None:
    """Return the Airflow connection with which a release was published, by its release file.

    None where the file names none, or is there no more (a release by hand never had one): then the
    environment's AWS settings apply.

    Privacy: ledger only.
    """
    from include.config.loader import list_release_files, load_release

    name = place.reader.release(release_id).release
    for path in list_release_files(place.settings.config_dir):
        try:
            release = load_release(path)
        except CuSynError:  # another file's fault; its own DAG tells it
            continue
        if release.release == name:
            return release.publish.conn_id
    return None


def _tell_readers(found: Release, root: Path, s3: S3Parameters | None) -> str:
    from include.publishing.destinations import target_for
    from include.publishing.targets import prefix_of

    base, inside, _ = found.uri.partition(prefix_of(found.release, found.period, found.release_id))
    if not inside:
        raise CuSynError(f"put a notice beside it at {found.uri} by hand")
    target_for(base, base=root, s3=s3).withdraw(
        found.release,
        found.period,
        found.release_id,
        reason=found.withdrawn_reason or "",  # a notice says what the journal says
        at=found.withdrawn_at or "",
    )
    return base


def _other_way(found: Release) -> str:
    if not found.uri.startswith("s3://"):
        return ""
    return ", or trigger the DAG withdraw_release, which uses the release's Airflow connection"
