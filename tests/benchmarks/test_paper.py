"""The paper's experiments on a small table: what they ask, what BudgetEval answers, resumption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.appended import read_rows
from benchmarks.paper import multi, single, speed
from benchmarks.paper.research import Table

ROOT = Path(__file__).resolve().parents[2]
KEY = tuple(single.KEY)


def command(research: Path, out: Path, *more: str) -> subprocess.Popen[bytes]:
    arguments = ["--quick", "--only", "len", "--tables", "titanic", "--out", str(out), *more]
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.paper", *arguments],
        cwd=ROOT,
        env=os.environ | {"CUSYN_RESEARCH_DATA": str(research), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
    )


def test_a_killed_run_goes_on_where_it_was(research: Path, tmp_path: Path) -> None:
    file = tmp_path / "paper.csv"
    running = command(research, tmp_path, "--seeds", "40")
    for _ in range(1200):
        if len(read_rows(file)) >= 3:
            break
        assert running.poll() is None, "the run ended by itself"
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.communicate()
    before = file.read_bytes()
    made = len(read_rows(file))
    assert 3 <= made < 160
    file.write_bytes(before + b"titanic,aim,1,")  # a kill in mid-line

    seeds = made // 4 + 1  # a few more than there are
    assert command(research, tmp_path, "--seeds", str(seeds)).wait() == 0
    assert file.read_bytes().startswith(before)
    names = [tuple(row[name] for name in KEY) for row in read_rows(file)]
    assert len(names) == len(set(names)) == 4 * seeds
    whole = file.read_bytes()
    assert command(research, tmp_path, "--seeds", str(seeds)).wait() == 0
    assert file.read_bytes() == whole


def test_the_settings_are_the_papers() -> None:
    cells = set(single.cells(list(single.TABLES), 5, quick=False))
    lengths = {cell.length for cell in cells if cell.epsilon == "1"}
    assert lengths == {0, 5, 10, 15}
    assert {cell.epsilon for cell in cells if cell.length == 10} == {"0.1", "1", "5", "10"}
    assert {cell.table for cell in cells} == {"nltcs", "titanic", "salary", "adult"}
    assert {cell.seed for cell in cells} == set(range(5))
    assert {cell.rounds for cell in multi.sequences(["nltcs"], 1, quick=False)} == {5, 10, 15}
    more = Counter(c.table for c in single.cells(["titanic"], 5, quick=False, more=True))
    assert more["titanic"] > len([cell for cell in cells if cell.table == "titanic"])


def test_a_longer_sequence_begins_with_the_shorter(research: Path) -> None:
    data = Table(research, "nltcs")
    assert data.queries(3, 5)[:3] == data.queries(3, 3)
    assert data.queries(3, 5) != data.queries(4, 5)


def test_a_release_is_judged_on_all_lengths_and_within_its_budget(research: Path) -> None:
    row = single.run_cell(single.Cell("titanic", "mwem_pgm", "1", 5, 0), research)
    assert set(row) == set(single.FIELDS)
    assert float(row["rho"]) <= 0.014974  # of epsilon 1 at delta 1e-9
    assert all(0 <= float(row[name]) <= 1 for name in single.ERRORS)
    assert not {os.uname().nodename} & set(row["machine"].split())


def test_a_refused_release_is_a_finished_cell(
    research: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "titanic.csv").write_bytes((research / "titanic.csv").read_bytes())
    (tmp_path / "titanic-domain.json").write_text(json.dumps(dict.fromkeys("abcd", 600)))
    data = Table(tmp_path, "titanic")
    monkeypatch.setattr(single, "table", lambda *_: data)
    monkeypatch.setattr(data, "task", lambda queries: Table.task(data, queries, max_model_mb=1))
    row = single.run_cell(single.Cell("titanic", "mwem_pgm", "1", 5, 0), tmp_path)
    assert "max_model_mb is 1" in row["note"]
    assert not set(single.ERRORS) & set(row)


def test_the_additive_pool_is_empty_after_as_many_releases_as_rounds(research: Path) -> None:
    cell = multi.Sequence("titanic", "mwem_pgm", 5, "epsilon", "off", 0)
    rows = multi.run_sequence(cell, research)
    assert [row["turn"] for row in rows] == list(range(1, 21))
    assert [row["answer"] for row in rows] == ["granted"] * 5 + ["refused"] * 15
    assert {row["binding"] for row in rows[5:]} == {"dataset_pool:people"}
    assert sum(float(row["granted"]) for row in rows) == 10
    assert all("interest_rows" in row for row in rows[:5])
    assert [row["user"] for row in rows[:5]] == [*multi.USERS, multi.USERS[0]]


def test_the_zcdp_pool_grants_more_and_is_only_asked(research: Path) -> None:
    cell = multi.Sequence("titanic", "mwem_pgm", 5, "zcdp", "off", 0)
    rows = multi.run_sequence(cell, research)
    assert Counter(row["answer"] for row in rows) == {"granted": 19, "negotiated": 1}
    left = [float(row["left"]) for row in rows]
    assert left == sorted(left, reverse=True)
    assert left[-1] >= 0
    assert not any("interest_rows" in row for row in rows)


@pytest.mark.parametrize("reuse", ["off", "dataset"])
def test_a_later_seed_ends_with_the_first_refusal(research: Path, reuse: str) -> None:
    rows = multi.run_sequence(
        multi.Sequence("titanic", "mwem_pgm", 5, "epsilon", reuse, 1), research
    )
    assert [row["answer"] for row in rows] == ["granted"] * 5 + ["refused"]


def test_the_table_for_speed_has_colorados_size() -> None:
    codes, domain = speed.generated(1000)
    assert (len(domain), speed.ROWS) == (14, 661_967)
    assert np.prod(list(domain.values())) == 401_408
    assert all(codes[:, i].max() < cells for i, cells in enumerate(domain.values()))


def test_downstream_tells_a_good_table_from_an_empty_one() -> None:
    pytest.importorskip("sklearn")
    from benchmarks.paper.downstream import LABEL, scores

    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 400)
    rows = np.column_stack([label * 2, rng.integers(0, 3, 400), label])
    domain = {"x": 3, "y": 3, LABEL: 2}
    good = scores(rows[:300], rows[300:], domain, 2)
    assert all(float(value) == 1 for value in good.values())
    one_class = rows[:300] * [1, 1, 0]
    empty = scores(one_class, rows[300:], domain, 2)
    assert {float(value) for name, value in empty.items() if "auc" in name} == {0.5}
