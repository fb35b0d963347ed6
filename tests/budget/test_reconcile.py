"""A ledger restored from a backup: noticed, frozen, reconciled with what was seen outside."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine, Table

from include.budget.anchors import (
    WitnessDamaged,
    exported_checkpoints,
    guard,
    manifest_anchor,
)
from include.budget.checkpoint import Checkpoint, checkpoint, export_checkpoint
from include.budget.errors import InvalidRequest, LedgerRewound, PoolFrozen
from include.budget.ledger import Ledger
from include.budget.models import OpenedCharge
from include.budget.reconcile import Evidence, LostRelease
from include.budget.store.tables import METADATA
from include.budget.verify import Anchor
from tests.budget.servers import unguarded
from tests.budget.test_export import Key
from tests.budget.world import DIGEST, World, pico, zcdp

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
    return Ledger(world.engine, clock=world.clock, guard=guard(exported_checkpoints(folder)))


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


def test_a_younger_witness_does_not_hide_a_loss(
    world: World, lost: Checkpoint, tmp_path: Path
) -> None:
    """A restored ledger that exports a checkpoint of its own is believed by nobody."""
    world.clock.forward(hours=1)
    export_checkpoint(checkpoint(world.engine, Key(), clock=world.clock), tmp_path)
    ledger = _guarded(world, tmp_path)
    with pytest.raises(LedgerRewound, match=f"entry {lost.facts['seq']}"):
        ledger.reserve(world.request("new"), zcdp)
    with pytest.raises(LedgerRewound):
        checkpoint(world.engine, Key(), clock=world.clock, guard=ledger.guard)


@pytest.mark.parametrize("step", ["open", "resume", "seal", "begin_publishing", "publish"])
def test_a_restored_ledger_goes_on_with_no_charge(world: World, tmp_path: Path, step: str) -> None:
    """The charge it believes reserved, opened or sealed may have been measured since."""
    charge = world.reserve()
    opened = OpenedCharge(charge.charge_id, 1)
    if step != "open":
        opened = world.open(charge)
    if step in ("begin_publishing", "publish"):
        world.ledger.seal(opened, DIGEST)
    if step == "publish":
        world.ledger.begin_publishing(charge.charge_id)
    seen = json.loads(checkpoint(world.engine, Key()).body) | {"seq": 999, "hash": "0" * 64}
    export_checkpoint(Checkpoint(json.dumps(seen), "k", "s"), tmp_path)
    world.ledger = ledger = _guarded(world, tmp_path)
    steps: dict[str, Callable[[], object]] = {
        "open": lambda: world.open(charge),
        "resume": lambda: ledger.resume(charge.charge_id, attempt="2", last_round=0),
        "seal": lambda: ledger.seal(opened, DIGEST),
        "begin_publishing": lambda: ledger.begin_publishing(charge.charge_id),
        "publish": lambda: ledger.publish(charge.charge_id, manifest_digest=DIGEST, uri="x"),
    }
    before = world.reader.charge(charge.charge_id)
    with pytest.raises(LedgerRewound, match="entry 999"):
        steps[step]()
    assert world.reader.charge(charge.charge_id) == before
    assert {pool.status for pool in world.reader.pools()} == {"frozen"}


def test_reconciling_accounts_for_every_exported_checkpoint(
    world: World, backup: Callable[[], None], tmp_path: Path
) -> None:
    made = []
    for name in ("a", "b", "c"):
        world.published(name, "0.5")
        made.append(checkpoint(world.engine, Key(), clock=world.clock))
        export_checkpoint(made[-1], tmp_path)
    backup()
    ledger = _guarded(world, tmp_path)
    given = {"actor": "admin", "authorised_by": "board", "reason": "the disk failed"}
    ledger.reconcile(Evidence([made[2].facts]), **given)
    with pytest.raises(LedgerRewound):  # two more were seen, and nobody has accounted for them
        ledger.reserve(world.request("new"), zcdp)
    ledger.reconcile(Evidence([one.facts for one in made]), **given)
    assert ledger.reserve(world.request("new"), zcdp).state == "reserved"
    report = world.verify(*(one.anchor for one in made))
    assert report.ok, report.problems
    assert report.notes[0].startswith("RECONCILED: 3 entries were lost")


def test_what_was_opened_before_the_backup_is_not_measured_a_second_time(
    world: World, lost: Checkpoint
) -> None:
    opened = world.reader.charges(state="opened")[0]
    given = {"actor": "admin", "authorised_by": "board", "reason": "the disk failed"}
    world.ledger.reconcile(Evidence([lost.facts]), **given)
    assert world.reader.charge(opened.charge_id).state == "forfeited"
    world.sound()


def test_a_reconciliation_that_gives_budget_back_is_found(world: World, lost: Checkpoint) -> None:
    """Naming the lost entries is not enough: all that the witness saw must be charged."""
    lying = {**lost.facts, "pools": {}}
    given = {"actor": "mallory", "authorised_by": "eve", "reason": "disk repaired"}
    world.ledger.reconcile(Evidence([lying]), **given)
    world.published("sold_twice")  # what is sold later must not count as the charge
    world.ledger.reconcile(Evidence([lost.facts]), **given)  # too late to be honest
    report = world.verify(lost.anchor)
    assert not report.ok
    assert "budget was given back" in str(report.problems[0])


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
    evidence = Evidence([lost.facts], [release])
    with pytest.raises(InvalidRequest, match="two people"):
        ledger.reconcile(evidence, actor="admin", authorised_by="Admin", reason="x")
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
    assert len(report.notes) == 3


def test_after_reconciling_a_second_loss_is_noticed_too(
    world: World, lost: Checkpoint, tmp_path: Path
) -> None:
    ledger = _guarded(world, tmp_path)
    given = {"actor": "admin", "authorised_by": "board", "reason": "the disk failed"}
    ledger.reconcile(Evidence([lost.facts]), **given)
    world.clock.forward(hours=1)
    later = checkpoint(world.engine, Key(), clock=world.clock)
    assert later.facts["seq"] < lost.facts["seq"]  # a shorter journal, a younger witness
    forged = json.loads(later.body) | {"hash": "0" * 64}
    export_checkpoint(Checkpoint(json.dumps(forged), later.key_id, later.signature), tmp_path)
    with pytest.raises(LedgerRewound):
        ledger.reserve(world.request("new"), zcdp)


def test_the_witness_of_a_lost_entry_is_never_overwritten(tmp_path: Path) -> None:
    made = [Checkpoint(json.dumps({"seq": 7, "hash": digit * 64}), "k", "s") for digit in "ab"]
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
    with pytest.raises(WitnessDamaged, match=r"checkpoint-000000000001\.json cannot be read"):
        _guarded(world, tmp_path).reserve(world.request(), zcdp)
    assert {pool.status for pool in world.reader.pools()} == {"open"}


def test_a_manifest_is_an_anchor(tmp_path: Path) -> None:
    path = tmp_path / "datapackage.json"
    lineage = {"entry_seq": 7, "entry_hash": "ab", "release": "monthly", "period": "2026-01"}
    path.write_text(json.dumps({"dp": {"lineage": lineage}}))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    told = "the manifest of monthly, 2026-01"
    assert manifest_anchor(path) == Anchor(7, "ab", told, manifest=digest)
    path.write_text("{}")
    with pytest.raises(LedgerRewound):
        manifest_anchor(path)
