"""Least privilege on PostgreSQL: what a writer, an admin and an auditor can and cannot do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, exc, text

from include.budget.errors import LedgerRefused
from include.budget.ledger import Ledger
from include.budget.roles import create_roles
from include.budget.store import connect
from include.budget.verify import verify
from tests.budget.servers import PostgresServer, SqliteFiles
from tests.budget.world import DIGEST, World, pico


@pytest.fixture
def logins(postgres: PostgresServer) -> Iterator[dict[str, Engine]]:
    url = postgres.fresh()
    superuser = connect(url)
    create_roles(superuser, own=True)
    create_roles(superuser)
    engines = {"superuser": superuser}
    for role in ("writer", "admin", "auditor", "stranger"):
        with superuser.begin() as connection:
            connection.execute(text(f"DROP ROLE IF EXISTS {role}_login"))
            connection.execute(text(f"CREATE ROLE {role}_login LOGIN"))
            if role != "stranger":
                connection.execute(text(f"GRANT dp_ledger_{role} TO {role}_login"))
        engines[role] = connect(postgres.url(str(url.database), user=f"{role}_login"))
    World(engines["admin"]).registered()
    yield engines
    for engine in engines.values():
        engine.dispose()
    postgres.done(url)


def test_a_writer_can_do_its_work_and_nothing_else(logins: dict[str, Engine]) -> None:
    world = World(logins["writer"])
    stated = world.sealed("statements", "0.1")
    world.ledger.state_table(stated.charge_id, DIGEST, beside={})
    world.ledger.state_report(stated.charge_id, DIGEST, beside={}, passed=True)
    world.ledger.state_approval(stated.charge_id, by="berta", table=DIGEST, report=DIGEST)
    world.published()
    world.ledger.void(world.reserve("2", "0.5").charge_id, "x")
    world.ledger.withdraw("monthly-period_1", "x", "steward")
    with pytest.raises(LedgerRefused, match="role"):
        world.user("new", "survey")
    with pytest.raises(LedgerRefused):
        world.ledger.freeze("x", actor="writer")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE dp_entry SET body = '{}'",
        "DELETE FROM dp_entry",
        "TRUNCATE dp_entry CASCADE",
        "INSERT INTO dp_posting VALUES (1, 9, 'p', 'held', 1)",
        "UPDATE dp_pool SET cap_pico = 1",
        "UPDATE dp_pool SET spent_pico = 0",
        "UPDATE dp_pool SET held_pico = held_pico + 1",
        "UPDATE dp_pool SET status = 'open'",
        "UPDATE dp_charge SET granted_pico = 1",
        "UPDATE dp_limit SET value_pico = NULL",
        "INSERT INTO dp_limit VALUES ('l', 's', NULL, 'a', 'r', 't')",
        "ALTER TABLE dp_entry DISABLE TRIGGER ALL",
        "DROP TRIGGER dp_entry_update ON dp_entry",
        "CREATE OR REPLACE FUNCTION dp_refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'",
        "SET session_replication_role = replica",
        "DROP TABLE dp_entry",
    ],
)
def test_a_writer_is_refused_by_its_rights(logins: dict[str, Engine], statement: str) -> None:
    refusal = pytest.raises(exc.ProgrammingError, match=r"permission denied|must be owner")
    with refusal, logins["writer"].begin() as connection:
        connection.execute(text(statement))


def test_the_right_that_locking_needs_is_useless_for_writing(logins: dict[str, Engine]) -> None:
    refused = pytest.raises(exc.IntegrityError, match="next entry only")
    with refused, logins["writer"].begin() as connection:
        connection.execute(text("UPDATE dp_head SET seq = seq + 1"))


def test_a_writer_cannot_borrow_the_guard_that_writes_as_the_owner(
    logins: dict[str, Engine],
) -> None:
    """A trigger of one's own, on a table of one's own, would post what no entry says."""
    refused = pytest.raises(exc.ProgrammingError, match="permission denied for function")
    with refused, logins["writer"].begin() as connection:
        connection.execute(text("CREATE TEMP TABLE mine (LIKE dp_entry)"))
        connection.execute(
            text(
                "CREATE TRIGGER mine AFTER INSERT ON mine FOR EACH ROW "
                "EXECUTE FUNCTION dp_entry_post()"
            )
        )


def test_a_temporary_table_of_the_same_name_deceives_no_guard(logins: dict[str, Engine]) -> None:
    """A guard runs as the owner; unless its search path says otherwise pg_temp comes first."""
    forged = "INSERT INTO public.dp_entry VALUES (99, 'x', NULL, 'p', 'h', '{\"postings\"\\: []}')"
    refusal = pytest.raises(exc.IntegrityError, match="follow the head")
    with refusal, logins["writer"].begin() as connection:
        connection.execute(text("CREATE TEMP TABLE dp_head (id int, seq bigint, hash text)"))
        connection.execute(text("INSERT INTO pg_temp.dp_head VALUES (1, 98, 'p')"))
        connection.execute(text("GRANT ALL ON pg_temp.dp_head TO PUBLIC"))
        connection.execute(text(forged))


def test_an_operator_of_a_writers_own_is_not_found_by_a_guard(logins: dict[str, Engine]) -> None:
    """Older databases let everybody create in the schema; a better match would run as the owner."""
    with logins["superuser"].begin() as connection:
        connection.execute(text("GRANT CREATE ON SCHEMA public TO PUBLIC"))
    with logins["writer"].begin() as connection:
        connection.execute(
            text(
                "CREATE FUNCTION public.mine(bigint, numeric) RETURNS bigint LANGUAGE plpgsql "
                "AS $$BEGIN RAISE EXCEPTION 'run as %', current_user; END$$"
            )
        )
        connection.execute(
            text(
                "CREATE OPERATOR public.+ "
                "(LEFTARG = bigint, RIGHTARG = numeric, FUNCTION = public.mine)"
            )
        )
    world = World(logins["writer"])
    assert world.published().state == "published"
    world.sound()
    with logins["writer"].begin() as connection:  # its database may serve another test
        connection.execute(text("DROP FUNCTION public.mine CASCADE"))


@pytest.mark.parametrize(
    "function",
    [
        "concat_ws(text, text, bigint, text, text) RETURNS text",
        "convert_to(text, text) RETURNS bytea",
        "dp_append(text, text, text, text, text, text, OUT seq bigint, OUT hash text)",
    ],
)
def test_a_function_of_a_writers_own_is_not_run_by_an_admin(
    logins: dict[str, Engine], function: str
) -> None:
    """What numbers an entry runs as whoever takes the step: a better match would be his hands."""
    with logins["superuser"].begin() as connection:
        connection.execute(text("GRANT CREATE ON SCHEMA public TO PUBLIC"))
    with logins["writer"].begin() as connection:
        connection.execute(
            text(
                f"CREATE FUNCTION public.{function} LANGUAGE plpgsql "
                "AS $$BEGIN RAISE EXCEPTION 'run as %', current_user; END$$"
            )
        )
    world = World(logins["admin"])
    try:
        assert world.published().state == "published"
        world.sound()
    finally:
        with logins["writer"].begin() as connection:  # its database may serve another test
            connection.execute(text(f"DROP FUNCTION public.{function.split(' RETURNS')[0]}"))


def test_an_auditor_verifies_and_cannot_write(logins: dict[str, Engine]) -> None:
    World(logins["writer"]).published()
    assert verify(logins["auditor"]).ok
    with pytest.raises(LedgerRefused):
        World(logins["auditor"]).reserve("new")
    with pytest.raises(exc.ProgrammingError), logins["auditor"].begin() as connection:
        connection.execute(text("SELECT mac FROM dp_snapshot"))


def test_an_admin_changes_limits_and_not_history(logins: dict[str, Engine]) -> None:
    ledger = Ledger(logins["admin"])
    ledger.change_limit("population:people", pico("1.5"), actor="admin", reason="x")
    ledger.freeze("inspection", actor="admin")
    with pytest.raises(exc.ProgrammingError), logins["admin"].begin() as connection:
        connection.execute(text("UPDATE dp_limit SET value_pico = 1"))
    assert verify(logins["admin"]).ok


def test_a_stranger_reads_nothing(logins: dict[str, Engine]) -> None:
    with pytest.raises(exc.ProgrammingError), logins["stranger"].begin() as connection:
        connection.execute(text("SELECT * FROM dp_pool"))


def test_sqlite_has_no_roles(sqlite: SqliteFiles) -> None:
    assert create_roles(connect(sqlite.fresh())) == ()
