"""One write transaction: take the head of the journal, read, then append.

Changing a row and writing the journal are one act here, so no caller can do the one without the
other. The database posts the entry's amounts to the balances itself (see migrations/sql).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    Engine,
    Text,
    bindparam,
    cast,
    func,
    literal_column,
    select,
)
from sqlalchemy.dialects.postgresql import JSONB

from include.budget.errors import UnknownName
from include.budget.journal import NUMBER, Change, Draft, entry_hash, numbered
from include.budget.models import Charge
from include.budget.store import locks
from include.budget.store.engine import told
from include.budget.store.prepared import Call, Prepared, Row, Session, changing, inserting, session
from include.budget.store.rows import PoolRow, charge_of, pool_of
from include.budget.store.tables import CHARGE, CHECKPOINT, ENTRY, HEAD, PROJECTIONS, RELEASE

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """Read the machine's clock in UTC. Privacy: ledger only."""
    return datetime.now(UTC)


def stamp(moment: datetime) -> str:
    """Write a time the way the ledger stores it: UTC, microseconds, sorts as text.

    Privacy: ledger only.
    """
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


class Link(NamedTuple):
    """Where an entry stands in the chain. Privacy: ledger only."""

    seq: int
    hash: str


class Question(NamedTuple):
    """What a request finds: pools, claims and charges of its key and period.

    Privacy: ledger only.
    """

    pools: list[PoolRow]
    at_most: dict[str, int]
    found: list[Charge]


