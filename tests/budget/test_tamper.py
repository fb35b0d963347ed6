"""Attacks on the ledger: refused by a guard or found by verification; each test says by what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, exc, text

from include.budget import reservation
from include.budget.journal import entry_hash
from include.budget.partitions import rooms
from include.budget.policy import Room
from include.budget.verify import Anchor, VerifyReport
from tests.budget.servers import unguarded
from tests.budget.world import World, pico

POOL = "dataset:people:zcdp:1"


@pytest.fixture
def full(world: World) -> World:
    """A ledger with some history: a release, a refusal, a reservation."""
    return _history(world)


@pytest.fixture
def spoiled(own_engine: Engine) -> Iterator[World]:
    """The same, owned by somebody who drops every guard first."""
    yield _history(World(own_engine).registered())


def _history(world: World) -> World:
    world.published("1")
    world.reserve("2", "3")
    world.reserve("3", "0.5")
    return world


def _run(engine: Engine, *statements: str) -> None:
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("COMMIT")  # inside a transaction the pragma does nothing
            connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
            connection.exec_driver_sql("BEGIN")
        for statement in statements:
            connection.execute(text(statement))
        connection.commit()


@pytest.mark.parametrize(
    ("statement", "guard"),
    [
        ("UPDATE dp_entry SET body = '{}' WHERE seq = 4", "append-only"),
        ("UPDATE dp_posting SET amount_pico = 1 WHERE seq = 4", "append-only"),
        ("DELETE FROM dp_posting WHERE seq = 4", "append-only"),
        ("DELETE FROM dp_entry WHERE seq = 4", "append-only"),
        (f"UPDATE dp_pool SET cap_pico = cap_pico * 2 WHERE pool_id = '{POOL}'", "never change"),
        (
            f"UPDATE dp_pool SET spent_pico = spent_pico - 1 WHERE pool_id = '{POOL}'",
            "never falls|entries only",
        ),
        (f"UPDATE dp_pool SET held_pico = 0 WHERE pool_id = '{POOL}'", "journal entries only"),
        (f"DELETE FROM dp_pool WHERE pool_id = '{POOL}'", "never removed"),
        ("UPDATE dp_charge SET granted_pico = 1", "never changes"),
        ("UPDATE dp_charge SET state = 'reserved' WHERE state = 'published'", "no legal step"),
        ("UPDATE dp_charge SET fence = 0 WHERE fence = 1", "never falls|entries only"),
        ("UPDATE dp_charge SET plan = '{}' WHERE state = 'published'", "opened never changes"),
        ("UPDATE dp_charge SET amounts = '{}' WHERE state = 'published'", "opened never changes"),
        ("UPDATE dp_charge SET rounds_closed = -1 WHERE state = 'published'", "sealed and pub"),
        ("UPDATE dp_charge SET sealed_seq = 1 WHERE state = 'published'", "sealed and published"),
        ("UPDATE dp_charge SET uri = 'x' WHERE state = 'published'", "sealed and published"),
        ("DELETE FROM dp_charge", "never removed"),
        ("UPDATE dp_dataset SET reuse = 'x'", "only the schema"),
        ("UPDATE dp_limit SET value_pico = NULL", "written once"),
        ("UPDATE dp_population SET delta_exponent = 5", "written once"),
        ("UPDATE dp_release SET manifest_digest = 'x'", "never changes"),
        ("DELETE FROM dp_release", "never removed"),
        ("UPDATE dp_head SET seq = seq - 1", "next entry only"),
        ("DELETE FROM dp_head", "head|removed"),
    ],
)
def test_sql_against_the_journal_and_the_caps_is_refused(
    full: World, statement: str, guard: str
) -> None:
    with pytest.raises(exc.IntegrityError, match=guard):
        _run(full.engine, statement)
    full.sound()


def test_a_withdrawal_is_never_undone(full: World) -> None:
    full.ledger.withdraw("monthly-period_1", "x", "steward")
    with pytest.raises(exc.IntegrityError, match="nor what was withdrawn"):
        _run(full.engine, "UPDATE dp_release SET withdrawn_at = NULL")
    full.sound()


def test_an_entry_that_does_not_follow_the_head_is_refused(full: World) -> None:
    head = full.reader.head()
    row = (
        "INSERT INTO dp_entry (seq, kind, prev_hash, hash, body) VALUES ({}, 'x', '{}', 'h', '{}')"
    )
    body = json.dumps({"postings": []})
    for seq, prev in ((head["seq"] + 2, head["hash"]), (head["seq"] + 1, "0" * 64)):
        with pytest.raises(exc.IntegrityError, match="follow the head"):
            _run(full.engine, row.format(seq, prev, body).replace(":", r"\:"))


def _forge(world: World, postings: list[Any]) -> None:
    """Append an entry that follows the head, as somebody with the writer's rights can."""
    head = world.reader.head()
    seq = head["seq"] + 1
    body = json.dumps(
        {
            "seq": seq,
            "kind": "void",
            "charge_id": None,
            "at": "t",
            "actor": "a",
            "words": "w",
            "facts": {},
            "changes": [],
            "postings": postings,
        }
    )
    with world.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO dp_entry (seq, kind, charge_id, prev_hash, hash, body) "
                "VALUES (:seq, 'void', NULL, :prev, :hash, :body)"
            ),
            {
                "seq": seq,
                "prev": head["hash"],
                "hash": entry_hash(seq, head["hash"], body),
                "body": body,
            },
        )


