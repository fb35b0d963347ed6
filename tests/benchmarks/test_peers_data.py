"""The pins, the faults and the stored results of the comparison with peers."""

from __future__ import annotations

import re

import pytest

from benchmarks.appended import read_rows
from benchmarks.peers.__main__ import PROBES, RESULTS
from benchmarks.peers.catalogue import DELTA, EPSILON, HERE, PEERS, TABLES, cells
from benchmarks.peers.faults import FAULTS, PROBE_FIELDS, faults_of
from benchmarks.peers.results import FIELDS, key

OTHERS = [peer for peer in PEERS if peer.package]
STATUSES = {"finished", "capped", "refused", "failed"}


@pytest.mark.parametrize("peer", OTHERS, ids=lambda peer: peer.name)
def test_every_environment_is_pinned_completely(peer) -> None:
    assert peer.door.exists()
    assert peer.version
    lines = peer.requirements.read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.lstrip().startswith("#")]
    assert all(re.match(r"^[A-Za-z0-9._-]+(\[[\w,]+])?==[\w.!+-]+( ;.*)?$", pin) for pin in pins)
    short = peer.requirements.with_suffix(".in").read_text(encoding="utf-8")
    assert f"=={peer.version}" in short


def test_what_the_overrides_leave_out_is_left_out() -> None:
    names = re.findall(r"^(\w+);", (HERE / "overrides.txt").read_text(), re.MULTILINE)
    assert names == ["torch", "opacus"]
    for peer in OTHERS:
        pins = peer.requirements.read_text(encoding="utf-8")
        assert not any(re.search(rf"^{name}==", pins, re.MULTILINE) for name in names)


def test_every_peer_has_its_faults_named() -> None:
    known = {(peer.name, mechanism.name) for peer in PEERS for mechanism in peer.mechanisms}
    for fault in FAULTS:
        assert (fault.peer, fault.mechanism) in known | {(peer.name, "") for peer in PEERS}
        assert re.fullmatch(r"[A-Z][^\n|]+\.", fault.sentence)
        assert not fault.probe or (HERE / "probes" / f"{fault.probe}.py").exists()
    for peer in OTHERS:
        assert all(faults_of(peer.name, mechanism.name) for mechanism in peer.mechanisms)


def test_own_faults_stand_before_the_peers() -> None:
    first, second = faults_of("dpmm", "privbayes")
    assert (first.mechanism, second.mechanism) == ("privbayes", "")


def test_the_measured_faults_are_as_the_sentences_say() -> None:
    measured = read_rows(PROBES)
    wanted = {(fault.peer, fault.probe) for fault in FAULTS if fault.probe}
    assert {(row["peer"], row["probe"]) for row in measured} == wanted
    versions = {peer.name: peer.version for peer in PEERS}
    for row in measured:
        assert set(row) == set(PROBE_FIELDS)
        assert row["version"] == versions[row["peer"]]
        expected = {"sampler_probe": 0.9, "privbayes_probe": float(EPSILON)}
        assert float(row["value"]) > expected[row["probe"]]


def test_the_stored_results_are_runs_of_the_catalogue() -> None:
    assert (EPSILON, DELTA) == ("1", "1e-9")
    rows = read_rows(RESULTS)
    known = {cell.key for cell in cells(quick=False)}
    versions = {peer.name: peer.version for peer in OTHERS}
    assert len({key(row) for row in rows}) == len(rows)
    for row in rows:
        assert tuple(row) == FIELDS
        assert key(row) in known
        assert row["version"] == versions.get(row["peer"], row["version"])
        assert row["status"] in STATUSES
        assert int(row["cap_cpu_s"]) > 0 < int(row["cap_mb"])
        assert "/" not in row["note"] + row["machine"]
        if row["status"] == "finished":
            assert 0 <= float(row["tv2_mean"]) <= float(row["tv3_mean"]) <= 1
            assert float(row["tv2_mean"]) <= float(row["tv2_worst"]) <= 1
            assert float(row["cpu_s"]) <= int(row["cap_cpu_s"]) + 5
        else:
            assert row["note"]
            assert not row["tv2_mean"]
        if row["note"] == "ended at the CPU cap":
            assert float(row["cpu_s"]) >= int(row["cap_cpu_s"])


def test_each_table_is_shown_with_its_floor_its_baseline_and_ours() -> None:
    finished = {key(row)[:3] for row in read_rows(RESULTS) if row["status"] == "finished"}
    for table in TABLES:
        assert (table, "baseline", "resampled rows") in finished
        assert (table, "baseline", "independent columns") in finished
        assert {(table, "cusyn", "aim"), (table, "cusyn", "mwem_pgm")} <= finished
