"""Verification: the chain, every balance and every state replayed, and compared with the tables.

A chain alone is no evidence: whoever owns the database can cut its tail and fix the balances. An
anchor is a pair (seq, hash) that was seen outside: in a signed checkpoint or a published manifest.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine

from include.budget.replay import MOST_PROBLEMS, Problem, Replay
from include.budget.store import queries
from include.budget.store.engine import reading
from include.budget.store.guards import missing_guards

log = logging.getLogger(__name__)


class Anchor(NamedTuple):
    """An entry that was seen outside the database.

    Args:
        seq: Its number.
        hash: Its hash.
        source: Where it was seen, for the sentence.
        used: What each pool had held or spent by then, where the source says so, units of 1e-12.
        manifest: SHA-256 of the manifest that names the entry, hex; empty for another source.

    Privacy: ledger only.
    """

    seq: int
    hash: str
    source: str = "an anchor"
    used: tuple[tuple[str, int], ...] = ()
    manifest: str = ""


@dataclass(frozen=True)
class VerifyReport:
    """What a verification found.

    Args:
        ok: True when nothing is wrong.
        problems: Everything that is, in order of entries.
        notes: What an auditor should know although it is not wrong.
        entries: Entries read.
        head_seq, head_hash: Where the journal ends.
        anchors: Anchors compared.

    Privacy: ledger only.
    """

    ok: bool
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]
    ledger_id: str
    entries: int
    head_seq: int
    head_hash: str
    anchors: int
    charges: int
    releases: int

    def to_dict(self) -> dict[str, Any]:
        """Describe the report in JSON types, the problems also as sentences."""
        return asdict(self) | {"sentences": [str(problem) for problem in self.problems]}


def verify(
    engine: Engine,
    anchors: Iterable[Anchor | tuple[int, str]] = (),
    damaged: Iterable[str] = (),
) -> VerifyReport:
    """Verify a ledger against itself and against what was seen outside.

    Args:
        engine: The ledger's database.
        anchors: Pairs (seq, hash) from checkpoints and manifests.
        damaged: A sentence for each exported checkpoint that says nothing.

    Returns:
        The report; malformed rows are findings.

    Raises:
        LedgerUnavailable: The database cannot be reached or has no ledger.

    Privacy: ledger only.
    """
    seen = [anchor if isinstance(anchor, Anchor) else Anchor(*anchor) for anchor in anchors]
    with reading(engine) as connection:
        head = queries.head(connection)
        replay = Replay(str(head["ledger_id"]))
        wanted = {anchor.seq for anchor in seen}
        found = [Problem(None, sentence.rstrip(".")) for sentence in damaged]
        hashes: dict[int, str] = {}
        parts: tuple[Iterator[Problem], ...] = (
            _walk(connection, replay, wanted, hashes),
            _head(head, replay),
            _anchors(seen, hashes, replay),
            _checkpoints(connection, hashes),
            _guards(connection),
            _postings(connection, replay),
            _tables(connection, replay),
        )
        for part in parts:
            found += _findings(part)
    problems = (*replay.problems, *found[:MOST_PROBLEMS])
    for problem in problems:
        log.warning("ledger verification: %s", problem)
    return VerifyReport(
        ok=not problems,
        problems=problems,
        notes=_notes(replay),
        ledger_id=str(head["ledger_id"]),
        entries=replay.seq,
        head_seq=replay.seq,
        head_hash=replay.hash,
        anchors=len(seen),
        charges=len(replay.tables["charge"]),
        releases=len(replay.tables["release"]),
    )


def _notes(replay: Replay) -> tuple[str, ...]:
    pools = replay.tables["pool"].values()
    frozen = sum(pool["status"] == "frozen" for pool in pools)
    stopped = (
        f"FROZEN: {frozen} of {len(pools)} pools; nothing can be reserved or opened until "
        "`admin reconcile` has opened them again",
    )
    return (stopped if frozen else ()) + _reconciled(replay)


def _reconciled(replay: Replay) -> tuple[str, ...]:
    if not replay.lost:
        return ()
    lost = sorted(replay.lost)
    return (
        f"RECONCILED: {len(lost)} entries were lost (of those seen outside); their budget was "
        "charged by an administrator's word",
        *(f"the lost entry {seq} was reconciled" for seq, _ in lost),
    )


def _findings(part: Iterator[Problem]) -> list[Problem]:
    """Collect a part's findings; rows that cannot even be read are one of them."""
    found: list[Problem] = []
    try:
        found.extend(part)
    except Exception as fault:
        found.append(Problem(None, f"rows cannot be read ({type(fault).__name__})"))
    return found


