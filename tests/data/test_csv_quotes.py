"""Quotes that do not pair up stop the reading of a CSV; no line is ever lost without a word."""

from __future__ import annotations

import csv
import gzip
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from include.config.datasets import SourceConfig
from include.connections import S3Parameters
from include.data import loaders_csv, quoting
from include.data.errors import SourceError
from include.data.loaders import read_source
from include.data.loaders_csv import csv_names, read_csv
from include.data.places import LocalFile
from include.data.quoting import Quoting
from tests.data.conftest import dataset

ROWS = [f"x{i},y{i}" for i in range(9)]
PLAIN = [{"a": f"x{i}", "b": f"y{i}"} for i in range(9)]
OPEN = {
    "first": (0, '"CANARY-7Q,y0'),
    "first, last cell": (0, 'x0,"CANARY-7Q'),
    "middle": (4, '"CANARY-7Q,y4'),
    "middle, last cell": (4, 'x4,"CANARY-7Q'),
    "last": (8, '"CANARY-7Q,y8'),
    "last, last cell": (8, 'x8,"CANARY-7Q'),
    "a quote that is doubled": (8, 'x8,"CANARY-7Q""'),
    "a lone quote": (8, 'x8,"'),
    "closed by the next cell's": (4, '"CANARY-7Q,"y4"'),
    "closed inside the cell": (4, '"CANARY"-7Q,y4'),
    "closed before a space": (4, '"CANARY-7Q" ,y4'),
    "empty, with text behind": (4, '""CANARY-7Q,y4'),
}
KEPT = {
    "a quote within a cell": ('5" pipe,y4', '5" pipe', "y4"),
    "a quote at a cell's end": ('x4,5"', "x4", '5"'),
    "two quotes within a cell": ('5"" pipe,y4', '5"" pipe', "y4"),
    "a quote behind a space": ('x4, "y4"', "x4", ' "y4"'),
    "a line's end": ('"x\n4",y4', "x\n4", "y4"),
    "a delimiter": ('"x,4",y4', "x,4", "y4"),
    "doubled quotes": ('"say ""x4""",y4', 'say "x4"', "y4"),
    "only quotes": ('"""",y4', '"', "y4"),
    "empty": ('"",y4', None, "y4"),
}


def put(at: int, line: str) -> list[str]:
    return [*ROWS[:at], line, *ROWS[at + 1 :]]


def as_bytes(lines: list[str], end: str = "\n", *, last: bool = True) -> bytes:
    return (end.join(["a,b", *lines]) + (end if last else "")).encode()


ROOT = Path(__file__).resolve().parents[2]
COLUMNS = {name: {"type": "category", "values": ["x"]} for name in ("a", "b")}


def read(path: Path) -> list[dict[str, str]]:
    declared = dataset(COLUMNS, source={"path": path.name})
    return pa.concat_tables(read_source(declared, path.parent).chunks).to_pylist()


def refused(path: Path) -> None:
    """Reading stops with one plain sentence that is the same whatever the rows hold."""
    with pytest.raises(SourceError) as told:
        read(path)
    assert str(told.value) == (
        f"{path.name} is not well-formed CSV: a quote may be left open or closed inside a cell, or "
        "a line is longer than 4 MB; correct the file (a quote inside quotes is written twice) or "
        "source.quote"
    )
    assert told.value.__context__ is None


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("shape", OPEN)
def test_a_quote_that_does_not_pair_up_stops_the_reading(
    tmp_path: Path, shape: str, end: str, last: bool
) -> None:
    at, line = OPEN[shape]
    path = tmp_path / "x.csv"
    path.write_bytes(as_bytes(put(at, line), end, last=last))
    refused(path)
    packed = tmp_path / "x.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    refused(packed)


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("shape", KEPT)
@pytest.mark.parametrize("at", [0, 4, 8])
def test_a_quote_that_is_legal_loses_no_row(
    tmp_path: Path, shape: str, at: int, end: str, last: bool
) -> None:
    line, a, b = KEPT[shape]
    (tmp_path / "x.csv").write_bytes(as_bytes(put(at, line), end, last=last))
    assert read(tmp_path / "x.csv") == [*PLAIN[:at], {"a": a, "b": b}, *PLAIN[at + 1 :]]