class Transaction:
    """The operations of one short write transaction.

    Args:
        session: A driver connection inside a transaction.
        now: The time all of it happens at.

    Privacy: ledger only.
    """

    def __init__(self, session: Session, now: datetime) -> None:
        self._session = session
        self.now = now
        self.at = stamp(now)
        self._head: Link | None = None
        self._charge_row: Row | None = None

    def under_lock(self) -> None:
        """Say that the step rests on the very figures it read: here nobody changes them."""

    def question(
        self, dataset: str, requester: str, key: str, release: str, period: str
    ) -> Question:
        """Read every pool that a charge on this dataset may touch, and who asked the same."""
        pools, found = self._ask(
            locks.POOLS_OF_DATASET(dataset=dataset, requester=requester),
            locks.SAME_QUESTION(key=key, release=release, period=period),
        )
        return question_of(pools, found)

    def charge(self, charge_id: str) -> Charge:
        """Read a charge.

        Raises:
            UnknownName: There is none of that id.
        """
        (found,) = self._ask(locks.CHARGE_OF_ID(charge_id=charge_id))
        return self._only(found, charge_id)

    def charge_with_pools(self, charge_id: str) -> tuple[Charge, dict[str, PoolRow]]:
        """Read a charge and the pools it was decided on.

        Raises:
            UnknownName: There is none of that id.
        """
        found, pools = self._ask(
            locks.CHARGE_OF_ID(charge_id=charge_id),
            locks.POOLS_OF_CHARGE(charge_id=charge_id),
        )
        self._rest_on(pools)
        return self._only(found, charge_id), {row["pool_id"]: pool_of(row) for row in pools}

    def pools_about(self, subject: str) -> list[PoolRow]:
        """Read every generation of a subject's pools, in the order of their ids."""
        (found,) = self._ask(locks.POOLS_OF_SUBJECT(subject=subject))
        return [pool_of(row) for row in found]

    def every_pool(self) -> list[PoolRow]:
        """Read every pool in the order of ids."""
        (found,) = self._ask(locks.EVERY_POOL())
        return [pool_of(row) for row in found]

    def row(self, table: str, key: str) -> Row | None:
        """Read one row of a projection by its key."""
        name = next(iter(PROJECTIONS[table].primary_key.columns)).name
        return next(iter(self.rows(table, **{name: key})), None)

    def rows(self, table: str, **equal: str) -> list[Row]:
        """Read the rows of a projection whose columns equal the given values, in key order."""
        (found,) = self._ask(_looking(table, tuple(sorted(equal)))(**equal))
        return found

    def bodies(self, charge_id: str, kind: str) -> list[Row]:
        """Read the bodies of a charge's entries of one kind, oldest first."""
        return self._bodies(_BODIES(charge_id=charge_id, kind=kind))

    def bodies_of_kind(self, kind: str) -> list[Row]:
        """Read the bodies of all entries of one kind, oldest first (rare kinds only)."""
        return self._bodies(_BODIES_OF_KIND(kind=kind))

    def _bodies(self, call: Call) -> list[Row]:
        (found,) = self._ask(call)
        return [json.loads(row["body"]) for row in found]

    def hashes_at(self, seqs: Collection[int]) -> dict[int, str]:
        """Read the hashes of entries, in one round trip; none beyond the end of the journal."""
        (found,) = self._ask(_HASHES(seqs=json.dumps(sorted(seqs)))) if seqs else ([],)
        return {row["seq"]: str(row["hash"]) for row in found}

    def due(self, at: str) -> list[str]:
        """Name the reservations that nobody opened in time."""
        (found,) = self._ask(_DUE(at=at))
        return [str(row["charge_id"]) for row in found]

    def turn(self) -> Link:
        """Take the head of the journal: the next entry is ours.

        Returns:
            The entry that the next one follows.
        """
        if self._head is None:
            self._ask()
        assert self._head is not None
        return self._head

    def _only(self, found: Sequence[Row], charge_id: str) -> Charge:
        if not found:
            raise UnknownName(f"charge {charge_id} is not in the ledger: check its id.")
        self._charge_row = found[0]
        return charge_of(found[0])

    def _rest_on(self, pools: Sequence[Row]) -> None:
        """Note that the step rests on pools and limits; under the head nobody changes them."""

    def _ask(self, *calls: Call) -> list[list[Row]]:
        """Read, after taking the head of the journal: what is read stays so until the end."""
        if self._head is not None:
            return self._session.ask(*calls)
        (head,), *answers = self._session.ask(locks.HEAD_LOCKED(), *calls)
        self._head = Link(head["seq"], head["hash"])
        return answers

    def ledger_id(self) -> str:
        """Read the random id of this ledger."""
        (found,) = self._ask(_LEDGER_ID())
        return str(found[0]["ledger_id"])

    def counts(self) -> dict[str, int]:
        """Count charges and releases."""
        (found,) = self._ask(_COUNTS())
        return found[0]

    def checkpoint_at(self, seq: int) -> dict[str, str] | None:
        """Read the checkpoint of an entry, if one was made."""
        (found,) = self._ask(_CHECKPOINT_AT(seq=seq))
        return found[0] if found else None

    def keep_checkpoint(self, seq: int, made: Mapping[str, str]) -> None:
        """Store a signed checkpoint; it vouches for the journal and is not part of it."""
        row = {"seq": seq, **made}
        self._session.tell(inserting(CHECKPOINT, tuple(row))(**row))

    def append(self, draft: Draft) -> Link:
        """Apply the draft's changes, then write it; the entry posts its own amounts.

        Args:
            draft: What happened.

        Returns:
            The entry's place in the chain.

        Raises:
            Collision: A row no longer held what the step starts from (at the latest on commit).
        """
        head = self.turn()
        seq = head.seq + 1
        body = numbered(draft.body(self.at), seq)
        entry = Link(seq, entry_hash(seq, head.hash, body))
        row = {
            "seq": seq,
            "kind": draft.kind,
            "charge_id": draft.charge_id,
            "prev_hash": head.hash,
            "hash": entry.hash,
            "body": body,
        }
        # Compare and set: the head comes first, this is the second fence.
        changes = [applied(changed(change, seq)) for change in draft.changes]
        self._session.tell(*changes, inserting(ENTRY, tuple(row))(**row))
        self._head = entry
        return entry