@pytest.mark.parametrize(
    ("postings", "guard"),
    [
        ([[POOL, "held", -5]], "sum to zero"),
        ([["no pool", "held", 5], ["no pool", "available", -5]], "every pool must be there"),
        ([[POOL, "spent", -5], [POOL, "available", 5]], "spent_grows|CHECK"),
        ([[POOL, "held", -(10**18)], [POOL, "available", 10**18]], "dp_pool_held|CHECK"),
        ([[POOL, "held", 10**18], [POOL, "available", -(10**18)]], "dp_pool_cap|CHECK"),
        ([[POOL, "gift", 5], [POOL, "available", -5]], "account|CHECK"),
    ],
)
def test_a_forged_entry_cannot_move_budget_where_it_may_not_go(
    full: World, postings: list[Any], guard: str
) -> None:
    with pytest.raises(exc.IntegrityError, match=guard):
        _forge(full, postings)
    full.sound()


@pytest.mark.parametrize(
    ("postings", "finding"),
    [
        ([[POOL, "held", -5], [POOL, "available", 5]], "holds or has spent what no charge says"),
        ([[POOL, "held", -5], [POOL, "spent", 5]], "holds or has spent what no charge says"),
        ([[POOL, "issued", -1], [POOL, "available", 1]], "another amount than its cap"),
    ],
)
def test_a_forged_entry_that_the_database_accepts_is_found(
    full: World, postings: list[Any], finding: str
) -> None:
    """Whoever has the writer's rights can append what keeps all sums; no charge vouches for it."""
    _forge(full, postings)
    assert finding in _found(full)


@pytest.mark.parametrize("paying", ["nobody", "user", "dataset"])
def test_a_charge_that_spares_a_pool_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch, paying: str
) -> None:
    """Whoever has the writer's rights can write a whole life that is paid by whom they like."""

    def some(*given: Any, **named: Any) -> list[Room]:
        return [room for room in rooms(*given, **named) if room.pool_id.startswith(paying)]

    monkeypatch.setattr(reservation, "rooms", some)
    world.published()
    assert "to other pools than those of its dataset and user" in _found(world)


def test_a_charge_on_a_frozen_or_retired_pool_is_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    first: list[Any] = []

    def stale(pools: Any, *given: Any, **named: Any) -> list[Room]:
        first.append(pools)
        return rooms(first[0], *given, **named)

    monkeypatch.setattr(reservation, "rooms", stale)
    monkeypatch.setattr(reservation, "_check", lambda *_: None)
    monkeypatch.setattr(reservation, "_words", lambda *_: "w")
    world.reserve("1", "0.1")
    world.sound()
    world.ledger.new_generation(
        "population:people", pico("1"), actor="admin", authorised_by="board", reason="x"
    )
    world.reserve("2", "0.1")
    assert "to other pools than those of its dataset and user" in _found(world)
    first.clear()
    world.ledger.freeze("x", actor="admin")
    world.reserve("3", "0.1")
    assert "to a pool that is frozen" in _found(world)