@pytest.mark.parametrize("at", [0, 299_999, 599_999])
def test_an_open_quote_is_found_in_a_file_of_several_blocks(tmp_path: Path, at: int) -> None:
    lines = ["x0,some more text"] * 600_000
    (tmp_path / "x.csv").write_bytes(as_bytes(lines))
    assert len(read(tmp_path / "x.csv")) == 600_000
    lines[at] = 'x0,"CANARY-7Q'
    (tmp_path / "x.csv").write_bytes(as_bytes(lines))
    refused(tmp_path / "x.csv")


def test_no_row_behind_a_cell_closed_early_is_passed_on(tmp_path: Path) -> None:
    lines = put(2, '"x2" CANARY-7Q,y2')
    (tmp_path / "x.csv").write_bytes(as_bytes(lines))
    chunks = read_csv(
        LocalFile(tmp_path / "x.csv", "x.csv"), SourceConfig(path="x.csv"), ["a", "b"]
    )
    assert next(chunks).num_rows == 0
    with pytest.raises(SourceError):
        next(chunks)


@pytest.mark.parametrize("header", ['"a,b\n', 'a,"b\n', '"a" x,b\n'])
def test_an_open_quote_in_the_header_brings_no_row_among_the_names(
    tmp_path: Path, header: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_text(header + "CANARY-7Q,y\n")
    with pytest.raises(SourceError, match="is not well-formed CSV") as told:
        csv_names(LocalFile(path, path.name), SourceConfig(path="x.csv"))
    assert "CANARY" not in str(told.value)


def test_one_file_of_a_folder_is_enough(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "1.csv").write_bytes(as_bytes(put(4, '"CANARY-7Q,y4')))
    (folder / "2.csv").write_bytes(as_bytes(put(4, '"x4",y4')))
    declared = dataset(COLUMNS, source={"path": "in", "format": "csv"})
    with pytest.raises(SourceError, match="in is not well-formed CSV") as told:
        list(read_source(declared, tmp_path).chunks)
    assert "CANARY" not in str(told.value)


def test_an_object_in_a_store_is_held_to_the_same_rule(tmp_path: Path) -> None:
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        store = S3Parameters(endpoint_url=f"http://{host}:{port}", access_key="a", secret_key="b")
        client = boto3.client(
            "s3", endpoint_url=store.endpoint_url, region_name="us-east-1",
            aws_access_key_id="a", aws_secret_access_key="b",
        )  # fmt: skip
        client.create_bucket(Bucket="raw")
        body = as_bytes(put(4, 'x4,"CANARY-7Q'))
        client.put_object(Bucket="raw", Key="x.csv", Body=body)
        declared = dataset(COLUMNS, source={"path": "s3://raw/x.csv"})
        with pytest.raises(SourceError, match=r"s3://raw/x\.csv is not well-formed CSV") as told:
            list(read_source(declared, tmp_path, s3=store).chunks)
        assert "CANARY" not in str(told.value)
    finally:
        server.stop()


# ---- any table, any quote lost: Python's strict reader is the oracle ---------------------------

CELLS = st.text(alphabet='"", \n\rab\'é\U0001f600', max_size=6)
TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=9)
)
STYLES: st.SearchStrategy[dict[str, Any]] = (
    st.sampled_from(  # with QUOTE_MINIMAL and \n it leaves \r bare
        [
            {"quoting": csv.QUOTE_MINIMAL, "lineterminator": "\r\n"},
            {"quoting": csv.QUOTE_ALL, "lineterminator": "\r\n"},
            {"quoting": csv.QUOTE_ALL, "lineterminator": "\n"},
        ]
    )
)
ANY_FOLDER = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def written(table: list[list[str]], style: dict[str, Any]) -> str:
    file = io.StringIO(newline="")
    csv.writer(file, **style).writerows(table)
    return ",".join(f"c{i}" for i in range(len(table[0]))) + "\n" + file.getvalue()