def _walk(
    connection: Connection, replay: Replay, wanted: set[int], hashes: dict[int, str]
) -> Iterator[Problem]:
    wanted |= {int(row["seq"]) for row in queries.checkpoints(connection)}
    for row in queries.entries(connection):
        replay.feed(row)
        if row["seq"] in wanted:
            hashes[row["seq"]] = str(row["hash"])
    replay.finish()
    yield from ()


def _head(head: Mapping[str, Any], replay: Replay) -> Iterator[Problem]:
    if (head["seq"], head["hash"]) != (replay.seq, replay.hash):
        yield Problem(None, f"the head says entry {head['seq']}, the journal ends at {replay.seq}")


def _anchors(
    seen: Iterable[Anchor], hashes: Mapping[int, str], replay: Replay
) -> Iterator[Problem]:
    for seq, hashed, source, used, manifest in seen:
        if hashes.get(seq) == hashed:
            yield from _manifest(seq, source, manifest, replay) if manifest else ()
            continue
        if (seq, hashed) not in replay.lost:
            what = "is missing" if seq > replay.seq else "has another hash"
            yield Problem(seq, f"{what} although {source} has seen it: the journal was rewritten")
            continue
        for pool_id in replay.uncharged(seq, hashed, used):
            yield Problem(
                seq,
                f"is lost, and its reconciliation charged {pool_id} less than {source} had seen "
                "used: budget was given back",
            )


def _manifest(seq: int, source: str, digest: str, replay: Replay) -> Iterator[Problem]:
    """Compare a manifest with the one its charge was published under, where it was."""
    charges = replay.tables["charge"].values()
    sealed = next((one for one in charges if one["sealed_seq"] == seq), None)
    if sealed is None:
        yield Problem(seq, f"seals no charge although {source} names it: the manifest was changed")
    elif sealed["manifest_digest"] not in (None, digest):
        yield Problem(
            seq,
            f"its charge was published under another manifest than {source}: the manifest was "
            "changed",
        )


def _checkpoints(connection: Connection, hashes: Mapping[int, str]) -> Iterator[Problem]:
    for row in queries.checkpoints(connection):
        if hashes.get(row["seq"]) != json.loads(row["body"])["hash"]:
            yield Problem(row["seq"], "a stored checkpoint has seen another hash")


def _guards(connection: Connection) -> Iterator[Problem]:
    for name in missing_guards(connection):
        yield Problem(None, f"the database guard {name} is gone, disabled or changed")


def _postings(connection: Connection, replay: Replay) -> Iterator[Problem]:
    for told, stored in zip_longest(replay.postings, queries.postings(connection)):
        if stored is None or told != tuple(stored.values()):
            seq = told[0] if told else stored["seq"]
            yield Problem(seq, "its postings differ from its text")
            return


def _tables(connection: Connection, replay: Replay) -> Iterator[Problem]:
    for table in queries.projections():
        key_column = queries.key_column(table)
        told = dict(replay.tables[table])
        for row in queries.projection(connection, table):
            key = row.pop(key_column)
            due = told.pop(key, None)
            if due is None:
                yield Problem(None, f"{table} {key} is in no journal entry")
                continue
            if table == "pool":
                held, spent = replay.balance(key)
                due = due | {"held_pico": held, "spent_pico": spent}
            for name in _differing(row, due):
                yield Problem(None, f"{table} {key}: {name} differs from the journal")
        for key in told:
            yield Problem(None, f"{table} {key} is journalled and gone")


def _differing(row: Mapping[str, Any], due: Mapping[str, Any]) -> list[str]:
    if row == due:
        return []
    return [name for name in sorted({*row, *due}) if row.get(name) != due.get(name)]