def question_of(pools: Sequence[Row], found: Sequence[Row]) -> Question:
    """Put together what a request finds. Privacy: ledger only."""
    at_most = {row["claim"]: row["at_most"] for row in pools if row["claim"] is not None}
    return Question([pool_of(row) for row in pools], at_most, [charge_of(row) for row in found])


def applied(change: Change) -> Call:
    """Write a change as a statement; where it says `NUMBER` the last entry's number is taken.

    Privacy: ledger only.
    """
    table = PROJECTIONS[change.table]
    own = tuple(name for name, value in change.values.items() if value == NUMBER)
    values = {name: value for name, value in change.values.items() if name not in own}
    if change.was is None:
        key = next(iter(table.primary_key.columns)).name
        row = {key: change.key, **values, **change.aside}
        return inserting(table, tuple(row), own)(**row)
    given = {f"new_{name}": value for name, value in values.items()}
    given |= {f"was_{name}": value for name, value in change.was.items()}
    return changing(table, tuple(values), tuple(change.was), own)(at=change.key, **given)


def changed(change: Change, seq: int) -> Change:
    """Put an entry's number where a change says `NUMBER`. Privacy: ledger only."""
    values = {name: seq if value == NUMBER else value for name, value in change.values.items()}
    return change._replace(values=values)


@lru_cache(maxsize=256)
def _looking(table: str, columns: tuple[str, ...]) -> Prepared:
    source = PROJECTIONS[table]
    query = select(source).where(*(source.c[name] == bindparam(name) for name in columns))
    return Prepared(query.order_by(next(iter(source.primary_key.columns))))


_BODIES = Prepared(
    select(ENTRY.c.body)
    .where(ENTRY.c.charge_id == bindparam("charge_id"), ENTRY.c.kind == bindparam("kind"))
    .order_by(ENTRY.c.seq)
)
_BODIES_OF_KIND = Prepared(
    select(ENTRY.c.body).where(ENTRY.c.kind == bindparam("kind")).order_by(ENTRY.c.seq)
)
_SEQS = bindparam("seqs", type_=Text)  # a JSON list: one parameter, however many are asked for
_NAMED = select(ENTRY.c.seq, ENTRY.c.hash)
_HASHES = Prepared(
    _NAMED.where(
        ENTRY.c.seq.in_(select(literal_column("value")).select_from(func.json_each(_SEQS)))
    ),
    postgresql=_NAMED.where(
        ENTRY.c.seq.in_(
            select(cast(func.jsonb_array_elements_text(cast(_SEQS, JSONB)), BigInteger))
        )
    ),
)
_DUE = Prepared(
    select(CHARGE.c.charge_id)
    .where(CHARGE.c.state == "reserved", CHARGE.c.expires_at <= bindparam("at"))
    .order_by(CHARGE.c.charge_id)
)
_LEDGER_ID = Prepared(select(HEAD.c.ledger_id))
_COUNTS = Prepared(
    select(
        select(func.count()).select_from(CHARGE).scalar_subquery().label("charges"),
        select(func.count()).select_from(RELEASE).scalar_subquery().label("releases"),
    )
)
_CHECKPOINT_AT = Prepared(
    select(CHECKPOINT.c.body, CHECKPOINT.c.key_id, CHECKPOINT.c.signature).where(
        CHECKPOINT.c.seq == bindparam("seq")
    )
)


@contextmanager
def transaction(engine: Engine, clock: Clock = utc_now) -> Iterator[Transaction]:
    """Run one write transaction of the ledger.

    Args:
        engine: From `connect`.
        clock: Source of the time written into entries.

    Yields:
        The transaction; it commits at the end of the block or leaves no trace.

    Raises:
        LedgerUnavailable: The database is missing, locked, unreachable or not migrated.
        LedgerRefused: A guard of the database stopped the write.
        Collision: Another writer got in between, or two blocked each other.

    Privacy: ledger only.
    """
    with told(), session(engine) as opened:
        yield Transaction(opened, clock())
