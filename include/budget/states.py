"""The life of a charge: which arrow starts from which state.

request -> denied | reserved -> void
                    reserved -> opened -> forfeited
                                opened -> sealed -> withheld
                                          sealed -> publishing -> published (-> withdrawn)
"""

from __future__ import annotations

from typing import NamedTuple

from include.budget.errors import AlreadyOpened, WrongState

DENIED, RESERVED, OPENED, SEALED = "denied", "reserved", "opened", "sealed"
PUBLISHING, PUBLISHED = "publishing", "published"
VOID, FORFEITED, WITHHELD = "void", "forfeited", "withheld"

STATES = (
    DENIED,
    RESERVED,
    OPENED,
    SEALED,
    PUBLISHING,
    PUBLISHED,
    VOID,
    FORFEITED,
    WITHHELD,
)
FREE_PERIOD = (DENIED, VOID)
"""States in which a charge does not occupy the period of its release."""


class Arrow(NamedTuple):
    """One step of the machine. Privacy: ledger only."""

    kind: str
    start: str | None
    end: str


ARROWS: dict[str, tuple[Arrow, ...]] = {
    "reserve": (Arrow("reserve", None, RESERVED), Arrow("reserve", None, DENIED)),
    "open": (Arrow("open", RESERVED, OPENED),),
    "resume": (Arrow("resume", OPENED, OPENED),),
    "begin_round": (Arrow("begin_round", OPENED, OPENED),),
    "answer_round": (Arrow("answer_round", OPENED, OPENED),),
    "seal": (Arrow("seal", OPENED, SEALED),),
    "forfeit": (Arrow("forfeit", OPENED, FORFEITED),),
    "void": (Arrow("void", RESERVED, VOID),),
    "expire": (Arrow("expire", RESERVED, VOID),),
    "withhold": (Arrow("withhold", SEALED, WITHHELD),),
    "begin_publishing": (Arrow("begin_publishing", SEALED, PUBLISHING),),
    "publish": (Arrow("publish", PUBLISHING, PUBLISHED),),
    "withdraw": (Arrow("withdraw", PUBLISHED, PUBLISHED),),
}
"""Every legal arrow, by the kind of journal entry that records it."""

MOVES = tuple(
    sorted(
        {
            (arrow.start, arrow.end)
            for arrows in ARROWS.values()
            for arrow in arrows
            if arrow.start is not None
        }
    )
)
"""Every legal pair (state before, state after) of an existing charge."""


def is_legal(kind: str, start: str | None, end: str) -> bool:
    """Tell whether an entry of this kind may move a charge from `start` to `end`.

    Args:
        kind: Kind of journal entry.
        start: State before, None for a new charge.
        end: State after.

    Returns:
        True for an arrow of the machine.

    Privacy: ledger only.
    """
    return any((arrow.start, arrow.end) == (start, end) for arrow in ARROWS.get(kind, ()))


def require(kind: str, charge_id: str, state: str) -> None:
    """Refuse a step that does not start from the charge's state.

    Args:
        kind: Kind of journal entry about to be written.
        charge_id: Names the charge in the sentence.
        state: Its state now.

    Raises:
        AlreadyOpened: The step is `open` and somebody opened the charge before.
        WrongState: The step starts from another state.

    Privacy: ledger only.
    """
    starts = [arrow.start for arrow in ARROWS[kind]]
    if state in starts:
        return
    if kind == "open" and state == OPENED:
        raise AlreadyOpened(
            f"charge {charge_id} is already opened: one reader only; a later attempt resumes from "
            "the transcript or forfeits."
        )
    raise WrongState(
        f"charge {charge_id} is {state}: {kind.replace('_', ' ')} starts from "
        f"{' or '.join(str(start) for start in starts)} only."
    )
