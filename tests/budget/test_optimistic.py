"""Steps on PostgreSQL that read without locks: whatever changes in between, nothing is believed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, literal_column, select

from include.budget.errors import (
    AlreadyOpened,
    LedgerUnavailable,
    PoolFrozen,
    RoundMismatch,
    StaleFence,
    WrongState,
)
from include.budget.journal import Draft
from include.budget.store import connect, wire
from include.budget.store.engine import told
from include.budget.store.optimistic import Optimistic
from include.budget.store.prepared import Prepared, on_postgres
from include.budget.store.transaction import Link
from include.budget.store.wire import Wire
from tests.budget.servers import PostgresServer
from tests.budget.world import DIGEST, World, gaussian_events, pico

_ONE = literal_column("1").label("one")
Meanwhile = Callable[[Callable[[World], object]], list[str]]


@pytest.fixture
def place(postgres: PostgresServer) -> PostgresServer:
    """Only PostgreSQL: SQLite has one writer at a time."""
    return postgres


@pytest.fixture
def meanwhile(world: World, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Meanwhile]:
    """Let somebody else act between a step's reading and its writing, once."""
    other = World(connect(engine.url))
    append = Optimistic.append

    def plan(act: Callable[[World], object]) -> list[str]:
        written: list[str] = []

        def interrupted(step: Optimistic, draft: Draft) -> Link:
            if not written:
                written.append("before")
                act(other)
            link = append(step, draft)
            written.append(draft.kind)
            return link

        monkeypatch.setattr(Optimistic, "append", interrupted)
        return written

    yield plan
    other.engine.dispose()


