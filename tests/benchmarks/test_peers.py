"""The runner of `make bench-peers`: caps, doors, the evaluator, resumption; no peer is needed."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest

from benchmarks.appended import read_rows
from benchmarks.peers import __main__ as command
from benchmarks.peers import catalogue, environments
from benchmarks.peers.catalogue import BASELINE, OURS, PEERS, Cell, Mechanism, Peer, cells
from benchmarks.peers.environments import ROOT, EnvironmentFault, interpreter
from benchmarks.peers.judge import Judge, judge
from benchmarks.peers.results import FIELDS, is_done, keep
from benchmarks.peers.runner import run_cell
from benchmarks.peers.supervise import run_capped
from benchmarks.tables import mean_tv, pair_counts, write_codes

DOMAIN = {"a": 2, "b": 3, "c": 2}
FLOOR = next(peer for peer in PEERS if peer.name == BASELINE)


def table(folder: Path, name: str = "titanic", rows: int = 300) -> Judge:
    """Write a small table; its domain lists the columns in another order."""
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, rows)
    codes = np.stack([a, rng.integers(0, 3, rows), a], axis=1)
    write_codes(folder / f"{name}.csv", DOMAIN, codes)
    (folder / f"{name}-domain.json").write_text(json.dumps(dict(reversed(DOMAIN.items()))))
    return Judge(folder / f"{name}.csv", folder / f"{name}-domain.json")


def python(script: str, folder: Path, cap_cpu_s: float = 60, cap_mb: float = 4000):
    return run_capped([sys.executable, "-c", script], folder / "errors", cap_cpu_s, cap_mb)


def test_the_evaluator_by_hand() -> None:
    real = np.array([[0, 0, 0], [0, 0, 0], [1, 1, 1], [1, 1, 1]])
    shown = np.array([[0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 1, 1]])
    score = judge(real, shown, dict.fromkeys("abc", 2))
    # The pairs (a, c) and (b, c) and the triple each have half of their mass elsewhere.
    assert (score.tv2_mean, score.tv3_mean, score.tv2_worst) == (pytest.approx(1 / 3), 0.5, 0.5)


def test_the_evaluator_agrees_with_the_other_benchmarks() -> None:
    rng = np.random.default_rng(0)
    real, shown = (rng.integers(0, [2, 3, 2], (n, 3)) for n in (500, 400))
    expected = mean_tv(pair_counts(real, DOMAIN), pair_counts(shown, DOMAIN))
    assert judge(real, shown, DOMAIN).tv2_mean == pytest.approx(expected)


def test_columns_are_found_by_name(tmp_path: Path) -> None:
    truth = table(tmp_path)
    write_codes(tmp_path / "same.csv", ["c", "a", "b"], truth.codes[:, [2, 0, 1]])
    assert truth.score(tmp_path / "same.csv").tv3_mean == 0


def test_cpu_of_children_counts_and_is_capped(tmp_path: Path) -> None:
    burn = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'while True: pass'])"
    usage = python(burn, tmp_path, cap_cpu_s=0.5)
    assert (usage.over, usage.code) == ("CPU", None)
    assert 0.5 < usage.cpu_s < 5
    time.sleep(0.2)
    left = [" ".join(process.cmdline()) for process in psutil.Process().children(recursive=True)]
    assert not any("while True: pass" in line for line in left)


def test_cpu_of_ended_children_counts(tmp_path: Path) -> None:
    burn = "import time; t = time.process_time()\nwhile time.process_time() < t + 0.6: pass"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    usage = python(script, tmp_path)
    assert (usage.code, usage.over) == (0, "")
    assert usage.cpu_s > 0.6


def test_memory_is_weighed_and_capped(tmp_path: Path) -> None:
    hold = "import time; held = bytearray(200 << 20); time.sleep({})"
    assert python(hold.format(0.5), tmp_path).peak_mb > 200
    usage = python(hold.format(60), tmp_path, cap_mb=100)
    assert usage.over == "memory"
    assert usage.wall_s < 30


def test_one_thread_and_no_path_of_ours_for_peers(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    script = "import os, sys; sys.exit(repr([os.environ.get(k) for k in sys.argv[1:]]))"
    names = ["OMP_NUM_THREADS", "PYTHONPATH"]
    usage = run_capped([sys.executable, "-c", script, *names], tmp_path / "e", 60, 4000)
    assert usage.last_line == "['1', None]"


@pytest.mark.parametrize(
    ("body", "status", "note"),
    [
        ("return [row for row in job.rows]", "finished", ""),
        ("raise Refusal('1.1 > 1.0')", "refused", "Refusal: 1.1 > 1.0"),
        ("raise MemoryError('two\\nlines')", "failed", "MemoryError: two lines"),
        ("raise OSError('in \"/home/me/a.py\"')", "failed", 'OSError: in "(path)"'),
        ("return [[9, 9, 9]]", "failed", "codes outside its domain"),
        ("import sys; sys.exit('gone')", "failed", "gone"),
        ("while True: pass", "capped", "ended at the CPU cap"),
    ],
)
def test_what_becomes_of_a_door(
    body: str, status: str, note: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doors = tmp_path / "doors"
    doors.mkdir()
    (doors / "door.py").write_bytes((catalogue.HERE / "doors" / "door.py").read_bytes())
    (doors / "odd_door.py").write_text(
        f"from door import Refusal, run\n\ndef release(job):\n    {body}\n\nrun(release)\n"
    )
    monkeypatch.setattr(catalogue, "HERE", tmp_path)
    cell = Cell("titanic", Peer("odd", mechanisms=(Mechanism("x"),)), Mechanism("x"), 0)
    row = run_cell(cell, table(tmp_path), 2, tmp_path)
    assert row["status"] == status
    assert note in row.get("note", "")
    assert set(row) <= set(FIELDS)
    assert (row["cap_cpu_s"], float(row["cpu_s"]) > 0) == ("2", True)
    if status == "finished":
        assert (row["tv2_mean"], row["tv3_mean"]) == ("0.00000", "0.00000")


def test_packages_that_do_not_install_are_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "requirements-odd.txt").write_text("odd-package @ file:///no/such/odd.whl\n")
    monkeypatch.setattr(catalogue, "HERE", tmp_path)
    monkeypatch.setattr(environments, "FOLDER", tmp_path / "environments")
    peer = Peer("odd", "odd-package", (Mechanism("x"),))
    with pytest.raises(EnvironmentFault):
        interpreter(peer)
    row = run_cell(Cell("titanic", peer, Mechanism("x"), 0), table(tmp_path), 60, tmp_path)
    assert row["status"] == "failed"
    assert row["note"].startswith("not installed: ")


def test_a_finished_run_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("titanic", "adult"):  # adult is what the research data are known by
        table(tmp_path, name)
    monkeypatch.setenv("CUSYN_RESEARCH_DATA", str(tmp_path))
    monkeypatch.setattr(command, "work_folder", lambda: tmp_path)
    out = tmp_path / "peers.csv"
    arguments = ["--only", "titanic/baseline/resampled", "--out", str(out)]
    assert command.main([*arguments, "--quick"]) == 0
    (first,) = read_rows(out)
    assert first["status"] == "finished"
    assert command.main(arguments) == 0
    rows = read_rows(out)
    assert rows[0] == first
    assert [row["seed"] for row in rows] == ["0", "1", "2", "3", "4"]
    capsys.readouterr()
    assert command.main(arguments) == 0
    assert "resampled rows #" not in capsys.readouterr().out


def test_without_data_it_skips_loudly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CUSYN_RESEARCH_DATA", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        command.main(["--quick", "--out", str(tmp_path / "peers.csv")])
    assert ended.value.code == 0
    assert "SKIPPED" in capsys.readouterr().err


def test_what_counts_as_done() -> None:
    row = dict.fromkeys(FIELDS, "") | {"version": "1", "cap_cpu_s": "300"}
    for status, version, cap, done in [
        ("finished", "1", 900, True),
        ("refused", "1", 900, True),
        ("capped", "1", 300, True),
        ("capped", "1", 301, False),
        ("failed", "1", 300, False),
        ("finished", "2", 300, False),
    ]:
        assert is_done(row | {"status": status}, cap, version) is done


def test_a_repeated_run_takes_the_place_of_the_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "peers.csv"
    row = dict.fromkeys(FIELDS, "") | {"table": "t", "seed": "0"}
    for seed, status in (("0", "capped"), ("1", "capped"), ("0", "finished")):
        keep(path, row | {"seed": seed, "status": status})
    assert [(r["seed"], r["status"]) for r in read_rows(path)] == [
        ("1", "capped"),
        ("0", "finished"),
    ]


def test_the_floor_draws_real_rows(tmp_path: Path) -> None:
    truth = table(tmp_path)
    arguments = ["--csv", truth.csv_path, "--domain", truth.domain_path, "--epsilon", "1"]
    arguments += ["--delta", "1e-9", "--mechanism", "any", "--out", tmp_path / "out.csv"]
    subprocess.run([sys.executable, str(FLOOR.door), *map(str, arguments)], check=True)
    with (tmp_path / "out.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == list(DOMAIN)
    assert len(rows) == len(truth.codes)
    real = {tuple(row) for row in truth.codes.tolist()}
    assert {tuple(map(int, row)) for row in rows} <= real


def test_every_table_has_both_baselines_and_ours() -> None:
    labels = {cell.label for cell in cells(quick=False)}
    for name in catalogue.TABLES:
        for label in (
            f"{BASELINE}/resampled rows",
            f"{BASELINE}/independent columns",
            f"{OURS}/aim",
            f"{OURS}/mwem_pgm",
        ):
            assert f"{name}/{label}" in labels


def test_quick_is_titanic_once_each() -> None:
    quick = list(cells(quick=True))
    assert {cell.table for cell in quick} == {"titanic"}
    assert {cell.seed for cell in quick} == {0}
    assert {cell.peer.name for cell in quick} == {peer.name for peer in PEERS}


def test_what_is_not_known_to_finish_comes_last() -> None:
    turns = [cell.turn for cell in cells(quick=False)]
    assert turns == sorted(turns)
    last = list(cells(quick=False))[-1]
    assert last.mechanism.late == max(mechanism.late for p in PEERS for mechanism in p.mechanisms)


def test_ours_runs_through_the_public_door(tmp_path: Path) -> None:
    ours = next(peer for peer in PEERS if peer.name == OURS)
    row = run_cell(Cell("titanic", ours, ours.mechanisms[1], 0), table(tmp_path), 120, tmp_path)
    assert (row["status"], row["mechanism"]) == ("finished", "mwem_pgm")
    assert 0 < float(row["tv2_mean"]) < 0.5
    assert ROOT.name not in row["machine"]


def test_an_interrupted_comparison_leaves_nothing_running(tmp_path: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from benchmarks.peers import __main__ as command
from benchmarks.peers.supervise import run_capped

folder = Path({str(tmp_path)!r})
endless = [sys.executable, "-c", "while 'endless burn': pass"]
command.data_folder = command.work_folder = lambda: folder
command.Judge = lambda *_: None
command.run_cell = lambda *_: run_capped(endless, folder / "errors", 60, 4000)
command.main(["--quick", "--only", "baseline/resampled", "--out", str(folder / "peers.csv")])
"""
    runner = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    until(lambda: burning(runner.pid))
    runner.terminate()
    assert runner.wait(timeout=30) == 143
    until(lambda: not burning())


def until(true: Callable[[], bool]) -> None:
    """Wait half a minute at most."""
    for _ in range(300):
        if true():
            return
        time.sleep(0.1)
    raise AssertionError("it did not happen within half a minute")


def burning(above: int | None = None) -> bool:
    """Tell whether the endless script has run for a while, anywhere or below one process."""
    tree = psutil.Process(above).children(recursive=True) if above else psutil.process_iter()
    for process in tree:
        try:
            mine = any("endless burn" in part for part in process.cmdline()[1:3])
            if mine and process.cpu_times().user > 0.5:
                return True
        except psutil.Error:
            continue
    return False
