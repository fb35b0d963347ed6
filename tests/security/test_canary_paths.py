"""The canaries again, on every way into the product and out of it.

Sources: CSV, a partitioned folder, S3 and SQL, each with every type of column, bounded rows a
person, impossible combinations and expectations in a file of their own. Ways out: a release that
replaces another, a withdrawal, a draft, an evaluation of public data.
"""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.airflow import world
from tests.airflow.faults import object_store
from tests.airflow.rig import Rig
from tests.airflow.test_bad_input import store_connection
from tests.security import canary
from tests.security.test_canary import Search, amend, planted, search

__all__ = ["planted", "search"]

PERIOD = "2020-12-31"
COLUMNS: dict[str, Any] = {
    "seen": {"type": "date", "min": "2000-01-01", "max": "2030-12-31", "resolution": "quarter"},
    "fed": {"type": "datetime", "min": "2000-01-01", "max": "2030-12-31", "resolution": "year"},
    "price": {"type": "float", "min": 0, "max": 9, "bins": [0, 3, 6], "decimals": 2},
    "tag": {"type": "key", "replace": "surrogate"},
}
DATASET: dict[str, Any] = {
    "privacy_unit": {"what": "person", "id_column": "keeper_id", "max_rows": 2},
    "columns": {
        name: block if block["type"] == "key" else {**block, "nullable": True}
        for name, block in COLUMNS.items()
    },
    "constraints": [{"never": {"animal": "newt", "indoors": True}}],
    "expectations": "expectations/pets.yaml",
}
EXPECTATIONS = {
    "expectations": [
        {"expect": "values_between", "column": "weight", "arguments": {"max_value": 40}}
    ]
}


def rows() -> list[dict[str, str]]:
    """Return the planted table as text, with a canary in a cell of every column."""
    table = []
    for number, row in enumerate(canary.rows()):
        row |= {"seen": "2020-05-05", "fed": "2020-05-05T05:05:00", "price": "4.5"}
        row["tag"] = f"{canary.PERSON}-tag-{number}"
        row["keeper_id"] = f"{canary.PERSON}{number // 3:06d}"  # three rows a person, two are kept
        if number < 60:
            row |= dict.fromkeys(("seen", "fed", "indoors"), canary.WORD)
            row["price"] = canary.NUMBER
        table.append({k: "" if v is None else str(v) for k, v in row.items()})
    return table


