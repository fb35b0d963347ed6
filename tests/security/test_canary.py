"""A value of the raw data is found nowhere but in the protected snapshot, whatever goes wrong."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.airflow import world
from tests.airflow.faults import refusing_store, write_lock
from tests.airflow.rig import Rig
from tests.airflow.test_bad_input import store_connection
from tests.security import canary

Search = Callable[[], None]


@pytest.fixture
def planted(rig: Rig) -> Rig:
    """A rig whose source holds the canaries, one row a person named by an id column."""
    rig.declare(dataset={"privacy_unit": {"id_column": "keeper_id"}})
    # Another declaration than the registered one: a ledger of its own.
    amend(rig)
    world.write_source(rig.source, canary.rows())
    return rig


def amend(rig: Rig) -> None:
    from tests.airflow.rig import new_ledger

    rig.ledger_file.unlink()
    new_ledger(rig.ledger_file)
    rig.register()


@pytest.fixture
def search(
    planted: Rig, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> Search:
    """Search all that the runs of a test have left, on the screen and on disk."""
    caplog.set_level(logging.DEBUG)

    def look() -> None:
        said = capfd.readouterr()
        shown = [("stdout", said.out), ("stderr", said.err), ("logging", caplog.text)]
        assert len(said.out) > 1000  # the runs have been heard
        raw = (planted.root / "var" / "protected", planted.source)
        files = canary.below(planted.root, airflow_logs(), without=raw)
        rows = list(canary.tables(planted.ledger_file)) + list(canary.tables(metadata_database()))
        everything = [*shown, *rows, *canary.texts(files), ("export", export(planted))]
        assert canary.found_in(everything) == []
        quiet = [*shown, *rows, ("export", export(planted))]
        assert canary.counts_in(quiet) == []
        assert canary.seed_keys(files) == []
        assert mac_leaks(planted, everything) == []

    return look


def metadata_database() -> Path:
    from airflow.configuration import conf

    return Path(conf.get("database", "sql_alchemy_conn").removeprefix("sqlite:///"))


def airflow_logs() -> Path:
    from airflow.configuration import conf

    return Path(conf.get("logging", "base_log_folder"))


def export(rig: Rig) -> str:
    from include.budget.export import export as export_ledger
    from include.budget.store import connect

    file = io.StringIO()
    export_ledger(connect(f"sqlite:///{rig.ledger_file}"), file)
    return file.getvalue()


def mac_leaks(rig: Rig, everything: list[tuple[Any, str]]) -> list[str]:
    """Return where the keyed recogniser of a snapshot shows: in the snapshot's table only."""
    import sqlite3

    connection = sqlite3.connect(rig.ledger_file)
    table = next(
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
        if "snapshot" in name
    )
    columns = [column[1] for column in connection.execute(f"PRAGMA table_info({table})")]
    macs = [row[columns.index("mac")] for row in connection.execute(f"SELECT * FROM {table}")]
    connection.close()
    own = (f"{rig.ledger_file.name}:{table}", rig.ledger_file)
    return [f"{name}" for name, text in everything for m in macs if m in text and name not in own]


def test_the_search_finds_what_is_there() -> None:
    leaks = [
        ("log", f"bad value {canary.WORD}"),
        ("table", f"{canary.PERSON}000001 {canary.NUMBER}"),
    ]
    assert len(canary.found_in(leaks)) == 3
    said = [("log", f"read {canary.ROWS_2020} rows"), ("id", f"ab{canary.ROWS}cd")]
    assert canary.counts_in(said) == [f"{canary.ROWS_2020} in log"]
    assert list(canary.keys_of({"a": [{"seed": 1}]})) == ["a", "seed"]


def test_the_planted_values_are_in_the_snapshot(planted: Rig) -> None:
    run = planted.trigger().finish(until="load")
    assert run.states()["load"] == "success"
    snapshots = canary.below(planted.root / "var" / "protected")
    assert {secret for secret in canary.SECRETS for _, t in canary.texts(snapshots) if secret in t}


def test_a_release_shows_none(planted: Rig, search: Search) -> None:
    run = planted.release()
    assert run.state == "success"
    search()
    for path in canary.below(planted.releases):
        if path.suffix in (".json", ".md", ".html", ".yaml"):
            assert canary.counts_in([(path.name, path.read_text(encoding="utf-8"))]) == []


def fine_bins(rig: Rig) -> None:
    """Ask for a network whose edges are selected from single kilograms, the canary among them."""
    unit = {"privacy_unit": {"id_column": "keeper_id"}}
    options = {"sensitive": "indoors", "quantile_bins": {"weight": 5}}
    rig.declare(
        dataset={**unit, "columns": {"weight": {"bins": None}}},
        release={
            "mechanism": "csa_privbayes",
            "interest": [],
            "options": options,
            "accept_at_least": "0.1",
        },
    )
    amend(rig)


