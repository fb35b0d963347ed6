"""The work folder against the journal: a rewound ledger, an exchanged table, a forged approval."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pandas as pd
import pytest

from include.budget.errors import AlreadyOpened, DigestMismatch, LedgerRewound
from include.budget.reader import LedgerReader
from include.errors import CuSynError
from include.quality.report import read_report
from include.stages.approval import NotApproved, approve, is_decided
from include.stages.budget_eval import budget_eval
from include.stages.desk import Desk
from include.stages.ledger import open_ledger, verify_ledger
from include.stages.load import load
from include.stages.publish import publish
from include.stages.quality_check import quality_check
from include.stages.run import Workplace
from include.stages.synthesize import BeingMeasured, JournalledRounds, synthesize
from tests.stages.test_stages import edit


def _file(place) -> Path:
    return Path(place.settings.ledger_url.removeprefix("sqlite:///"))


def _copy(place) -> Path:
    """Take an unforged copy of the database, as a backup does."""
    kept = _file(place).with_suffix(".bak")
    with sqlite3.connect(_file(place)) as source, sqlite3.connect(kept) as target:
        source.backup(target)
    return kept


def _restored(place, kept: Path):
    """Put the copy back, and open it as another process would."""
    place.ledger.engine.dispose()
    for end in ("-wal", "-shm"):
        Path(f"{_file(place)}{end}").unlink(missing_ok=True)
    shutil.copy(kept, _file(place))
    return Workplace(place.settings, open_ledger(place.settings, place.settings.ledger_url))


def _granted(place, make_run):
    run = make_run()
    return budget_eval(run, place, load(run, place))


def _folder(place, charge) -> Path:
    return place.settings.work_dir / charge.charge_id


def _transcripts(place, charge) -> list[str]:
    return sorted(path.name for path in _folder(place, charge).glob("transcript-*"))


def _killed_when(monkeypatch, place, step: str, number: int) -> list[Path]:
    """Copy the database right after a step of a round, and go on."""
    kept: list[Path] = []
    real = getattr(JournalledRounds, step)

    def copying(self, round, given):
        real(self, round, given)
        if round == number and not kept:
            kept.append(_copy(place))

    monkeypatch.setattr(JournalledRounds, step, copying)
    return kept


def test_a_ledger_rewound_behind_the_open_measures_nothing_again(place, make_run, monkeypatch):
    charge = _granted(place, make_run)
    copies = []
    real = place.ledger.open

    def opening(*args, **given):
        right = real(*args, **given)
        copies.append(_copy(place))
        return right

    monkeypatch.setattr(place.ledger, "open", opening)
    synthesize(make_run(), place)
    first = _transcripts(place, charge)
    rewound = _restored(place, copies[0])
    shutil.rmtree(_folder(place, charge))  # whoever redraws has kept the first draw elsewhere
    with pytest.raises(LedgerRewound, match="does not hold entry"):
        synthesize(make_run(attempt=2), rewound)
    assert len(first) == 1 and _transcripts(place, charge) == []


def test_a_ledger_rewound_behind_its_seal_measures_nothing_again(place, make_run, monkeypatch):
    charge = _granted(place, make_run)
    kept = _killed_when(monkeypatch, place, "begin", 1)
    synthesize(make_run(), place)
    rewound = _restored(place, kept[0])
    shutil.rmtree(_folder(place, charge))
    with pytest.raises(LedgerRewound, match="does not hold entry"):
        synthesize(make_run(attempt=2), rewound)
    assert _transcripts(place, charge) == []


@pytest.mark.parametrize(("step", "number", "named"), [("begin", 1, 1), ("answer", 1, 2)])
def test_a_folder_that_knows_more_than_the_journal_is_never_drawn_again(
    place, make_run, monkeypatch, step, number, named
):
    """The witnesses are lost as well: the work folder still is one."""
    charge = _granted(place, make_run)
    kept = _killed_when(monkeypatch, place, step, number)
    synthesize(make_run(), place)
    first = _transcripts(place, charge)
    rewound = _restored(place, kept[0])
    shutil.rmtree(place.settings.checkpoints_dir)
    spent = [pool.spent_pico for pool in rewound.reader.pools()]
    with pytest.raises(LedgerRewound, match=rf"holds round {named}, which the ledger does not"):
        synthesize(make_run(attempt=2), rewound)
    assert rewound.reader.charge(charge.charge_id).state == "forfeited"
    assert _transcripts(place, charge) == first
    assert [pool.spent_pico for pool in rewound.reader.pools()] == spent
    with pytest.raises(CuSynError):
        synthesize(make_run(attempt=3), rewound)


def test_a_run_at_work_at_the_same_time_is_not_taken_for_a_rewound_ledger(
    place, make_run, monkeypatch
):
    """The other run goes on between this one's look at the folder and at the journal."""
    charge = _granted(place, make_run)
    begin, entries, looks = JournalledRounds.begin, LedgerReader.entries, []

    def beside(self, round, events):
        begin(self, round, events)
        if round == 1:
            with pytest.raises(CuSynError) as caught:
                synthesize(make_run(), place)
            assert not isinstance(caught.value, LedgerRewound)

    def late(reader, *asked):
        """Answer with what the journal held before the other run's first round."""
        found = entries(reader, *asked)
        if asked and not looks:
            looks.append(Desk(place.desk(charge.charge_id)).write_round(1, {"late": True}))
            found = [one for one in found if one.kind not in ("begin_round", "answer_round")]
        return found

    monkeypatch.setattr(JournalledRounds, "begin", beside)
    monkeypatch.setattr(LedgerReader, "entries", late)
    synthesize(make_run(), place)
    assert looks
    assert place.reader.charge(charge.charge_id).state == "sealed"


