"""The command for side-by-side runs: codes in, codes out, facts as JSON, faults in a sentence."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.synthesize import main


@pytest.fixture
def table(tmp_path: Path) -> list[str]:
    """A small CSV of codes; the domain lists its columns in another order."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 800)
    with (tmp_path / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["a,x", "b", "c"], *zip(a, a % 2, 0 * a, strict=True)])
    (tmp_path / "t.json").write_text(json.dumps({"c": 1, "b": 2, "a,x": 3}))
    return ["--csv", str(tmp_path / "t.csv"), "--domain", str(tmp_path / "t.json")]


@pytest.mark.parametrize("mechanism", ["aim", "mwem_pgm"])
@pytest.mark.parametrize("delta", ["1e-9", "1e-09", "0.000000001"])
def test_a_release(
    table: list[str], mechanism: str, delta: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    arguments = ["--epsilon", "1", "--delta", delta, "--mechanism", mechanism, "--json"]
    code = main(
        [*table, *arguments, "--interest", '[["a,x", "b"]]', "--rows", "50", "--out", str(out)]
    )
    facts = json.loads(capsys.readouterr().out)
    assert code == 0
    assert (facts["delta"], facts["rows"], len(facts["interest"])) == ("1e-9", 50, 1)
    assert float(facts["epsilon_spent"]) <= 1
    with out.open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["a,x", "b", "c"]
    assert len(rows) == 50
    assert all(int(a) < 3 and int(b) < 2 and c == "0" for a, b, c in rows)


@pytest.mark.parametrize("mechanism", ["aim", "mwem_pgm", "privbayes"])
def test_neighbours_of_the_smallest_tables_are_answered_alike(
    table: list[str], mechanism: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No row, one row, two rows; one column has a single value."""
    seen = []
    for rows in ("", "2,1,0\n", "2,1,0\n0,0,0\n"):
        (tmp_path / "t.csv").write_text('"a,x",b,c\n' + rows)
        out = tmp_path / "out.csv"
        arguments = ["--epsilon", "1", "--delta", "1e-9", "--mechanism", mechanism, "--json"]
        code = main([*table, *arguments, "--rows", "5", "--out", str(out)])
        facts = json.loads(capsys.readouterr().out)
        with out.open(newline="") as file:
            header, *synthetic = csv.reader(file)
        seen.append((code, header, len(synthetic), facts["epsilon_spent"], facts["warnings"]))
    assert seen[0] == seen[1] == seen[2] and seen[0][0] == 0


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--epsilon", "-1", "--delta", "1e-9"], "sign"),
        (["--epsilon", "1", "--delta", "0.3"], "1e-N"),
        (["--epsilon", "1", "--delta", "1e-9", "--interest", '[["a,x", "d"]]'], "column 'd'"),
        (["--epsilon", "1", "--delta", "1e-9", "--options", '{"share": 1}'], "no option 'share'"),
        (["--epsilon", "1", "--delta", "1e-9", "--interest", "[["], "Expecting"),
    ],
)
def test_faults(
    table: list[str],
    arguments: list[str],
    fault: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "out.csv"
    assert main([*table, *arguments, "--mechanism", "aim", "--out", str(out)]) == 2
    message = capsys.readouterr().err
    assert fault in message
    assert message.count("\n") == 1
    assert not out.exists()


def test_codes_outside_the_domain_are_refused(table: list[str], tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps({"c": 1, "b": 2, "a,x": 2}))
    arguments = ["--epsilon", "1", "--delta", "1e-9", "--mechanism", "aim"]
    with pytest.raises(SystemExit, match="outside its domain"):
        main([*table, *arguments, "--out", str(tmp_path / "out.csv")])
