"""The journal's grammar: how an entry is written, hashed and read.

Every entry says in one canonical JSON text who did what when, which rows it creates or changes
(`changes`), how budget moves (`postings`, double entry, each pool summing to zero) and the same in
plain words. Its hash covers its number, the hash before it and that text, so that no entry can be
changed, dropped or moved without breaking every hash after it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from include.budget.models import canonical_json

FORMAT = "cusyn-ledger-1"
ISSUED, AVAILABLE, HELD, SPENT = "issued", "available", "held", "spent"
ACCOUNTS = (ISSUED, AVAILABLE, HELD, SPENT)

NUMBER = f"number of this entry {secrets.token_hex(16)}"
"""Stands in a draft for the number its entry will get; nobody can guess it, so no text holds it."""

QUOTED_NUMBER = f'"{NUMBER}"'
"""The same as it stands in a draft's text."""


class Posting(NamedTuple):
    """An amount of 1e-12 that enters (or, negative, leaves) one account of a pool.

    Privacy: ledger only.
    """

    pool_id: str
    account: str
    amount_pico: int


class Change(NamedTuple):
    """A row that an entry creates (`was` is None) or changes.

    Args:
        table: Name without prefix.
        key: Value of its primary key.
        values: Columns set.
        was: What the row must hold now for the step to be legal; None for a new row.
        aside: Columns set but never journalled (what recognises protected content).

    Privacy: ledger only.
    """

    table: str
    key: str
    values: Mapping[str, Any]
    was: Mapping[str, Any] | None = None
    aside: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class Draft:
    """An entry before it has a number.

    Args:
        kind: What happened, one word.
        actor: Who did it.
        words: The same in one sentence for an auditor.
        charge_id: The charge it belongs to, if any.
        changes: Rows created or changed.
        postings: Movements of budget.
        facts: Anything else worth keeping for ever, JSON types.

    Privacy: ledger only.
    """

    kind: str
    actor: str
    words: str
    charge_id: str | None = None
    changes: Sequence[Change] = ()
    postings: Sequence[Posting] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def body(self, at: str) -> str:
        """Write the entry's canonical text, with `NUMBER` where its number belongs.

        Args:
            at: UTC time, ISO 8601.

        Returns:
            The text that, once `numbered`, is stored and hashed.

        Privacy: ledger only.
        """
        return canonical_json(
            {
                "seq": NUMBER,
                "at": at,
                "kind": self.kind,
                "actor": self.actor,
                "words": self.words,
                "charge_id": self.charge_id,
                "changes": [_change(change) for change in self.changes],
                "postings": [list(posting) for posting in self.postings],
                "facts": dict(self.facts),
            }
        )


def numbered(body: str, seq: int) -> str:
    """Write an entry's number into its text.

    Args:
        body: From `Draft.body`.
        seq: The number.

    Returns:
        The text that is stored and hashed.

    Privacy: ledger only.
    """
    return body.replace(QUOTED_NUMBER, str(seq))


def _change(change: Change) -> dict[str, Any]:
    told: dict[str, Any] = {
        "table": change.table,
        "key": change.key,
        "values": dict(change.values),
    }
    return told if change.was is None else told | {"was": dict(change.was)}


def genesis(ledger_id: str) -> str:
    """Hash that stands before the first entry: it ties the chain to one ledger.

    Args:
        ledger_id: Random id given when the tables were made.

    Returns:
        SHA-256, hex.

    Privacy: ledger only.
    """
    return hashlib.sha256(f"{FORMAT}\n{ledger_id}".encode()).hexdigest()


def entry_hash(seq: int, prev_hash: str, body: str) -> str:
    """Hash an entry together with its place in the chain.

    Args:
        seq: Its number.
        prev_hash: Hash of the entry before it.
        body: Its canonical text, exactly as stored.

    Returns:
        SHA-256, hex.

    Privacy: ledger only.
    """
    return hashlib.sha256(f"{FORMAT}\n{seq}\n{prev_hash}\n{body}".encode()).hexdigest()


def move(amounts_pico: Mapping[str, int], source: str, target: str) -> list[Posting]:
    """Move amounts from one account to another in each pool.

    Args:
        amounts_pico: Amount by pool id, units of 1e-12; zero amounts make no posting.
        source: Account that gives.
        target: Account that receives.

    Returns:
        Two postings a pool, pools in the order of their ids.

    Privacy: ledger only.
    """
    return [
        posting
        for pool_id, amount in sorted(amounts_pico.items())
        if amount
        for posting in (Posting(pool_id, source, -amount), Posting(pool_id, target, amount))
    ]
