"""What the ledger refuses, one class for each kind of refusal.

A *denied* request is not an error: it is a decision, recorded in the journal. These are the faults.
"""

from __future__ import annotations

from include.errors import CuSynError


class LedgerError(CuSynError):
    """The root of every fault of the ledger.

    Privacy: ledger only.
    """


class LedgerUnavailable(LedgerError):
    """The database is missing, locked or not migrated; nothing was charged and nothing may be read.

    Privacy: ledger only.
    """

    retry_helps = True


class LedgerRefused(LedgerError):
    """A guard inside the database (a CHECK, a trigger, a missing privilege) stopped the write.

    Privacy: ledger only.
    """


class LedgerRewound(LedgerError):
    """The journal ends before, or differs from, a checkpoint that was already exported.

    Privacy: ledger only.
    """


class InvalidRequest(LedgerError, ValueError):
    """A field of a request cannot be meant: the sentence names the field and the fix.

    Privacy: ledger only.
    """


class UnknownName(LedgerError, LookupError):
    """A population, dataset, pool, charge or release of that name is not registered.

    Privacy: ledger only.
    """


class DeclarationMismatch(LedgerError):
    """The declared figures differ from the registered ones; the sentence names both.

    Privacy: ledger only.
    """


class DeltaMismatch(LedgerError):
    """The request names another delta than the pools it would charge.

    Privacy: ledger only.
    """


class IdempotencyConflict(LedgerError):
    """A known request key came back with other parameters.

    Privacy: ledger only.
    """


class PeriodTaken(LedgerError):
    """Another request already holds this period of the release.

    Privacy: ledger only.
    """


class PoolFrozen(LedgerError):
    """A pool this charge needs is frozen until it is reconciled.

    Privacy: ledger only.
    """


THAW = (
    "open it again with `python -m include.cli admin reconcile --authorised-by NAME --reason WHY`, "
    "which compares the ledger with its exported checkpoints"
)
"""What helps where a pool is frozen; it ends a sentence."""


class WrongState(LedgerError):
    """The charge is in a state this step does not start from.

    Privacy: ledger only.
    """


class AlreadyOpened(WrongState):
    """Somebody has the right to read; a second reader never gets it.

    Privacy: ledger only.
    """


class StaleFence(WrongState):
    """The caller opened this charge under an older fence and has been replaced.

    Privacy: ledger only.
    """


class RoundMismatch(WrongState):
    """The round does not follow the last one journalled.

    Privacy: ledger only.
    """


class PlanExceedsGrant(LedgerError):
    """The plan costs more than was granted; the data have not been read.

    Privacy: ledger only.
    """


class DigestMismatch(LedgerError):
    """A step was repeated with another digest than the first time.

    Privacy: ledger only.
    """


class NotApproved(LedgerError):
    """The release needs a second person's approval and does not have it.

    Privacy: ledger only.
    """