def by_the_standard(text: str, width: int) -> list[list[str]] | None:
    """Return the rows that have the header's width, or None where the quotes are malformed."""
    try:
        lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return None
    return [line for line in lines[1:] if len(line) == width]


def ours(path: Path, text: str, width: int) -> list[list[str]] | None:
    path.write_bytes(text.encode())
    source = SourceConfig(path=path.name, null_values=("\x07",))
    names = [f"c{i}" for i in range(width)]
    try:
        tables = list(read_csv(LocalFile(path, path.name), source, names))
    except SourceError:
        return None
    return [list(row.values()) for row in pa.concat_tables(tables).to_pylist()]


@ANY_FOLDER
@given(table=TABLES, style=STYLES)
def test_what_a_csv_writer_wrote_is_read_exactly(
    tmp_path: Path, table: list[list[str]], style: dict[str, Any]
) -> None:
    assert ours(tmp_path / "x.csv", written(table, style), len(table[0])) == table


@ANY_FOLDER
@given(table=TABLES, style=STYLES, data=st.data())
def test_with_one_quote_lost_a_file_is_read_as_the_standard_says_or_refused(
    tmp_path: Path, table: list[list[str]], style: dict[str, Any], data: st.DataObject
) -> None:
    text = written(table, style)
    quotes = [at for at, letter in enumerate(text) if letter == '"']
    if not quotes:
        return
    at = data.draw(st.sampled_from(quotes))
    text = text[:at] + text[at + 1 :]
    assert ours(tmp_path / "x.csv", text, len(table[0])) == by_the_standard(text, len(table[0]))


def one_by_one(text: str) -> tuple[bool, bool]:
    """Tell, letter by letter, whether quotes are sound and whether the text ends in a cell."""
    state, sound = "start", True
    for letter in text:
        ends = letter in ",\r\n"
        if letter == '"' and state in ("start", "closing"):
            state = "inside"
        elif letter == '"' and state == "inside":
            state = "closing"
        elif state != "inside":
            sound = sound and (ends or state != "closing")
            state = "start" if ends else "text"
    return sound, state == "inside"


@settings(max_examples=400, deadline=None)
@given(st.lists(st.text(alphabet='""",a\n\r', max_size=9), max_size=8), st.integers(1, 9))
def test_blocks_may_be_cut_anywhere(blocks: list[str], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quoting, "_SLICE", size)
        found = Quoting(",", '"')
        for block in blocks:
            found.feed(block.encode())
        ends_open = found.ends_open()
    assert (found.sound, ends_open) == one_by_one("".join(blocks))


def test_a_file_read_in_small_blocks_is_read_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaders_csv, "_BLOCK_BYTES", 256)
    table = [['say "x"', "a\nb"], ['5" pipe', ""], ["", '""'], [",", "é"]] * 500
    text = written(table, {"lineterminator": "\r\n"})
    assert ours(tmp_path / "x.csv", text, 2) == table
    assert ours(tmp_path / "x.csv", text + '"', 2) is None


GIVEN_UP = """
import sys
import time
from pathlib import Path
from include.config.datasets import SourceConfig
from include.data.errors import RowFaultError, SourceError
from include.data.loaders_csv import read_csv
from include.data.places import LocalFile

path = Path(sys.argv[1])
chunks = read_csv(
    LocalFile(path, path.name), SourceConfig(path=path.name), ["a", "b"], strict=True
)
try:
    for number, _ in enumerate(chunks):
        if number == 2:
            break
except (RowFaultError, SourceError) as error:
    print(type(error).__name__)
chunks.close()
time.sleep(1)  # Arrow's threads let go of Python's objects a moment later
"""


@pytest.mark.parametrize(
    ("line", "told"),
    [('"x" CANARY-7Q,y', "SourceError"), ("x,y,z", "RowFaultError"), ("x,y", "")],
)
def test_a_process_that_gives_a_file_up_comes_to_its_end(
    tmp_path: Path, line: str, told: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(as_bytes([line, *['"x0","some more text"'] * 2_000_000]))
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", GIVEN_UP, str(path)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stdout.strip()) == (0, told), done.stderr