def test_a_reservation_whose_folder_holds_a_measurement_is_not_opened(place, make_run):
    charge = _granted(place, make_run)
    kept = _copy(place)
    synthesize(make_run(), place)
    rewound = _restored(place, kept)
    shutil.rmtree(place.settings.checkpoints_dir)
    with pytest.raises(LedgerRewound, match="nothing is drawn again"):
        synthesize(make_run(attempt=2), rewound)
    assert rewound.reader.charge(charge.charge_id).state == "reserved"


def test_a_task_killed_before_the_seal_still_goes_on(place, make_run, monkeypatch):
    """An honest crash leaves a transcript of answered rounds: the journal knows them all."""
    charge = _granted(place, make_run)

    def killed(opened, digest):
        raise SystemExit

    monkeypatch.setattr(place.ledger, "seal", killed)
    with pytest.raises(SystemExit):
        synthesize(make_run(), place)
    monkeypatch.undo()
    first = _transcripts(place, charge)
    assert len(first) == 1
    synthesize(make_run(attempt=2), place)
    assert place.reader.charge(charge.charge_id).state == "sealed"
    assert verify_ledger(place).ok


def _checked(place, make_run):
    charge = _granted(place, make_run)
    synthesize(make_run(), place)
    quality_check(make_run(), place)
    return charge


@pytest.mark.parametrize("name", ["synthetic.parquet", "synthetic.npy", "interest_errors.json"])
def test_an_exchanged_file_is_neither_judged_nor_published(place, make_run, name):
    charge = _granted(place, make_run)
    synthesize(make_run(), place)
    path = _folder(place, charge) / name
    if name == "synthetic.parquet":
        frame = pd.read_parquet(path)
        frame["ward"] = "north"
        frame.to_parquet(path)
    else:
        path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(DigestMismatch, match="not the one the journal names"):
        quality_check(make_run(), place)
    (_folder(place, charge) / "synthetic.parquet").unlink()
    synthesize(make_run(attempt=2), place)  # the same table again, from the sealed transcript
    quality_check(make_run(), place)
    assert publish(make_run(), place).release_id


def test_a_table_exchanged_after_its_check_is_not_published(place, make_run):
    charge = _checked(place, make_run)
    desk = Desk(_folder(place, charge))
    pd.read_parquet(desk.table).head(3).to_parquet(desk.table)
    with pytest.raises(DigestMismatch, match="not the one the journal names"):
        publish(make_run(), place)
    assert place.reader.charge(charge.charge_id).state == "sealed"
    assert not (place.settings.project_root / "releases").exists()


def test_a_table_left_before_it_was_named_is_made_again(place, make_run, monkeypatch):
    charge = _granted(place, make_run)

    def killed(*args, **given):
        raise SystemExit

    monkeypatch.setattr(place.ledger, "state_table", killed)
    with pytest.raises(SystemExit):
        synthesize(make_run(), place)
    monkeypatch.undo()
    desk = Desk(_folder(place, charge))
    made = desk.table.read_bytes()
    pd.read_parquet(desk.table).head(3).to_parquet(desk.table)
    synthesize(make_run(attempt=2), place)
    assert desk.table.read_bytes() == made


def test_a_file_is_no_approval(place, make_run):
    edit(place, "rows: 200", "rows: 200\napproval: required")
    charge = _checked(place, make_run)
    told = json.dumps({"approved_by": "berta"})
    for text in ("", told):
        (_folder(place, charge) / "approval.json").write_text(text)
        with pytest.raises(NotApproved, match="none is recorded"):
            publish(make_run(), place)
    with pytest.raises(NotApproved, match="does not name who answered"):
        approve(make_run(), place, "unknown")
    approve(make_run(), place, "berta")
    entry = next(e for e in place.reader.entries(charge.charge_id) if e.kind == "approve")
    assert entry.actor == "berta"
    assert publish(make_run(), place).release_id
    assert verify_ledger(place).ok


def test_an_approval_is_of_the_report_that_was_shown(place, make_run):
    edit(place, "rows: 200", "rows: 200\napproval: required")
    charge = _checked(place, make_run)
    approve(make_run(), place, "berta")
    report = Desk(_folder(place, charge)).report_json
    report.write_bytes(report.read_bytes() + b"\n")
    assert read_report(report).verdict.passed and not is_decided(make_run(), place)
    with pytest.raises(NotApproved, match="for its table and report"):
        publish(make_run(), place)
    approve(make_run(), place, "carol")
    assert publish(make_run(), place).release_id


def test_a_second_run_that_loses_the_opening_by_a_moment_waits(place, make_run, monkeypatch):
    charge = _granted(place, make_run)  # as the second run has read it: reserved
    place.ledger.open(charge.charge_id, plan={}, cost=charge.planned, events=[], attempt="1")
    monkeypatch.setattr("include.stages.synthesize.paid_charge", lambda run, place: charge)
    with pytest.raises(BeingMeasured, match="wait for it"):
        synthesize(make_run(run_id="run-2"), place)
    with pytest.raises(AlreadyOpened):
        synthesize(make_run(), place)
