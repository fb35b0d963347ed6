"""A ledger restored from a backup: noticed, frozen, reconciled with what was seen outside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine, Table

from include.budget.anchors import guard, manifest_anchor, newest_checkpoint
from include.budget.checkpoint import Checkpoint, checkpoint, export_checkpoint
from include.budget.errors import InvalidRequest, LedgerRewound, PoolFrozen
from include.budget.ledger import Ledger
from include.budget.reconcile import Evidence, LostRelease
from include.budget.store.tables import METADATA
from include.budget.verify import Anchor
from tests.budget.servers import unguarded
from tests.budget.test_export import Key
from tests.budget.world import World, pico, zcdp

RHO = zcdp(pico("1")).rho_pico
PEOPLE, LAB = "dataset:people:zcdp:1", "user:lab@survey:zcdp:1"


@pytest.fixture
def backup(world: World) -> Callable[[], None]:
    """Remember the ledger as it is now; calling it restores that."""
    world.opened("before")
    world.reserve("pending", "0.5")
    with world.engine.connect() as connection:
        rows = {
            table: [dict(row) for row in connection.execute(table.select()).mappings()]
            for table in METADATA.sorted_tables
        }
    return lambda: _restore(world.engine, rows)


def _restore(engine: Engine, rows: dict[Table, list[dict[str, object]]]) -> None:
    with unguarded(engine) as connection:
        for table in reversed(METADATA.sorted_tables):
            connection.execute(table.delete())
        for table in METADATA.sorted_tables:
            for row in rows[table]:
                connection.execute(table.insert(), row)


@pytest.fixture
def lost(world: World, backup: Callable[[], None], tmp_path: Path) -> Checkpoint:
    """Two releases after the backup, a checkpoint after the first; then the restore."""
    world.published("lost_1")
    made = checkpoint(world.engine, Key(), clock=world.clock)
    export_checkpoint(made, tmp_path)
    world.published("lost_2", "0.7")
    backup()
    world.sound()  # a restored ledger is consistent in itself
    return made


def _guarded(world: World, folder: Path) -> Ledger:
    return Ledger(world.engine, clock=world.clock, before_reserve=guard(newest_checkpoint(folder)))


def test_a_restored_ledger_is_frozen_before_it_sells_anything_twice(
    world: World, lost: Checkpoint, tmp_path: Path
) -> None:
    ledger = _guarded(world, tmp_path)
    for _ in range(2):
        with pytest.raises(LedgerRewound, match="restored from a backup"):
            ledger.reserve(world.request("new"), zcdp)
    assert {pool.status for pool in world.reader.pools()} == {"frozen"}
    with pytest.raises(PoolFrozen):
        world.reserve("elsewhere")  # also where nobody looks at checkpoints
    pending = world.reader.charges(state="reserved")[0]
    with pytest.raises(PoolFrozen):
        world.open(pending)


def test_reconciling_charges_what_was_lost_and_thaws(
    world: World, lost: Checkpoint, tmp_path: Path
) -> None:
    ledger = _guarded(world, tmp_path)
    with pytest.raises(LedgerRewound):
        ledger.reserve(world.request("new"), zcdp)
    second = zcdp(pico("0.7")).rho_pico
    release = LostRelease(
        "monthly-period_lost_2",
        Anchor(lost.facts["seq"] + 4, "ab" * 32, "its manifest"),
        {PEOPLE: second, LAB: second},
    )
    evidence = Evidence(lost.facts, [release])
    with pytest.raises(InvalidRequest, match="two people"):
        ledger.reconcile(evidence, actor="admin", authorised_by="admin", reason="x")
    charged = ledger.reconcile(
        evidence, actor="admin", authorised_by="board", reason="the disk failed"
    )
    pending = zcdp(pico("0.5")).rho_pico  # was held at the checkpoint: may have been opened since
    assert charged == {PEOPLE: RHO + pending + second, LAB: RHO + pending + second}
    assert world.pool().spent_pico == 2 * RHO + pending + second
    assert world.pool().held_pico == 0
    assert ledger.reserve(world.request("new"), zcdp).state == "reserved"
    report = world.verify(lost.anchor, release.anchor)
    assert report.ok, report.problems
    assert len(report.notes) == 2


def test_after_reconciling_a_second_loss_is_noticed_too(
    world: World, lost: Checkpoint, tmp_path: Path
) -> None:
    ledger = _guarded(world, tmp_path)
    given = {"actor": "admin", "authorised_by": "board", "reason": "the disk failed"}
    ledger.reconcile(Evidence(lost.facts), **given)
    world.clock.forward(hours=1)
    later = checkpoint(world.engine, Key(), clock=world.clock)
    assert later.facts["seq"] < lost.facts["seq"]  # a shorter journal, a younger witness
    forged = json.loads(later.body) | {"hash": "0" * 64}
    export_checkpoint(Checkpoint(json.dumps(forged), later.key_id, later.signature), tmp_path)
    with pytest.raises(LedgerRewound):
        ledger.reserve(world.request("new"), zcdp)


def test_the_witness_of_a_lost_entry_is_never_overwritten(tmp_path: Path) -> None:
    made = [
        Checkpoint(json.dumps({"seq": 7, "hash": digit * 64, "at": "t"}), "k", "s")
        for digit in "ab"
    ]
    assert len({export_checkpoint(one, tmp_path) for one in made}) == 2


def test_a_rewritten_entry_is_noticed_like_a_missing_one(world: World, tmp_path: Path) -> None:
    made = checkpoint(world.engine, Key())
    forged = json.loads(made.body) | {"hash": "0" * 64}
    export_checkpoint(Checkpoint(json.dumps(forged), made.key_id, made.signature), tmp_path)
    with pytest.raises(LedgerRewound):
        _guarded(world, tmp_path).reserve(world.request(), zcdp)


def test_a_sound_ledger_passes_the_guard(world: World, tmp_path: Path) -> None:
    ledger = _guarded(world, tmp_path)
    assert ledger.reserve(world.request("1"), zcdp).state == "reserved"
    export_checkpoint(checkpoint(world.engine, Key()), tmp_path)
    assert ledger.reserve(world.request("2"), zcdp).state == "reserved"


def test_a_damaged_checkpoint_is_not_ignored(world: World, tmp_path: Path) -> None:
    (tmp_path / "checkpoint-000000000001.json").write_text("{}")
    with pytest.raises(LedgerRewound, match="cannot be read"):
        _guarded(world, tmp_path).reserve(world.request(), zcdp)


def test_a_manifest_is_an_anchor(tmp_path: Path) -> None:
    path = tmp_path / "datapackage.json"
    lineage = {"entry_seq": 7, "entry_hash": "ab", "release": "monthly", "period": "2026-01"}
    path.write_text(json.dumps({"dp": {"lineage": lineage}}))
    assert manifest_anchor(path) == Anchor(7, "ab", "the manifest of monthly, 2026-01")
    path.write_text("{}")
    with pytest.raises(LedgerRewound):
        manifest_anchor(path)
