"""What goes into the ledger and what comes out: plain records, no database."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from include.accounting.accountant import Cost
from include.accounting.amounts import format_amount
from include.budget.errors import InvalidRequest

MAX_PICO = 999_999_999_999_999_999
"""The largest amount the grammar of amounts can write, in units of 1e-12; fits 64 bits."""


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: object) -> str:
    """Write a value as the one JSON text that is hashed: sorted keys, no blanks, ASCII only.

    Args:
        value: JSON types only.

    Returns:
        The text.

    Raises:
        InvalidRequest: The value holds something JSON cannot carry exactly (NaN, objects).

    Privacy: ledger only.
    """
    try:
        return _CANONICAL.encode(value)
    except (TypeError, ValueError) as fault:
        raise InvalidRequest(
            f"a parameter cannot be written as JSON ({type(fault).__name__}): use text, whole "
            "numbers, finite decimals, lists and mappings."
        ) from None


def digest_of(value: object) -> str:
    """Hash the canonical JSON of a value: SHA-256, hex. Privacy: ledger only."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def require_pico(value: object, *, name: str) -> int:
    """Let only a whole, positive number of units of 1e-12 pass.

    Args:
        value: What was given.
        name: Opens the error sentence.

    Returns:
        The amount.

    Raises:
        InvalidRequest: It is no int, a bool, zero, negative or above the largest amount.

    Privacy: ledger only.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        kind = type(value).__name__
        raise InvalidRequest(f"{name}: {kind} is not a whole number of units of 1e-12; parse it.")
    if value <= 0:
        fault = "zero buys nothing" if value == 0 else "a negative amount would refill a budget"
        raise InvalidRequest(f"{name}: {fault}; give an amount above 0.")
    if value > MAX_PICO:
        raise InvalidRequest(f"{name}: the amount is above the largest accepted, 999999.")
    return value


LONGEST_REASON = 500


def require_text(value: object, *, name: str, longest: int = 200) -> str:
    """Let only printable, non-empty text without blanks at its ends pass.

    Args:
        value: What was given.
        name: Opens the error sentence.
        longest: Most characters allowed.

    Returns:
        The text.

    Raises:
        InvalidRequest: It is empty, too long or holds control characters.

    Privacy: ledger only.
    """
    if not isinstance(value, str) or not value or value != value.strip():
        raise InvalidRequest(f"{name}: give a text that is not empty, without blanks at its ends.")
    if len(value) > longest or not value.isprintable():
        raise InvalidRequest(f"{name}: give at most {longest} printable characters.")
    return value


def same_person(one: str, other: str) -> bool:
    """Tell whether two names are of one person, as far as spelling can tell.

    Case, blanks and Unicode's compatible forms make nobody another person: Anna, ANNA and anna are
    one, so that a second person is never the first with a capital.

    Privacy: ledger only.
    """
    return _folded(one) == _folded(other)


def _folded(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name).casefold()
    return " ".join(unicodedata.normalize("NFKC", plain).split())


def attempt_number(attempt: object) -> int:
    """Read the order of an attempt: the digits its text ends with.

    Raises:
        InvalidRequest: It ends with none.

    Privacy: ledger only.
    """
    match = re.search(r"([0-9]{1,9})$", attempt) if isinstance(attempt, str) else None
    if match is None:
        raise InvalidRequest("attempt: give a text that ends with the try number, such as '2'.")
    return int(match.group(1))


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request for budget, as the BudgetEval step sends it.

    Args:
        key: Idempotency key, `dag_id|run_id|task_id|map_index`: one key, one charge, for ever.
        dataset: Registered dataset.
        requester: For whom the release is made; owns the user pool.
        actor: Who pressed the button, from Airflow's authentication.
        release: Name of the release.
        period: Period key: one release per name and period.
        mechanism: Name of the synthesizer.
        epsilon_pico: Epsilon asked for, units of 1e-12.
        accept_at_least_pico: Smallest acceptable grant, units of 1e-12.
        parameters: Public parameters of the release, JSON types; part of the request's digest.
        dag_id, run_id, task_id, map_index: Where it came from, as text; no keys into Airflow.
        snapshot_id: Random id of the snapshot; not in the digest (a cleared run keeps its own).
        delta_exponent: N of 1e-N when the request names a delta; must equal the pools'.
        partition: Value of the registered partition the release is confined to.

    Privacy: ledger only.
    """

    key: str
    dataset: str
    requester: str
    actor: str
    release: str
    period: str
    mechanism: str
    epsilon_pico: int
    accept_at_least_pico: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    dag_id: str = ""
    run_id: str = ""
    task_id: str = ""
    map_index: str = "-1"
    snapshot_id: str | None = None
    delta_exponent: int | None = None
    partition: str | None = None

    def checked(self) -> Request:
        """Return the request itself once every field can be meant.

        Raises:
            InvalidRequest: A field cannot; the sentence names it.

        Privacy: ledger only.
        """
        for name in ("dataset", "requester", "actor", "release", "period", "mechanism"):
            require_text(getattr(self, name), name=name)
        require_text(self.key, name="key", longest=1000)
        require_pico(self.epsilon_pico, name="epsilon")
        require_pico(self.accept_at_least_pico, name="accept_at_least")
        if self.accept_at_least_pico > self.epsilon_pico:
            raise InvalidRequest("accept_at_least: it is above epsilon; lower it or ask for more.")
        return self

    def digest(self) -> str:
        """Hash what makes two requests the same question; who, where from and snapshot do not.

        Privacy: ledger only.
        """
        return self._digest

    @cached_property
    def _digest(self) -> str:
        return digest_of(
            {
                "dataset": self.dataset,
                "requester": self.requester,
                "release": self.release,
                "period": self.period,
                "partition": self.partition,
                "mechanism": self.mechanism,
                "epsilon_pico": self.epsilon_pico,
                "accept_at_least_pico": self.accept_at_least_pico,
                "delta_exponent": self.delta_exponent,
                "parameters": dict(self.parameters),
            }
        )