def test_a_release_in_private_bins_shows_none(planted: Rig, search: Search) -> None:
    """The clamped canary lies in the last cell of the grid; a bin ends there with or without it."""
    fine_bins(planted)
    run = planted.release()
    assert run.state == "success"
    search()
    (package,) = planted.releases.rglob("datapackage.json")
    told = package.read_text(encoding="utf-8")
    assert "private_bins" in told and canary.counts_in([(package.name, told)]) == []


@pytest.mark.parametrize("place", ["_gathered", "count_many"])
def test_a_fault_while_selecting_or_gathering_shows_none(
    planted: Rig, search: Search, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fine_bins(planted)

    def burst(*args: Any, **kwargs: Any) -> Any:
        raise IndexError(f"index {canary.NUMBER} of {canary.PERSON}000007 is out of bounds")

    with monkeypatch.context() as patch:
        patch.setattr(f"include.data.private.{place}", burst)
        run = planted.release()
    assert run.state == "failed" and run.states()["synthesize"] == "failed"
    search()


def test_rendered_fields_and_xcom_hold_names_and_digests_only(planted: Rig) -> None:
    run = planted.release()
    left = {task: run.xcom(task) for task in run.states()}
    assert set(left["load"]) == {"snapshot_id"} and left["load"]["snapshot_id"].startswith("snap-")
    assert set(left["synthesize"]) == {"charge_id", "transcript"}
    assert set(left["publish"]) == {"release_id", "uri"}
    fields = [
        text
        for _, text in canary.tables(metadata_database(), only=["rendered_task_instance_fields"])
    ]
    assert fields and all("pets_by_year.yaml" in text for text in fields)


def test_a_type_fault_of_the_source_shows_none(planted: Rig, search: Search) -> None:
    table = canary.rows()
    for row in table:
        row["weight"] = f"{canary.WORD} {row['weight']}"
    world.write_source(planted.source, table)
    assert planted.release().state == "failed" and not planted.charges()
    search()


def test_a_strict_dataset_that_stops_shows_none(planted: Rig, search: Search) -> None:
    planted.declare(dataset={"privacy_unit": {"id_column": "keeper_id"}, "strict": True})
    run = planted.release()
    assert run.states()["validate"] == "failed" and not planted.charges()
    search()


@pytest.mark.parametrize("place", ["counting", "encoding", "fitting"])
def test_an_exception_that_quotes_a_row_shows_none(
    planted: Rig, search: Search, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets = {
        "counting": "include.data.private.count_many",
        "encoding": "include.data.decoding.encode_kept",
        "fitting": "include.stages.table._make_table",
    }

    def burst(*args: Any, **kwargs: Any) -> Any:
        try:
            raise KeyError(canary.WORD)
        except KeyError as error:
            note = ValueError(f"cannot place {canary.NUMBER} of {canary.PERSON}000007")
            note.add_note(f"the row holds {canary.WORD}")
            raise note from error

    with monkeypatch.context() as patch:
        patch.setattr(targets[place], burst)
        run = planted.release()
    assert run.state == "failed" and run.states()["synthesize"] == "failed"
    search()


def test_a_locked_ledger_shows_none(
    planted: Rig, search: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("include.budget.store.engine.BUSY_SECONDS", 0.3)
    run = planted.trigger().finish(until="validate")
    with write_lock(planted.ledger_file):
        run.finish(until="budget_eval")
    assert run.finish().state == "success"
    search()


@pytest.mark.parametrize("stage", ["load", "publish"])
def test_a_refusing_store_shows_none(
    planted: Rig, search: Search, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = {"privacy_unit": {"id_column": "keeper_id"}}
    if stage == "load":
        place = {"path": "s3://bucket/pets.parquet", "conn_id": "store"}
        planted.declare(dataset={**unit, "source": place})
    else:
        place = {"uri": "s3://bucket/pets", "conn_id": "store"}
        planted.declare(dataset=unit, release={"publish": place})
    with refusing_store() as address:
        monkeypatch.setenv("AIRFLOW_CONN_STORE", store_connection(address))
        run = planted.release()
    assert run.state == "failed" and run.states()[stage] == "failed"
    search()


def test_neighbouring_tables_end_alike(rig: Rig) -> None:
    """One row with values seen nowhere else changes no column, no row count and no state."""
    rig.declare(release={"partition": {"column": "year", "value": "2020"}})
    odd = {"year": 2020, "animal": "gnu", "weight": -5, "indoors": None}
    seen = []
    for date, more in (("2020-12-31", []), ("2021-12-31", [odd])):
        world.write_source(rig.source, world.rows() + more)
        run = rig.release(date)
        (table,) = (rig.releases / "pets_by_year" / date).rglob("*.csv")
        lines = table.read_text(encoding="utf-8").splitlines()
        seen.append((run.state, run.states(), lines[0], len(lines)))
    assert seen[0] == seen[1]