def test_truncate_is_refused(postgres: Any, full: World) -> None:
    if full.engine.dialect.name != "postgresql":
        pytest.skip("SQLite has no TRUNCATE")
    for table in ("dp_entry", "dp_posting", "dp_pool", "dp_charge", "dp_limit"):
        with pytest.raises(exc.IntegrityError, match=r"append-only|never removed|written once"):
            _run(full.engine, f"TRUNCATE {table} CASCADE")
    full.sound()


@pytest.mark.parametrize(
    "table", ["dp_entry", "dp_posting", "dp_pool", "dp_charge", "dp_limit", "dp_dataset"]
)
def test_insert_or_replace_is_refused(full: World, table: str) -> None:
    """SQLite's REPLACE walks past BEFORE DELETE triggers; an insert guard stops it."""
    if full.engine.dialect.name != "sqlite":
        pytest.skip("PostgreSQL has no INSERT OR REPLACE")
    with pytest.raises(exc.IntegrityError, match=r"follow|entries only|replaced|once"):
        _run(full.engine, f"INSERT OR REPLACE INTO {table} SELECT * FROM {table} LIMIT 1")
    full.sound()


# From here on the attacker owns the database and has dropped the guards: verification must find it.


def _unguarded(engine: Engine) -> None:
    with engine.connect() as connection:
        for name, table in _guards(connection):
            on = f" ON {table}" if engine.dialect.name == "postgresql" else ""
            connection.execute(text(f"DROP TRIGGER {name}{on}"))
        connection.commit()


def _guards(connection: Connection) -> list[tuple[str, str]]:
    query = {
        "sqlite": "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger'",
        "postgresql": "SELECT tgname, relname FROM pg_trigger t JOIN pg_class c ON c.oid = tgrelid "
        "WHERE NOT tgisinternal",
    }[connection.dialect.name]
    return [(str(name), str(table)) for name, table in connection.execute(text(query))]


def _found(world: World, *anchors: Anchor) -> str:
    report: VerifyReport = world.verify(*anchors)
    assert not report.ok
    return "; ".join(map(str, report.problems))


def test_a_dropped_guard_is_found(spoiled: World) -> None:
    _unguarded(spoiled.engine)
    told = _found(spoiled)
    assert "guard dp_entry_update is gone" in told and "guard dp_entry_post is gone" in told


def test_a_disabled_guard_is_found(spoiled: World) -> None:
    if spoiled.engine.dialect.name != "postgresql":
        pytest.skip("SQLite cannot disable a trigger")
    _run(spoiled.engine, "ALTER TABLE dp_entry DISABLE TRIGGER dp_entry_update")
    assert "guard dp_entry_update is gone, disabled or changed" in _found(spoiled)


