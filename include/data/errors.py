"""Faults of the data side. None of them ever quotes a value of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from include.errors import CuSynError

Result = TypeVar("Result")


class FormatError(CuSynError):
    """The source does not have the declared form: a column, a type or the id is missing.

    Args:
        column: the declared column at fault; empty when it is the table as a whole.
        rule: short name of the rule that failed, such as "present" or "type".
        sentence: the fault and its fix, without any value of the rows.

    Privacy: post-processing (names and types only).
    """

    def __init__(self, column: str, rule: str, sentence: str) -> None:
        self.column, self.rule = column, rule
        super().__init__(sentence)


class RowFaultError(CuSynError):
    """A row of a dataset declared `strict` breaks a rule; column and rule are named, no value.

    Args:
        column: the declared column; empty where the line or row as a whole breaks the rule.
        rule: short name of the rule.

    Privacy: reads raw data (one bit, which a strict dataset declares as unprotected).
    """

    def __init__(self, column: str, rule: str) -> None:
        self.column, self.rule = column, rule
        place = f"column '{column}'" if column else "the table"
        super().__init__(
            f"{place} breaks the rule '{rule}' in at least one row and the dataset is "
            "strict; correct the source, or remove `strict: true` to apply the per-row policy"
        )


class SourceError(CuSynError):
    """The declared source cannot be read; the sentence says where and what to do.

    Privacy: ledger only.
    """


class SourceBusyError(SourceError):
    """The source does not answer now; the same reading may succeed later.

    Privacy: ledger only.
    """

    retry_helps = True


_TRANSIENT = frozenset(
    {
        "ConnectTimeoutError",
        "ConnectionClosedError",
        "ConnectionError",
        "EndpointConnectionError",
        "IncompleteRead",
        "IncompleteReadError",
        "OperationalError",
        "ProtocolError",
        "ReadTimeoutError",
        "ResponseStreamingError",
    }
)


class SnapshotError(CuSynError):
    """A snapshot is missing, damaged or was changed after it was written.

    Privacy: ledger only.
    """


class PrivateReadError(CuSynError):
    """Something other than a spending step tried to look at protected rows.

    Privacy: ledger only.
    """


def without_values(action: Callable[[], Result], error: type[CuSynError], doing: str) -> Result:
    """Run an action that touches rows; let only the class name of an error out.

    The original exception is dropped whole, with its traceback and its local variables: either may
    hold a row.

    Args:
        action: what touches rows.
        error: class of the error raised instead; it takes one sentence.
        doing: what was being done, as in "reading the snapshot".

    Returns:
        What the action returned.

    Raises:
        CuSynError: of class `error`; or the action's own, when it already is a CuSynError.

    Privacy: reads raw data.
    """
    try:
        return action()
    except CuSynError as plain:
        known: CuSynError | None = plain.with_traceback(None)
        name = ""
    except Exception as raw:
        known, name = None, type(raw).__name__
    if known is not None:
        known.__context__ = known.__cause__ = None
        raise known
    if error is SourceError and name in _TRANSIENT:
        error = SourceBusyError
    raise error(f"{doing} failed ({name}); details are withheld because they may quote rows")