@dataclass(frozen=True, kw_only=True)
class Charge:
    """A request and everything that has become of it.

    Args:
        amounts_pico: What each pool holds (reserved) or has spent (from opened on) for it.
        planned: The planner's cost of the grant; None when denied.
        cost: The cost of the plan that really runs, from `open` on.
        fence: Grows with every open and resume; a holder of an older one is refused.
        decided_seq, decided_hash: The journal entry of the decision.
        sealed_seq, sealed_hash: The journal entry of the seal; the manifest embeds it.
        replayed: True when an earlier answer was returned and nothing new was charged.

    Privacy: ledger only.
    """

    charge_id: str
    key: str
    request_digest: str
    state: str
    dataset: str
    requester: str
    actor: str
    release: str
    period: str
    partition: str | None
    mechanism: str
    parameters: dict[str, Any]
    snapshot_id: str | None
    requested_pico: int
    accept_at_least_pico: int
    granted_pico: int
    planned: Cost | None
    cost: Cost | None
    amounts_pico: dict[str, int]
    binding: str
    reason: str
    note: str | None
    fence: int
    attempt: str | None
    rounds_begun: int
    rounds_closed: int
    rounds_answered: int
    plan: dict[str, Any] | None
    plan_digest: str | None
    events: list[dict[str, Any]]
    transcript_digest: str | None
    manifest_digest: str | None
    release_id: str | None
    uri: str | None
    dag_id: str
    run_id: str
    task_id: str
    map_index: str
    created_at: str
    expires_at: str | None
    decided_seq: int
    decided_hash: str
    sealed_seq: int | None
    sealed_hash: str | None
    replayed: bool = False

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Charge:
        """Make a charge of its fields; the constructor of a frozen class sets each by a call."""
        charge = object.__new__(cls)
        charge.__dict__.update(fields)
        return charge

    def become(self, **fields: Any) -> Charge:
        """Return this charge with other values in some fields."""
        return Charge.of(self.__dict__ | fields)

    @property
    def denied(self) -> bool:
        """Whether nothing was granted."""
        return self.state == "denied"

    @property
    def negotiated(self) -> bool:
        """Whether less was granted than asked for (a fact, not a state)."""
        return 0 < self.granted_pico < self.requested_pico

    @property
    def entry_seq(self) -> int:
        """Sequence number of the decision in the journal."""
        return self.decided_seq

    @property
    def entry_hash(self) -> str:
        """Hash of the decision's journal entry."""
        return self.decided_hash

    def to_dict(self) -> dict[str, Any]:
        """Describe the charge in JSON types, with the epsilons also as decimal text."""
        return asdict(self) | {
            "requested_epsilon": format_amount(self.requested_pico),
            "granted_epsilon": format_amount(self.granted_pico),
            "accept_at_least": format_amount(self.accept_at_least_pico),
        }


@dataclass(frozen=True)
class OpenedCharge:
    """The right to read, once: hand it back with every step until the transcript is sealed.

    Args:
        charge_id: The charge.
        fence: The fence under which it was opened or resumed.
        last_round: Highest round already begun; the next is one more.

    Privacy: ledger only.
    """

    charge_id: str
    fence: int
    last_round: int = 0
