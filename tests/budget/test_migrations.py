"""The ledger's tables come from migrations of their own, alone or by Airflow's command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import CheckConstraint, create_engine, inspect, text

from include.budget.errors import LedgerUnavailable, UnknownName
from include.budget.ledger import Ledger
from include.budget.migrations import METADATA, VERSION_TABLE, migrate
from include.budget.reader import LedgerReader
from include.budget.roles import create_roles
from include.budget.store import connect, locks
from include.budget.store.engine import reading
from include.budget.store.guards import missing_guards
from include.budget.store.prepared import Prepared
from tests.budget.servers import PostgresServer, SqliteFiles
from tests.budget.world import World


def test_migrating_twice_changes_nothing(place: SqliteFiles | PostgresServer) -> None:
    engine = connect(place.bare())
    migrate(engine)
    head = LedgerReader(engine).head()
    migrate(engine)
    assert LedgerReader(engine).head() == head
    with reading(engine) as connection:
        assert missing_guards(connection) == []
    engine.dispose()


def test_every_ledger_has_an_id_of_its_own(place: SqliteFiles | PostgresServer) -> None:
    ids = set()
    for _ in range(2):
        engine = connect(place.bare())
        migrate(engine)
        ids.add(LedgerReader(engine).head()["ledger_id"])
        engine.dispose()
    assert len(ids) == 2


def test_two_ledgers_in_one_database_keep_to_their_schemas(postgres: PostgresServer) -> None:
    """A guard names its tables in full, also where a schema's name must be quoted."""
    database, worlds = postgres.bare(), []
    for schema in ("first", "Second"):
        maker = connect(database)
        with maker.begin() as connection:
            connection.execute(text(f'CREATE SCHEMA "{schema}"'))
        maker.dispose()
        path = {"options": f'-c search_path="{schema}"'}
        engine = connect(database.update_query_dict(path))
        migrate(engine)
        create_roles(engine, own=True)
        worlds.append(World(engine).registered())
    first, second = worlds
    charge = first.published()
    with pytest.raises(UnknownName):
        second.reader.charge(charge.charge_id)
    second.reserve("2", "0.5")
    for world in worlds:
        world.sound()
        world.engine.dispose()


def test_the_migrations_make_what_the_models_say(place: SqliteFiles | PostgresServer) -> None:
    engine = create_engine(place.fresh())
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        assert compare_metadata(context, METADATA) == []
        checks = {
            table: {check["name"] for check in inspect(connection).get_check_constraints(table)}
            for table in METADATA.tables
        }
    engine.dispose()
    for name, table in METADATA.tables.items():
        named = {str(c.name) for c in table.constraints if isinstance(c, CheckConstraint)}
        assert checks[name] == named, name


def test_amounts_on_sqlite_are_whole_numbers_only(sqlite: SqliteFiles) -> None:
    engine = create_engine(sqlite.fresh())
    for value in ("0.1", "'x'"):
        with pytest.raises(Exception, match="cannot store"), engine.begin() as connection:
            connection.exec_driver_sql(
                "INSERT INTO dp_limit (limit_id, subject, value_pico, actor, reason, at) "
                f"VALUES ('l', 's', {value}, 'a', 'r', 't')"
            )


def test_no_step_reads_a_whole_table(sqlite: SqliteFiles) -> None:
    """Time a step takes must not grow with history: every locking read goes through an index."""
    engine = connect(sqlite.fresh())
    given = dict.fromkeys(
        ("charge_id", "dataset", "requester", "subject", "key", "release", "period"), "x"
    )
    connection = engine.raw_connection()
    for name, statement in vars(locks).items():
        if not isinstance(statement, Prepared) or name == "EVERY_POOL":
            continue
        query, values = statement.for_driver(engine.dialect, given)
        plan = connection.cursor().execute(f"EXPLAIN QUERY PLAN {query}", values).fetchall()
        scans = [step[3] for step in plan if step[3].startswith("SCAN")]
        assert all("dp_head" in scan or "dp_pool" in scan for scan in scans), (name, scans)
    connection.close()
    engine.dispose()


def test_a_missing_file_and_a_missing_table_name_the_command(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailable, match="airflow db migrate"):
        LedgerReader(connect(f"sqlite:///{tmp_path / 'nothing.db'}")).pools()
    assert not (tmp_path / "nothing.db").exists()
    (tmp_path / "empty.db").touch()
    with pytest.raises(LedgerUnavailable, match="airflow db migrate"):
        LedgerReader(connect(f"sqlite:///{tmp_path / 'empty.db'}")).pools()


def test_an_unmigrated_postgres_names_the_command(postgres: PostgresServer) -> None:
    engine = connect(postgres.bare())
    with pytest.raises(LedgerUnavailable, match="airflow db migrate"):
        Ledger(engine).expire()
    engine.dispose()


@pytest.mark.parametrize("address", ["zz", ""])
def test_an_address_that_is_none_is_one_sentence(address: str) -> None:
    with pytest.raises(LedgerUnavailable, match="the ledger's URL is not one"):
        connect(address)


def test_an_unreachable_server_is_one_sentence() -> None:
    engine = connect("postgresql://nobody@/none?host=/nonexistent")
    with pytest.raises(LedgerUnavailable, match="check that it runs") as fault:
        LedgerReader(engine).pools()
    assert "\n" not in str(fault.value)


def test_another_kind_of_database_is_refused() -> None:
    with pytest.raises(LedgerUnavailable, match="PostgreSQL"):
        connect("mysql://x/y")


def test_a_locked_file_is_one_sentence(
    sqlite: SqliteFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("include.budget.store.engine.BUSY_SECONDS", 0.05)
    url = sqlite.fresh()
    world = World(connect(url)).registered()
    holder = create_engine(url).connect()
    holder.exec_driver_sql("BEGIN IMMEDIATE")
    with pytest.raises(LedgerUnavailable, match="locked"):
        world.reserve()
    holder.rollback()
    holder.close()
    assert world.reserve().state == "reserved"


def test_migrating_needs_no_airflow() -> None:
    code = (
        "import sys, tempfile, pathlib\n"
        "from include.budget.migrations import migrate\n"
        "from include.budget.store import connect\n"
        "path = pathlib.Path(tempfile.mkdtemp()) / 'l.db'\n"
        "migrate(connect(f'sqlite:///{path}'))\n"
        "sys.exit(any(name == 'airflow' or name.startswith('airflow.') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
