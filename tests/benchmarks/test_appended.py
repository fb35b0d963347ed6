"""Results that are appended: no cell is lost, made twice, or left half written."""

from __future__ import annotations

from pathlib import Path

from benchmarks.appended import Appended, read_rows


def open_file(path: Path) -> Appended:
    return Appended(path / "r.csv", ("cell", "seed", "value"), key=2)


def test_a_cell_is_known_once_it_is_written(tmp_path: Path) -> None:
    open_file(tmp_path).append([{"cell": "a,b", "seed": 0, "value": "0.5"}])
    again = open_file(tmp_path)
    assert again.done() == {("a,b", "0")}
    assert again.rows() == [{"cell": "a,b", "seed": "0", "value": "0.5"}]


def test_half_a_line_is_cut_off_and_its_cell_made_again(tmp_path: Path) -> None:
    file = open_file(tmp_path)
    file.append([{"cell": "a", "seed": seed, "value": seed} for seed in (0, 1)])
    whole = file.path.read_bytes()
    file.path.write_bytes(whole + b"a,2,0.1")
    again = open_file(tmp_path)
    assert again.done() == {("a", "0"), ("a", "1")}
    again.append([{"cell": "a", "seed": 2, "value": "0.12345"}])
    assert file.path.read_bytes() == whole + b"a,2,0.12345\n"


def test_a_killed_header_is_written_again(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("cell,se")
    file = open_file(tmp_path)
    file.append([{"cell": "a", "seed": 0, "value": 1}])
    assert file.done() == {("a", "0")}


def test_comments_are_no_rows(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("# date: today\na,b\n1,2\n")
    assert read_rows(tmp_path / "c.csv") == [{"a": "1", "b": "2"}]
    assert read_rows(tmp_path / "none.csv") == []
