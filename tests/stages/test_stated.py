"""The work folder against the journal: a rewound ledger, an exchanged table, a forged approval."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from include.budget.errors import AlreadyOpened, DigestMismatch, LedgerRewound, WrongState
from include.budget.export import export
from include.budget.reader import LedgerReader
from include.errors import CuSynError
from include.quality.fidelity import Verdict
from include.quality.report import read_report, render_json, write_report
from include.stages.approval import NotApproved, approve, is_decided
from include.stages.budget_eval import budget_eval
from include.stages.desk import Desk
from include.stages.ledger import open_ledger, verify_ledger
from include.stages.load import load
from include.stages.publish import publish
from include.stages.quality_check import Withheld, quality_check
from include.stages.run import Workplace
from include.stages.synthesize import BeingMeasured, JournalledRounds, synthesize
from tests.stages.test_stages import edit
from tools import verify_export


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
    assert read_report(report).verdict.passed
    for step in (publish, lambda run, place: approve(run, place, "carol")):
        with pytest.raises(DigestMismatch, match="run quality_check again"):
            step(make_run(), place)
    _other_spending(place, make_run)
    quality_check(make_run(), place)  # the pools hold something else now, and so the report
    assert len(_reports(place, charge)) == 2 and not is_decided(make_run(), place)
    with pytest.raises(NotApproved, match="for its table and report"):
        publish(make_run(), place)
    approve(make_run(), place, "carol")
    assert is_decided(make_run(), place)
    assert publish(make_run(), place).release_id
    assert verify_ledger(place).ok


def _other_spending(place, make_run, period: str = "2002-12-31") -> None:
    """Hold budget of the same pools for another period: a report made later tells of it."""
    run = make_run(run_id=f"run-{period}", period=period)
    assert budget_eval(run, place, load(run, place)).state == "reserved"


def _reports(place, charge) -> list[dict]:
    entries = place.reader.entries(charge.charge_id)
    return [entry.facts for entry in entries if entry.kind == "report"]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _strict(place) -> None:
    edit(place, "rows: 200", "rows: 200\ngate: {max_interest_bound95_tv: 0.0001}")


def _forge(desk: Desk) -> None:
    """Leave a whole report, of this release, whose verdict is that it passed."""
    report = read_report(desk.report_json)
    assert not report.verdict.passed
    write_report(desk.folder, replace(report, verdict=Verdict(True, ())))


def _failed_unsaid(place, make_run, monkeypatch, step: str):
    """Judge a table that fails its gate, and die in a step of the ledger."""
    _strict(place)
    charge = _granted(place, make_run)
    synthesize(make_run(), place)

    def killed(*args, **given):
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(place.ledger, step, killed)
        with pytest.raises(SystemExit):
            quality_check(make_run(), place)
    return charge, Desk(_folder(place, charge))


def test_the_report_is_named_with_its_page_and_is_what_the_package_holds(place, make_run):
    charge = _checked(place, make_run)
    desk = Desk(_folder(place, charge))
    quality_check(make_run(attempt=2), place)
    _other_spending(place, make_run)
    quality_check(make_run(attempt=3), place)  # the named one is read, not made again
    assert _reports(place, charge) == [
        {
            "digest": _digest(desk.report_json),
            "beside": {"report.html": _digest(desk.report_html)},
            "passed": True,
        }
    ]
    package = Path(publish(make_run(), place).uri)
    for path in (desk.report_json, desk.report_html):
        assert (package / path.name).read_bytes() == path.read_bytes()
    quality_check(make_run(attempt=4), place)
    assert len(_reports(place, charge)) == 1


def test_a_forged_report_before_the_check_is_not_believed(place, make_run, monkeypatch):
    charge, desk = _failed_unsaid(place, make_run, monkeypatch, "state_report")
    _forge(desk)
    with pytest.raises(CuSynError, match="only a sealed measurement that passed"):
        publish(make_run(), place)
    with pytest.raises(Withheld, match="what was spent stays spent"):
        quality_check(make_run(), place)
    assert place.reader.charge(charge.charge_id).state == "withheld"
    assert [facts["passed"] for facts in _reports(place, charge)] == [False]
    _forge(desk)
    with pytest.raises(Withheld):
        quality_check(make_run(attempt=2), place)
    assert verify_ledger(place).ok


@pytest.mark.parametrize("name", ["report.json", "report.html"])
def test_a_report_exchanged_after_the_check_is_not_published(place, make_run, name):
    charge = _checked(place, make_run)
    path = _folder(place, charge) / name
    stated = path.read_bytes()
    path.write_bytes(stated.replace(b"clinic", b"hospital"))
    assert path.read_bytes() != stated
    with pytest.raises(DigestMismatch, match="not the one the journal names last; run quality"):
        publish(make_run(), place)
    assert place.reader.charge(charge.charge_id).state == "sealed"
    assert not (place.settings.project_root / "releases").exists()
    quality_check(make_run(attempt=2), place)  # the pools are as they were: so is the report
    assert path.read_bytes() == stated and len(_reports(place, charge)) == 1
    assert publish(make_run(), place).release_id


@pytest.mark.parametrize("spent", [False, True])
def test_a_report_lost_after_it_was_named_is_made_again(place, make_run, spent):
    charge = _checked(place, make_run)
    desk = Desk(_folder(place, charge))
    desk.report_json.unlink()
    if spent:
        _other_spending(place, make_run)
    with pytest.raises(DigestMismatch, match="missing or not the one"):
        publish(make_run(), place)
    quality_check(make_run(attempt=2), place)
    quality_check(make_run(attempt=3), place)
    reports = _reports(place, charge)
    assert len(reports) == 1 + spent
    assert reports[-1]["digest"] == _digest(desk.report_json)
    assert publish(make_run(), place).release_id
    assert verify_ledger(place).ok


@pytest.mark.parametrize("step", ["state_report", "withhold"])
def test_a_check_killed_before_its_entry_or_its_verdict_goes_on(place, make_run, monkeypatch, step):
    charge, desk = _failed_unsaid(place, make_run, monkeypatch, step)
    assert desk.report_json.exists() and len(_reports(place, charge)) == (step == "withhold")
    for attempt in (2, 3):
        with pytest.raises(Withheld):
            quality_check(make_run(attempt=attempt), place)
    assert len(_reports(place, charge)) == 1
    assert place.reader.charge(charge.charge_id).state == "withheld"


def test_judging_again_is_no_second_try_at_the_gate(place, make_run, monkeypatch):
    """Each report differs, since the pools do; its verdict and its figures do not."""
    charge, desk = _failed_unsaid(place, make_run, monkeypatch, "withhold")
    judged = [read_report(desk.report_json)]
    for tried in range(2, 5):
        desk.report_json.unlink()
        _other_spending(place, make_run, ("2002-12-31", "2003-12-31")[tried % 2])
        with monkeypatch.context() as patched:
            patched.setattr(place.ledger, "withhold", lambda *args: None)
            with pytest.raises(Withheld):
                quality_check(make_run(attempt=tried), place)
        judged.append(read_report(desk.report_json))
    assert len(_reports(place, charge)) > 1
    assert len({render_json(one) for one in judged}) == len(_reports(place, charge))
    assert all(one.fidelity == judged[0].fidelity for one in judged)
    assert {one.verdict for one in judged} == {judged[0].verdict}


def test_a_gate_edited_after_it_said_no_lets_nothing_pass(place, make_run, monkeypatch):
    charge, desk = _failed_unsaid(place, make_run, monkeypatch, "withhold")
    desk.report_json.unlink()
    edit(place, "rows: 200", "rows: 200")  # the release file without its gate
    with pytest.raises(WrongState, match="restore the gate in the release file"):
        quality_check(make_run(attempt=2), place)
    with pytest.raises(DigestMismatch):
        publish(make_run(), place)
    assert [facts["passed"] for facts in _reports(place, charge)] == [False]
    _strict(place)
    with pytest.raises(Withheld):
        quality_check(make_run(attempt=3), place)
    assert place.reader.charge(charge.charge_id).state == "withheld"


def test_a_report_lost_while_publishing_comes_out_the_same_or_from_a_backup(
    place, make_run, monkeypatch
):
    charge = _checked(place, make_run)
    desk = Desk(_folder(place, charge))

    def killed(*args, **given):
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(place.ledger, "publish", killed)
        with pytest.raises(SystemExit):
            publish(make_run(), place)
    kept = desk.report()
    desk.report_json.unlink()
    quality_check(make_run(attempt=2), place)
    assert desk.report() == kept
    desk.report_json.unlink()
    _other_spending(place, make_run)
    with pytest.raises(DigestMismatch, match="publishing has begun with another report; restore"):
        quality_check(make_run(attempt=3), place)
    with pytest.raises(DigestMismatch, match="missing or not the one"):
        publish(make_run(), place)
    for name, data in kept.items():
        (desk.folder / name).write_bytes(data)
    assert publish(make_run(), place).release_id
    assert len(_reports(place, charge)) == 1 and verify_ledger(place).ok


def test_a_journal_with_two_reports_passes_the_standalone_verifier(place, make_run):
    charge = _checked(place, make_run)
    Desk(_folder(place, charge)).report_html.unlink()
    _other_spending(place, make_run)
    quality_check(make_run(attempt=2), place)
    published = publish(make_run(), place)
    ledger = place.settings.project_root / "ledger.jsonl"
    with ledger.open("w") as file:
        export(place.ledger.engine, file)
    keys = dict(map(verify_export.read_key, place.settings.keys_dir.glob("public/*.pem")))
    manifest = Path(published.uri) / "datapackage.json"
    told = verify_export.verify(ledger, keys, [manifest], [])
    assert len(_reports(place, charge)) == 2 and "nothing is wrong" in told


def test_a_second_run_that_loses_the_opening_by_a_moment_waits(place, make_run, monkeypatch):
    charge = _granted(place, make_run)  # as the second run has read it: reserved
    place.ledger.open(charge.charge_id, plan={}, cost=charge.planned, events=[], attempt="1")
    monkeypatch.setattr("include.stages.synthesize.paid_charge", lambda run, place: charge)
    with pytest.raises(BeingMeasured, match="wait for it"):
        synthesize(make_run(run_id="run-2"), place)
    with pytest.raises(AlreadyOpened):
        synthesize(make_run(), place)
