"""Steps on PostgreSQL that read without locks: whatever changes in between, nothing is believed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, delete, func, literal_column, select, text

from include.budget.errors import (
    AlreadyOpened,
    InvalidRequest,
    LedgerRefused,
    LedgerUnavailable,
    PoolFrozen,
    RoundMismatch,
    StaleFence,
    UnknownName,
    WrongState,
)
from include.budget.journal import Draft
from include.budget.store import connect, wire
from include.budget.store import engine as ledger_engine
from include.budget.store.engine import packets_of, told
from include.budget.store.optimistic import Optimistic
from include.budget.store.prepared import Prepared, on_postgres
from include.budget.store.tables import CHARGE
from include.budget.store.transaction import Link
from include.budget.store.wire import Wire
from tests.budget.servers import PostgresServer, unguarded
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
    assert written == ["before", "reserve"]  # the rival's; the late one was decided under the lock
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


def test_a_step_on_a_charge_that_was_taken_away_is_refused(world: World, engine: Engine) -> None:
    """A restored database may lack what this process has written: no row is no permission."""
    opened = world.opened()
    before = world.reader.head()
    with unguarded(engine) as connection:
        connection.execute(delete(CHARGE))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE dp_charge"))  # an empty table is read differently
    with pytest.raises(UnknownName):
        world.ledger.begin_round(opened, 1, gaussian_events(60))
    with pytest.raises(UnknownName):
        world.ledger.seal(opened, DIGEST)
    assert world.reader.head() == before


def test_a_connection_says_what_its_steps_rely_on(world: World) -> None:
    """A login, a database or the environment may have set anything else."""
    spoiled = "-c default_transaction_isolation=serializable -c lock_timeout=1ms"
    url = world.engine.url.update_query_dict({"options": spoiled, "client_encoding": "LATIN1"})
    other = World(connect(url))
    other.user("Jürgen", "survey")
    assert other.reserve(requester="Jürgen").state == "reserved"
    for setting, value in (
        ("transaction_isolation", "read committed"),
        ("client_encoding", "UTF8"),
        ("lock_timeout", "1min"),
    ):
        asked = Prepared(select(func.current_setting(setting).label("value")))
        with on_postgres(other.engine, locking=True) as session:
            assert session.ask(asked()) == [[{"value": value}]]
    other.engine.dispose()
    world.sound()


def test_a_commit_that_is_refused_is_a_collision(own_engine: Engine) -> None:
    """It answers no statement: the refusal comes where only the end of the group is due."""
    deferred = Prepared(text("INSERT INTO later VALUES (2, 7)"))
    with own_engine.begin() as connection:
        connection.execute(text("CREATE TABLE earlier (id int PRIMARY KEY)"))
        connection.execute(
            text(
                "CREATE TABLE later (id int, of int REFERENCES earlier (id) "
                "DEFERRABLE INITIALLY DEFERRED)"
            )
        )
    with pytest.raises(LedgerRefused), told(), on_postgres(own_engine, locking=False) as session:
        session.ask(deferred())


def test_a_head_that_somebody_holds_is_not_waited_for_without_end(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        ledger_engine, "_SETTINGS", "SELECT set_config('lock_timeout', '50', false)"
    )
    url = postgres.fresh()
    holder, waiter = World(connect(url)).registered(), World(connect(url))
    with holder.engine.begin() as connection:
        connection.execute(text("SELECT 1 FROM dp_head FOR UPDATE"))
        with pytest.raises(LedgerUnavailable, match="stayed locked"):
            waiter.reserve()
    assert waiter.reserve().state == "reserved"
    for world in (holder, waiter):
        world.engine.dispose()
    postgres.done(url)


def test_a_connection_that_lost_its_statements_prepares_them_again(world: World) -> None:
    world.reserve()
    pooled = packets_of(world.engine).raw_connection()
    pooled.cursor().execute("DEALLOCATE ALL")
    pooled.close()
    assert world.reserve("2").state == "reserved"


def test_a_connection_that_the_server_ended_costs_no_step(world: World) -> None:
    """A server may be restarted while a round is measured; its answer must not be lost for that."""
    opened = world.opened()
    world.ledger.begin_round(opened, 1, gaussian_events(60))
    with world.engine.connect() as connection:
        ended = connection.execute(
            text(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
        assert ended.scalars().all() == [True]
    world.ledger.answer_round(opened, 1, DIGEST)
    world.sound()


def test_a_name_that_is_taken_is_no_busy_ledger(world: World) -> None:
    first, second = world.published("1", "0.1"), world.sealed("2", "0.1")
    world.ledger.begin_publishing(second.charge_id)
    with pytest.raises(LedgerRefused, match="in the ledger already"):
        world.ledger.publish(
            second.charge_id, manifest_digest=DIGEST, uri="x", release_id=first.release_id
        )


def test_half_a_character_is_refused_in_words(world: World) -> None:
    with pytest.raises(InvalidRequest, match="half a character"):
        world.reserve(dag_id="\ud800")


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