def as_csv(table: list[dict[str, str]], *, without: tuple[str, ...] = ()) -> str:
    file = io.StringIO()
    names = [name for name in table[0] if name not in without]
    writer = csv.DictWriter(file, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return file.getvalue()


def from_csv(rig: Rig, patch: pytest.MonkeyPatch, stack: ExitStack) -> dict[str, Any]:
    path = rig.source.with_suffix(".csv")
    path.write_text(as_csv(rows()))
    return {"path": str(path)}


def from_folder(rig: Rig, patch: pytest.MonkeyPatch, stack: ExitStack) -> dict[str, Any]:
    for year in world.YEARS:
        part = rig.source.with_suffix("") / f"year={year}" / "part.csv"
        part.parent.mkdir(parents=True)
        mine = [row for row in rows() if row["year"] == str(year)]
        part.write_text(as_csv(mine, without=("year",)))
    return {"path": str(rig.source.with_suffix("")), "format": "csv"}


def from_store(rig: Rig, patch: pytest.MonkeyPatch, stack: ExitStack) -> dict[str, Any]:
    address, client = stack.enter_context(object_store("raw", "public"))
    patch.setenv("AIRFLOW_CONN_STORE", store_connection(address))
    client.put_object(Bucket="raw", Key="in/pets.csv", Body=as_csv(rows()).encode())
    return {"path": "s3://raw/in/pets.csv", "conn_id": "store"}


def from_database(rig: Rig, patch: pytest.MonkeyPatch, stack: ExitStack) -> dict[str, Any]:
    table, file = rows(), rig.source.with_suffix(".db")
    with sqlite3.connect(file) as connection:
        connection.execute(f"CREATE TABLE pets ({', '.join(table[0])})")
        marks = ", ".join("?" * len(table[0]))
        cells = [tuple(value or None for value in row.values()) for row in table]
        connection.executemany(f"INSERT INTO pets VALUES ({marks})", cells)
    connection.close()
    patch.setenv("AIRFLOW_CONN_DB", json.dumps({"conn_type": "sqlite", "host": str(file)}))
    return {"conn_id": "db", "query": "SELECT * FROM pets"}


SOURCES = {"csv": from_csv, "folder": from_folder, "s3": from_store, "sql": from_database}


@pytest.fixture(params=SOURCES)
def place(
    request: pytest.FixtureRequest, planted: Rig, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Rig]:
    """The planted rig with one kind of source; an object store's releases go there as well."""
    with ExitStack() as stack:
        source = SOURCES[request.param](planted, monkeypatch, stack)
        planted.source.unlink()
        world.write_yaml(planted.config / "expectations" / "pets.yaml", EXPECTATIONS)
        declare(planted, source)
        amend(planted)
        planted.source = planted.source.parent  # all of it is raw, and not searched
        yield planted


def declare(rig: Rig, source: dict[str, Any], **more: Any) -> None:
    """Write the files with this source in the place of the rig's own."""
    to_store = {"publish": {"uri": "s3://public/pets", "conn_id": "store"}}
    rig.declare(dataset={**DATASET, **more}, release=to_store if "s3" in str(source) else {})
    path = rig.config / "datasets" / "pets.yaml"
    told = yaml.safe_load(path.read_text())
    world.write_yaml(path, told | {"source": source})


def test_every_source_and_every_way_out_show_none(place: Rig, search: Search) -> None:
    first = place.release()
    assert first.state == "success"
    old = first.xcom("publish")["release_id"]
    file = place.config / "releases" / "pets_by_year.yaml"
    told = yaml.safe_load(file.read_text())
    world.write_yaml(file, told | {"supersedes": old})
    second = place.release("2021-12-31")
    assert second.state == "success"
    form = {"release_id": second.xcom("publish")["release_id"], "reason": "a wrong column"}
    withdrawn = place.release(None, dag_id="withdraw_release", conf=form)
    assert withdrawn.state == "success"
    search()


def test_every_source_stops_a_strict_dataset_and_shows_none(place: Rig, search: Search) -> None:
    source = yaml.safe_load((place.config / "datasets" / "pets.yaml").read_text())["source"]
    declare(place, source, strict=True)
    run = place.release()
    assert run.states()["validate"] == "failed" and not place.charges()
    search()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_draft_shows_none(
    planted: Rig, ending: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from include.cli.__main__ import main

    path = planted.source
    if ending == "csv":
        path = tmp_path / "raw" / "draft.csv"
        path.write_text(as_csv(rows()))
    assert main(["schema", "draft", str(path)]) == 0
    said = capfd.readouterr()
    assert "keeper_id" in said.out  # names are public, values are not
    assert canary.found_in([("out", said.out), ("err", said.err)]) == []
    assert canary.counts_in([("out", said.out)]) == []


@pytest.mark.parametrize("public", [True, False])
def test_an_internal_evaluation_quotes_no_cell(
    planted: Rig, public: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    from include.cli.__main__ import main

    dataset = yaml.safe_load((planted.config / "datasets" / "pets.yaml").read_text())
    if public:
        dataset |= {"dataset": "zoo", "populations": ["animals"], "public_data": True}
        world.write_yaml(planted.config / "datasets" / "zoo.yaml", dataset)
    synthetic = planted.root / "synthetic.parquet"
    world.write_source(synthetic, world.rows())
    code = main(["internal-evaluation", "zoo" if public else "pets", str(synthetic)])
    said = capfd.readouterr()
    assert code == (0 if public else 1)
    assert canary.found_in([("out", said.out), ("err", said.err)]) == []
    if not public:  # exact figures are for public data, and a count is one
        assert said.out == "" and canary.counts_in([("err", said.err)]) == []


def test_the_canaries_are_in_every_source(place: Rig) -> None:
    """Were they not, finding none would show nothing."""
    run = place.trigger().finish(until="load")
    assert run.states()["load"] == "success"
    inside = canary.below(place.root / "var" / "protected")
    snapshot = next(text for path, text in canary.texts(inside) if path.suffix == ".parquet")
    assert {s for s in canary.SECRETS if s in snapshot} == set(canary.SECRETS)
    assert "tag-7" not in snapshot  # keys are not even read
