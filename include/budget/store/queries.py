"""Read-only queries: one consistent state of the ledger each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, select

from include.budget.models import Charge
from include.budget.store.rows import CHARGE_WITH_HASHES, PoolRow, charge_of, pool_of
from include.budget.store.tables import (
    CHARGE,
    CHECKPOINT,
    ENTRY,
    HEAD,
    OCCUPIES,
    POOL,
    POSTING,
    PROJECTIONS,
    RELEASE,
)

_CHUNK = 2000
ASIDE = {"snapshot": ("mac", "locator")}
"""Columns that recognise or find protected content: never journalled, exported or projected."""


def pools(connection: Connection) -> list[PoolRow]:
    """Read every pool, in the order of ids. Privacy: ledger only."""
    query = select(POOL).order_by(POOL.c.pool_id)
    return [pool_of(row) for row in connection.execute(query).mappings()]


def charges(
    connection: Connection, *, limit: int | None = None, offset: int = 0, **equal: str
) -> list[Charge]:
    """Read charges, newest first, whose columns equal the given values. Privacy: ledger only."""
    query = CHARGE_WITH_HASHES.where(*(CHARGE.c[name] == value for name, value in equal.items()))
    ordered = query.order_by(CHARGE.c.decided_seq.desc()).limit(limit).offset(offset or None)
    return [charge_of(row) for row in connection.execute(ordered).mappings()]


def occupied(connection: Connection) -> set[tuple[str, str]]:
    """Read which periods of which releases are taken. Privacy: ledger only."""
    query = select(CHARGE.c.release, CHARGE.c.period).where(OCCUPIES)
    return {(release, period) for release, period in connection.execute(query)}


def occupying(connection: Connection, release: str, period: str) -> Charge | None:
    """Read the charge that occupies a period of a release. Privacy: ledger only."""
    query = CHARGE_WITH_HASHES.where(
        CHARGE.c.release == release,
        CHARGE.c.period == period,
        OCCUPIES,
    )
    row = connection.execute(query).mappings().first()
    return None if row is None else charge_of(row)


def releases(
    connection: Connection, release_id: str | None = None, *, limit: int | None = None
) -> list[dict[str, Any]]:
    """Read releases with what their charge says of them, newest first. Privacy: ledger only."""
    query = select(
        RELEASE,
        CHARGE.c.release,
        CHARGE.c.period,
        CHARGE.c.dataset,
        CHARGE.c.requester,
        CHARGE.c.mechanism,
        CHARGE.c.granted_pico,
        CHARGE.c.sealed_seq,
        ENTRY.c.hash.label("sealed_hash"),
    )
    query = query.join(CHARGE, CHARGE.c.charge_id == RELEASE.c.charge_id)
    query = query.join(ENTRY, ENTRY.c.seq == CHARGE.c.sealed_seq)
    if release_id is not None:
        query = query.where(RELEASE.c.release_id == release_id)
    ordered = query.order_by(RELEASE.c.published_at.desc(), RELEASE.c.release_id).limit(limit)
    return [named(row) for row in connection.execute(ordered).mappings()]


def head(connection: Connection) -> dict[str, Any]:
    """Read the head of the journal: ledger_id, seq, hash. Privacy: ledger only."""
    return named(connection.execute(select(HEAD)).mappings().one())


def entries(
    connection: Connection, *, charge_id: str | None = None, after: int = 0
) -> Iterator[dict[str, Any]]:
    """Stream journal entries in order, in bounded memory. Privacy: ledger only."""
    query = select(ENTRY).where(ENTRY.c.seq > after).order_by(ENTRY.c.seq)
    if charge_id is not None:
        query = query.where(ENTRY.c.charge_id == charge_id)
    yield from _stream(connection, query)


def postings(connection: Connection) -> Iterator[dict[str, Any]]:
    """Stream every posting in the order of entries. Privacy: ledger only."""
    yield from _stream(connection, select(POSTING).order_by(POSTING.c.seq, POSTING.c.line))


def projection(connection: Connection, table: str) -> Iterator[dict[str, Any]]:
    """Stream one projected table in key order. Privacy: ledger only."""
    source = PROJECTIONS[table]
    told = [column for column in source.columns if column.name not in ASIDE.get(table, ())]
    query = select(*told).order_by(next(iter(source.primary_key.columns)))
    yield from _stream(connection, query)


def projections() -> tuple[str, ...]:
    """Name the tables that are rebuilt from the journal. Privacy: ledger only."""
    return tuple(PROJECTIONS)


def key_column(table: str) -> str:
    """Name the key of a projected table. Privacy: ledger only."""
    return next(iter(PROJECTIONS[table].primary_key.columns)).name


def checkpoints(connection: Connection) -> list[dict[str, Any]]:
    """Read the stored checkpoints, oldest first. Privacy: ledger only."""
    query = select(CHECKPOINT).order_by(CHECKPOINT.c.seq)
    return [named(row) for row in connection.execute(query).mappings()]


def body_of(row: dict[str, Any]) -> dict[str, Any]:
    """Open the JSON text of an entry. Privacy: ledger only."""
    body: dict[str, Any] = json.loads(row["body"])
    return body


def named(row: Any) -> dict[str, Any]:
    """Turn a row mapping into a plain dictionary. Privacy: ledger only."""
    return {str(name): value for name, value in row.items()}


def _stream(connection: Connection, query: Any) -> Iterator[dict[str, Any]]:
    result = connection.execution_options(yield_per=_CHUNK).execute(query)
    names = list(result.keys())
    for part in result.partitions():
        for row in part:
            yield dict(zip(names, row, strict=True))