@pytest.mark.parametrize(
    ("database", "guard", "statements"),
    [
        ("postgresql", "dp_pool_cap", ["ALTER TABLE dp_pool DROP CONSTRAINT dp_pool_cap"]),
        ("postgresql", "dp_charge_key", ["ALTER TABLE dp_charge DROP CONSTRAINT dp_charge_key"]),
        ("postgresql", "dp_charge_period", ["DROP INDEX dp_charge_period"]),
        (
            "postgresql",
            "dp_pool_changes",
            [
                "CREATE OR REPLACE FUNCTION dp_pool_changes() RETURNS trigger LANGUAGE plpgsql "
                "AS 'BEGIN RETURN NEW; END'"
            ],
        ),
        (
            "sqlite",
            "dp_pool_cap",
            [
                "PRAGMA writable_schema = ON",
                "UPDATE sqlite_master SET sql = replace(sql, 'dp_pool_cap', 'x')",
            ],
        ),
        ("sqlite", "dp_charge_period", ["DROP INDEX dp_charge_period"]),
        (
            "sqlite",
            "dp_pool_fixed",
            [
                "DROP TRIGGER dp_pool_fixed",
                "CREATE TRIGGER dp_pool_fixed BEFORE UPDATE ON dp_pool WHEN 0 BEGIN SELECT 1; END",
            ],
        ),
    ],
)
def test_a_guard_that_says_nothing_any_more_is_found(
    spoiled: World, database: str, guard: str, statements: list[str]
) -> None:
    if spoiled.engine.dialect.name != database:
        pytest.skip("each database has its own words")
    _run(spoiled.engine, *statements)
    assert f"the database guard {guard} is gone" in _found(spoiled)


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        (
            "UPDATE dp_entry SET body = replace(body, 'lab', 'bal') WHERE seq = 5",
            "entry 5: its text",
        ),
        ("UPDATE dp_entry SET kind = 'open' WHERE seq = 5", "entry 5: column kind"),
        ("DELETE FROM dp_entry WHERE seq = 6", "entry 7: stands where entry 6 must"),
        (f"UPDATE dp_pool SET spent_pico = 0 WHERE pool_id = '{POOL}'", "spent_pico differs"),
        (
            f"UPDATE dp_pool SET cap_pico = 4 * cap_pico WHERE pool_id = '{POOL}'",
            "cap_pico differs",
        ),
        (
            "UPDATE dp_posting SET amount_pico = amount_pico + 1 WHERE seq = 6",
            "entry 6: its postings",
        ),
        ("DELETE FROM dp_posting WHERE seq = 6", "entry 6: its postings"),
        ("UPDATE dp_charge SET state = 'void' WHERE state = 'reserved'", "state differs"),
        ("DELETE FROM dp_charge WHERE state = 'denied'", "journalled and gone"),
        ("UPDATE dp_limit SET value_pico = NULL", "value_pico differs"),
        ("UPDATE dp_release SET uri = 'elsewhere'", "uri differs"),
        ("UPDATE dp_head SET seq = 3", "the head says entry 3"),
        ("UPDATE dp_population SET delta_exponent = 5", "delta_exponent differs"),
    ],
)
def test_what_an_owner_changes_is_found(full: World, statement: str, finding: str) -> None:
    _owned(full.engine, statement)
    assert finding in _found(full)


def test_malformed_rows_are_findings_and_never_crash(full: World) -> None:
    bodies = ["", "[]", "null", '{"seq": 5}', '{"postings": [[1]]}', "\x7f not json"]
    for seq, body in enumerate(bodies, start=4):
        _rewrite(full.engine, seq, body)
    told = _found(full)
    for seq in range(4, 4 + len(bodies)):
        assert f"entry {seq}" in told


def _rewrite(engine: Engine, seq: int, body: str) -> None:
    quoted = body.replace(":", r"\:")
    _owned(engine, f"UPDATE dp_entry SET body = '{quoted}' WHERE seq = {seq}")


def test_cutting_the_tail_and_fixing_the_balances_is_found_by_an_anchor_only(
    full: World,
) -> None:
    published = full.reader.charges(state="published")[0]
    assert published.sealed_seq is not None and published.sealed_hash is not None
    manifest = Anchor(published.sealed_seq, published.sealed_hash, "the manifest of monthly")
    cut = _rewound(full, keep=4)
    assert cut.verify().ok, "without an anchor the forgery is perfect"
    assert "the manifest of monthly has seen it" in _found(cut, manifest)


def _rewound(world: World, keep: int) -> World:
    """Forge the ledger as it was after some entries: rows, balances, head and guards in place."""
    head = world.reader.entries()[keep - 1]
    _owned(
        world.engine,
        f"DELETE FROM dp_posting WHERE seq > {keep}",
        "DELETE FROM dp_release",
        "DELETE FROM dp_charge",
        f"DELETE FROM dp_entry WHERE seq > {keep}",
        "UPDATE dp_pool SET held_pico = 0, spent_pico = 0",
        f"UPDATE dp_head SET seq = {keep}, hash = '{head.hash}'",
    )
    return world


def _owned(engine: Engine, *statements: str) -> None:
    """Run SQL as the owner can: no guard fires, and afterwards all stand again."""
    with unguarded(engine) as connection:
        for statement in statements:
            connection.execute(text(statement))
