"""Signed checkpoints: the head of the journal and every balance, vouched for by a key elsewhere.

Exported beside the releases they are the anchors that make a cut tail visible. They also count the
charges and releases, so that an auditor can tell that none is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Engine

from include.budget.anchors import CHECKPOINT_PATTERN, anchor_of
from include.budget.models import canonical_json
from include.budget.store.transaction import Clock, Link, Transaction, transaction, utc_now
from include.budget.verify import Anchor
from include.folders import make_folder

FORMAT = "cusyn-checkpoint-1"


class Signer(Protocol):
    """A signing key kept outside the database.

    Privacy: ledger only.
    """

    @property
    def key_id(self) -> str:
        """Name of the key, so that a rotated one still verifies what it signed."""
        ...

    def sign(self, message: bytes, /) -> bytes:
        """Sign with Ed25519."""
        ...


@dataclass(frozen=True)
class Checkpoint:
    """A signed statement of where the ledger stands.

    Args:
        body: Canonical JSON: ledger_id, seq, hash, at, counts, each pool's [held, spent].
        key_id: The signing key.
        signature: Ed25519 over `message(body)`, hex.

    Privacy: ledger only.
    """

    body: str
    key_id: str
    signature: str

    @property
    def facts(self) -> Mapping[str, Any]:
        """The body, opened."""
        facts: Mapping[str, Any] = json.loads(self.body)
        return facts

    @property
    def anchor(self) -> Anchor:
        """The entry it vouches for."""
        return anchor_of(self.facts, f"checkpoint {self.facts['seq']}")

    def to_dict(self) -> dict[str, str]:
        """Describe the checkpoint in JSON types."""
        return asdict(self)


def message(body: str) -> bytes:
    """Return the bytes that are signed. Privacy: ledger only."""
    return f"{FORMAT}\n{body}".encode()


def checkpoint(
    engine: Engine,
    signer: Signer,
    *,
    clock: Clock = utc_now,
    guard: Callable[[Transaction], None] = lambda tx: None,
) -> Checkpoint:
    """Sign the ledger's present state and keep the statement.

    Args:
        engine: The ledger's database.
        signer: Key outside the database.
        clock: Source of time.
        guard: Called first inside the transaction: a rewound ledger must not be vouched for.

    Returns:
        The checkpoint; asked again before anything happened, the same one. A row that another key
        signed, or nobody, vouches for nothing: then a fresh one is returned and that row is left.

    Raises:
        LedgerRewound: The guard refused; nothing was signed.
        LedgerUnavailable: The ledger cannot be written.

    Privacy: ledger only.
    """
    with transaction(engine, clock) as tx:
        guard(tx)
        head = tx.turn()
        known = tx.checkpoint_at(head.seq)
        if known is not None and _is_ours(Checkpoint(**known), signer, head):
            return Checkpoint(**known)
        made = _signed(canonical_json(_facts(tx)), signer)
        if known is None:
            tx.keep_checkpoint(head.seq, made.to_dict())
        return made


def _signed(body: str, signer: Signer) -> Checkpoint:
    return Checkpoint(body, signer.key_id, signer.sign(message(body)).hex())


def _is_ours(kept: Checkpoint, signer: Signer, head: Link) -> bool:
    """Tell whether this key made a kept checkpoint, of this head: Ed25519 signs alike each time."""
    if kept != _signed(kept.body, signer):
        return False
    return (kept.facts["seq"], kept.facts["hash"]) == (head.seq, head.hash)


def export_checkpoint(made: Checkpoint, folder: Path) -> Path:
    """Write a checkpoint beside the releases.

    Args:
        made: From `checkpoint`.
        folder: Outside the database; made if missing.

    Returns:
        The file.

    Privacy: ledger only.
    """
    make_folder(folder)
    # The hash in the name: after a restored backup another entry may have the same number, and the
    # witness of the lost one must not be overwritten.
    name = CHECKPOINT_PATTERN.replace("*", f"{made.facts['seq']:012d}-{made.facts['hash'][:12]}")
    path = folder / name
    part = path.with_suffix(".part")
    part.write_text(canonical_json(made.to_dict()) + "\n", encoding="utf-8")
    part.replace(path)
    return path


def _facts(tx: Transaction) -> dict[str, Any]:
    head = tx.turn()
    return {
        "format": FORMAT,
        "ledger_id": tx.ledger_id(),
        "seq": head.seq,
        "hash": head.hash,
        "at": tx.at,
        **tx.counts(),
        "pools": {pool.pool_id: [pool.held_pico, pool.spent_pico] for pool in tx.every_pool()},
    }