def test_a_step_writes_in_one_trip(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    trips: list[int] = []
    send = Wire.send

    def counted(used: Wire, *groups: Any) -> Any:
        trips.append(len(groups))
        return send(used, *groups)

    monkeypatch.setattr(Wire, "send", counted)
    charge = world.reserve()
    opened = world.open(charge)
    world.ledger.seal(opened, DIGEST)
    # One group to read; one to write, one to be on disk. What open has left is known to seal.
    assert trips == [1, 2, 1, 2, 2]
    world.sound()


def test_a_pool_frozen_meanwhile_holds_nothing(world: World, meanwhile: Meanwhile) -> None:
    before = world.figures()
    meanwhile(lambda other: other.ledger.freeze("a drill", actor="admin"))
    with pytest.raises(PoolFrozen):
        world.reserve()
    assert world.figures() == before
    world.sound()


def test_a_pool_frozen_meanwhile_opens_nothing(world: World, meanwhile: Meanwhile) -> None:
    charge = world.reserve()
    meanwhile(lambda other: other.ledger.freeze("a drill", actor="admin"))
    with pytest.raises(PoolFrozen):
        world.open(charge)
    assert world.reader.charge(charge.charge_id).state == "reserved"
    world.sound()


def test_a_limit_lowered_meanwhile_binds(world: World, meanwhile: Meanwhile) -> None:
    meanwhile(
        lambda other: other.ledger.change_limit(
            "user:lab@survey", pico("0.5"), actor="admin", reason="less"
        )
    )
    assert world.reserve().granted_pico == pico("0.5")
    world.sound()


def test_a_generation_opened_meanwhile_is_the_one_that_is_charged(
    world: World, meanwhile: Meanwhile
) -> None:
    meanwhile(
        lambda other: other.ledger.new_generation(
            "user:lab@survey", pico("6"), actor="admin", authorised_by="board", reason="a new year"
        )
    )
    charge = world.reserve()
    assert any(pool_id.endswith(":2") for pool_id in charge.amounts_pico)
    world.sound()


def test_room_taken_meanwhile_is_not_granted_twice(world: World, meanwhile: Meanwhile) -> None:
    world.user("small", "survey", "1")
    written = meanwhile(lambda other: other.reserve("rival", requester="small"))
    charge = world.reserve("late", requester="small")
    assert written == ["before", "reserve"]  # the rival's; the late one was decided under locks
    assert charge.state == "denied"
    world.sound()


def test_a_denial_is_decided_under_locks(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.user("small", "survey", "1")
    rival = world.reserve("rival", requester="small")
    other = World(connect(world.engine.url))
    question, asked = Optimistic.question, []

    def read(step: Optimistic, *what: str) -> object:
        found = question(step, *what)
        if not asked:
            asked.append(other.ledger.void(rival.charge_id, "changed my mind"))
        return found

    monkeypatch.setattr(Optimistic, "question", read)
    late = world.reserve("late", requester="small", accept_at_least_pico=pico("1"))
    assert asked and late.granted_pico == pico("1")
    other.engine.dispose()
    world.sound()


def test_a_repeated_question_is_answered_although_the_pools_are_frozen(world: World) -> None:
    charge = world.reserve()
    world.ledger.freeze("a drill", actor="admin")
    again = world.reserve()
    assert again.replayed and again.charge_id == charge.charge_id
    world.sound()


def test_a_key_taken_meanwhile_gives_its_charge(world: World, meanwhile: Meanwhile) -> None:
    taken: list[str] = []
    meanwhile(lambda other: taken.append(other.reserve().charge_id))
    again = world.reserve()
    assert again.replayed and [again.charge_id] == taken
    world.sound()


def test_a_charge_opened_meanwhile_is_opened_once(world: World, meanwhile: Meanwhile) -> None:
    charge = world.reserve()
    meanwhile(lambda other: other.open(charge))
    with pytest.raises(AlreadyOpened):
        world.open(charge)
    world.sound()


def test_a_charge_resumed_meanwhile_is_not_sealed_by_its_zombie(
    world: World, meanwhile: Meanwhile
) -> None:
    opened = world.opened()
    meanwhile(lambda other: other.ledger.resume(opened.charge_id, attempt="2", last_round=0))
    with pytest.raises(StaleFence):
        world.ledger.seal(opened, DIGEST)
    world.sound()


def test_a_round_begun_meanwhile_is_not_begun_again(world: World, meanwhile: Meanwhile) -> None:
    opened = world.opened()
    meanwhile(lambda other: other.ledger.begin_round(opened, 1, gaussian_events(60)))
    with pytest.raises(RoundMismatch):
        world.ledger.begin_round(opened, 1, gaussian_events(60))
    world.sound()


def test_a_round_begun_meanwhile_keeps_the_seal_away(world: World, meanwhile: Meanwhile) -> None:
    opened = world.opened()
    meanwhile(lambda other: other.ledger.begin_round(opened, 1, gaussian_events(60)))
    with pytest.raises(RoundMismatch):
        world.ledger.seal(opened, DIGEST)
    world.sound()


def test_what_was_written_last_is_believed_no_further_than_the_database(world: World) -> None:
    opened = world.opened()
    other = World(connect(world.engine.url))
    other.ledger.resume(opened.charge_id, attempt="2", last_round=0)
    with pytest.raises(StaleFence):
        world.ledger.seal(opened, DIGEST)
    other.engine.dispose()
    world.sound()


def test_a_charge_moved_on_elsewhere_is_answered_as_it_is_now(world: World) -> None:
    """What this process remembers allows less, or repeats an older answer: neither is given."""
    sealed = world.sealed()
    other = World(connect(world.engine.url))
    told: dict[str, Any] = {"manifest_digest": "cd" * 32, "uri": "x", "release_id": "monthly"}
    other.ledger.begin_publishing(sealed.charge_id)
    again = world.ledger.begin_publishing(sealed.charge_id)
    assert again.replayed and again.state == "publishing"
    other.ledger.publish(sealed.charge_id, **told)
    assert world.ledger.begin_publishing(sealed.charge_id).state == "published"
    assert world.ledger.publish(sealed.charge_id, **told).replayed
    other.engine.dispose()
    world.sound()


def test_a_charge_voided_meanwhile_is_not_opened(world: World, meanwhile: Meanwhile) -> None:
    charge = world.reserve()
    meanwhile(lambda other: other.ledger.void(charge.charge_id, "changed my mind"))
    with pytest.raises(WrongState):
        world.open(charge)
    world.sound()


def test_a_refusal_leaves_the_connection_usable(engine: Engine) -> None:
    wrong, right = Prepared(select((_ONE / 0).label("one"))), Prepared(select(_ONE))
    with pytest.raises(LedgerUnavailable), told(), on_postgres(engine, locking=False) as session:
        session.ask(right(), wrong(), right())
    with on_postgres(engine, locking=True) as session:
        assert len(session.ask(right(), right())) == 2


def test_an_interrupted_conversation_is_given_to_nobody(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = Prepared(select(_ONE))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(wire, "_answers", interrupted)
        with pytest.raises(KeyboardInterrupt), on_postgres(engine, locking=False) as session:
            session.ask(right())
    with on_postgres(engine, locking=False) as session:
        assert session.ask(right()) is not None


def test_a_text_with_nul_is_refused_and_not_cut(world: World, engine: Engine) -> None:
    before = world.reader.head()["seq"]
    with (
        pytest.raises(LedgerUnavailable),
        told(),
        on_postgres(engine, locking=False) as session,
    ):
        session._wire.send([("SELECT $1::text", ("cut\0here",))])
    assert world.reader.head()["seq"] == before
