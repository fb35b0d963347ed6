"""What the journal says of a release: its one table, its report, its approval; both databases."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL

from include.budget import statements
from include.budget.audit import audit_release
from include.budget.errors import (
    DigestMismatch,
    InvalidRequest,
    LedgerRewound,
    NotApproved,
    WrongState,
)
from include.budget.export import export
from include.budget.journal import Draft
from include.budget.ledger import Ledger
from include.budget.models import Charge
from include.budget.store import connect
from include.budget.store.engine import Collision
from include.budget.store.transaction import Transaction
from tests.budget.test_race import _at_once
from tests.budget.world import World
from tools import verify_export

TABLE, OTHER, REPORT, LATER = "1a" * 32, "2b" * 32, "3c" * 32, "5e" * 32
PAGE = {"report.html": "6f" * 32}
BESIDE = {"synthetic.npy": "4d" * 32}
ASKED = {"approval": "required"}


def _stated(world: World, name: str = "1", **fields: Any) -> Charge:
    charge = world.sealed(name, "0.5", **fields)
    world.ledger.state_table(charge.charge_id, TABLE, beside=BESIDE)
    return charge


def _report(world: World, charge: Charge, digest: str = REPORT, passed: bool = True) -> None:
    world.ledger.state_report(charge.charge_id, digest, beside=PAGE, passed=passed)


def _judged(world: World, name: str = "1", passed: bool = True, **fields: Any) -> Charge:
    charge = _stated(world, name, **fields)
    _report(world, charge, passed=passed)
    return charge


def _approve(
    world: World, charge: Charge, by: str = "berta", table: str = TABLE, report: str = REPORT
) -> None:
    world.ledger.state_approval(charge.charge_id, by=by, table=table, report=report)


def _kinds(world: World, charge: Charge) -> list[str]:
    return [entry.kind for entry in world.reader.entries(charge.charge_id)]


def test_a_table_is_named_once_and_another_is_refused(world: World) -> None:
    charge, figures = _stated(world), world.figures()
    again = world.ledger.state_table(charge.charge_id, TABLE, beside=BESIDE)
    assert again == {"digest": TABLE, "beside": BESIDE}
    for other, beside in ((OTHER, BESIDE), (TABLE, {"synthetic.npy": OTHER})):
        with pytest.raises(DigestMismatch, match="one table is published for ever"):
            world.ledger.state_table(charge.charge_id, other, beside=beside)
    assert _kinds(world, charge).count("table") == 1
    assert world.figures() == figures
    world.sound()


def test_only_a_sealed_charge_has_a_table(world: World) -> None:
    opened = world.opened()
    with pytest.raises(WrongState, match="is opened: a table is stated of a sealed charge only"):
        world.ledger.state_table(opened.charge_id, TABLE, beside={})
    withheld = world.sealed("2", "0.5")
    world.ledger.withhold(withheld.charge_id, "no")
    with pytest.raises(WrongState, match="withheld"):
        world.ledger.state_table(withheld.charge_id, TABLE, beside={})
    with pytest.raises(InvalidRequest, match="64 lower-case hex digits"):
        world.ledger.state_table(world.sealed("3", "0.5").charge_id, "AB" * 32, beside={})


def test_two_tables_stated_at_once_leave_one(world: World, url: URL) -> None:
    """No row changes, so nothing but the lock tells two writers apart."""
    charge = world.sealed()
    digests = iter([TABLE, OTHER] * 8)

    def state(ledger: Ledger) -> object:
        try:
            return ledger.state_table(charge.charge_id, next(digests), beside={})
        except DigestMismatch as refusal:
            return refusal

    answers = _at_once(url, 16, state)
    assert sum(isinstance(answer, DigestMismatch) for answer in answers) == 8
    assert _kinds(world, charge).count("table") == 1
    world.sound()


def test_a_report_is_named_again_only_where_it_differs_from_the_last(world: World) -> None:
    charge, figures = _stated(world), world.figures()
    told = {"digest": REPORT, "beside": PAGE, "passed": True}
    for _ in range(2):
        again = world.ledger.state_report(charge.charge_id, REPORT, beside=PAGE, passed=True)
        assert again == told
    assert _kinds(world, charge).count("report") == 1
    _report(world, charge, LATER)
    _report(world, charge, LATER)
    world.ledger.state_report(charge.charge_id, LATER, beside={"report.html": OTHER}, passed=True)
    _report(world, charge)  # an earlier one is no longer the last
    entries = [e for e in world.reader.entries(charge.charge_id) if e.kind == "report"]
    assert [e.facts["digest"] for e in entries] == [REPORT, LATER, LATER, REPORT]
    assert entries[-1].facts == told and world.figures() == figures
    world.sound()


def test_a_report_is_of_a_stated_table_of_a_sealed_charge(world: World) -> None:
    opened = world.opened()
    with pytest.raises(WrongState, match="is opened: a report is stated of a sealed charge only"):
        world.ledger.state_report(opened.charge_id, REPORT, beside=PAGE, passed=True)
    bare = world.sealed("2", "0.5")
    with pytest.raises(WrongState, match="its table is not stated"):
        _report(world, bare)
    charge = _stated(world, "3")
    for digest, beside in (("AB" * 32, PAGE), (REPORT, {"report.html": "x"})):
        with pytest.raises(InvalidRequest, match="64 lower-case hex digits"):
            world.ledger.state_report(charge.charge_id, digest, beside=beside, passed=True)
    world.ledger.withhold(charge.charge_id, "no")
    with pytest.raises(WrongState, match="withheld"):
        _report(world, charge)
    assert "report" not in _kinds(world, charge)
    world.sound()


def test_no_report_passes_after_one_that_did_not(world: World) -> None:
    charge = _judged(world, passed=False)
    for digest in (REPORT, LATER):
        with pytest.raises(WrongState, match="did not pass the gate before"):
            _report(world, charge, digest)
    _report(world, charge, LATER, passed=False)
    assert _kinds(world, charge).count("report") == 2
    other = _judged(world, "2")
    _report(world, other, LATER, passed=False)
    with pytest.raises(WrongState):
        _report(world, other)
    world.sound()


def test_no_other_report_is_named_once_publishing_has_begun(world: World) -> None:
    charge = _judged(world)
    world.ledger.begin_publishing(charge.charge_id)
    _report(world, charge)
    with pytest.raises(DigestMismatch, match="publishing has begun with another report"):
        _report(world, charge, LATER)
    assert _kinds(world, charge).count("report") == 1
    world.ledger.publish(charge.charge_id, manifest_digest="cd" * 32, uri="x", release_id="r")
    _report(world, charge)
    with pytest.raises(WrongState, match="is published"):
        _report(world, charge, LATER)
    world.sound()


def test_one_report_stated_at_once_by_many_is_one_entry(world: World, url: URL) -> None:
    charge = _stated(world)

    def state(ledger: Ledger) -> object:
        return ledger.state_report(charge.charge_id, REPORT, beside=PAGE, passed=True)

    assert len(_at_once(url, 16, state)) == 16
    assert _kinds(world, charge).count("report") == 1
    world.sound()


def test_an_approval_is_of_the_last_report(world: World) -> None:
    charge = _stated(world, parameters=ASKED)
    with pytest.raises(DigestMismatch, match="another report than the one to be approved"):
        _approve(world, charge)
    _report(world, charge)
    with pytest.raises(DigestMismatch, match="another report than the one to be approved"):
        _approve(world, charge, report=LATER)
    _approve(world, charge)
    _report(world, charge, LATER)
    with pytest.raises(NotApproved, match="none is recorded for its last report"):
        world.ledger.begin_publishing(charge.charge_id)
    _approve(world, charge, by="carol", report=LATER)
    world.ledger.begin_publishing(charge.charge_id)
    world.sound()


def test_a_later_report_stated_meanwhile_is_not_published_unapproved(
    world: World, url: URL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a step reads without the lock, another report is stated before it is written."""
    charge = _judged(world, parameters=ASKED)
    _approve(world, charge)
    engine = connect(url)
    other, real = Ledger(engine), statements._last_report

    def late(tx: Transaction, charge_id: str) -> Any:
        found = real(tx, charge_id)
        try:
            tx.under_lock()
        except Collision:
            other.state_report(charge_id, LATER, beside=PAGE, passed=True)
        return found

    monkeypatch.setattr(statements, "_last_report", late)
    world.ledger.begin_publishing(charge.charge_id)
    engine.dispose()
    world.sound()


def test_publishing_and_a_later_report_at_once_never_leave_it_unapproved(
    world: World, url: URL
) -> None:
    """The later report changes no row, so nothing but the lock tells the two steps apart."""
    charge = _judged(world, parameters=ASKED)
    _approve(world, charge)
    turns = iter(range(16))

    def step(ledger: Ledger) -> object:
        try:
            if next(turns) % 2:
                return ledger.begin_publishing(charge.charge_id)
            return ledger.state_report(charge.charge_id, LATER, beside=PAGE, passed=True)
        except (DigestMismatch, NotApproved) as refusal:
            return refusal

    _at_once(url, 16, step)
    kinds = _kinds(world, charge)
    assert ("begin_publishing" in kinds) != (kinds.count("report") == 2)
    world.sound()


def test_an_approval_asked_for_is_an_entry_or_nothing_is_published(world: World) -> None:
    charge = _judged(world, parameters=ASKED)
    with pytest.raises(NotApproved, match="none is recorded"):
        world.ledger.begin_publishing(charge.charge_id)
    for name in (
        "admin",
        "Admin",
        "ADMIN",
        "ａｄｍｉｎ",
    ):  # no second person, however it is written
        with pytest.raises(NotApproved, match=f"{name} asked for this release"):
            _approve(world, charge, by=name)
    with pytest.raises(DigestMismatch, match="another table than the one to be approved"):
        _approve(world, charge, table=OTHER)
    with pytest.raises(NotApproved):
        world.ledger.begin_publishing(charge.charge_id)
    _approve(world, charge)
    _approve(world, charge)  # the same answer again is no second entry
    assert _kinds(world, charge).count("approve") == 1
    world.ledger.begin_publishing(charge.charge_id)
    world.ledger.publish(charge.charge_id, manifest_digest="cd" * 32, uri="x", release_id="r")
    world.sound()
    page = audit_release(world.engine, "r").to_text()
    assert f"sha256:{TABLE}; no other is published" in page
    assert f"the report of its table is sha256:{REPORT}; the table passed the gate" in page
    assert "berta approved the publication" in page


def test_a_rewound_ledger_states_nothing(world: World) -> None:
    charge, stated = world.sealed(), _stated(world, "2")

    def rewound(tx: Transaction) -> None:
        raise LedgerRewound("restored")

    with pytest.raises(LedgerRewound):
        Ledger(world.engine, guard=rewound).state_table(charge.charge_id, TABLE, beside={})
    assert "table" not in _kinds(world, charge)
    with pytest.raises(LedgerRewound):
        Ledger(world.engine, guard=rewound).state_report(
            stated.charge_id, REPORT, beside=PAGE, passed=True
        )
    assert "report" not in _kinds(world, stated)


def _append(world: World, charge: Charge, kind: str, actor: str, facts: dict[str, Any]) -> None:
    """Append what the ledger refuses, as somebody with the writer's rights can."""
    draft = Draft(kind=kind, actor=actor, words="w", charge_id=charge.charge_id, facts=facts)
    world.ledger._write(lambda tx: tx.append(draft))


def _second_table(world: World) -> None:
    _append(world, _stated(world), "table", "lab", {"digest": OTHER})


def _early_table(world: World) -> None:
    charge = world.reserve("2", "0.5")
    world.open(charge)
    _append(world, charge, "table", "lab", {"digest": OTHER})


def _by_the_asker(world: World) -> None:
    _append(world, _judged(world), "approve", "admin", {"table": TABLE, "report": REPORT})


def _by_the_asker_in_capitals(world: World) -> None:
    _append(world, _judged(world), "approve", "ADMIN", {"table": TABLE, "report": REPORT})


def _of_another_table(world: World) -> None:
    _append(world, _judged(world), "approve", "berta", {"table": OTHER, "report": REPORT})


def _of_another_report(world: World) -> None:
    _append(world, _judged(world), "approve", "berta", {"table": TABLE, "report": LATER})


def _of_no_report(world: World) -> None:
    _append(world, _stated(world), "approve", "berta", {"table": TABLE, "report": REPORT})


def _facts(passed: bool = True) -> dict[str, Any]:
    return {"digest": LATER, "beside": PAGE, "passed": passed}


def _report_without_table(world: World) -> None:
    _append(world, world.sealed(), "report", "lab", _facts())


def _report_while_publishing(world: World) -> None:
    charge = _judged(world)
    world.ledger.begin_publishing(charge.charge_id)
    _append(world, charge, "report", "lab", _facts())


def _report_when_over(world: World) -> None:
    charge = _judged(world)
    world.ledger.withhold(charge.charge_id, "no")
    _append(world, charge, "report", "lab", _facts())


def _passes_at_last(world: World) -> None:
    _append(world, _judged(world, passed=False), "report", "lab", _facts())


def _published_unpassed(world: World) -> None:
    world.ledger.begin_publishing(_judged(world, passed=False).charge_id)


def _approved_before_its_last_report(world: World) -> None:
    charge = _judged(world, parameters=ASKED)
    _approve(world, charge)
    _report(world, charge, LATER)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("include.budget.statements.require_approval", lambda tx, charge: None)
        world.ledger.begin_publishing(charge.charge_id)


def _never_approved(world: World) -> None:
    charge = _judged(world, parameters=ASKED)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("include.budget.statements.require_approval", lambda tx, charge: None)
        world.ledger.begin_publishing(charge.charge_id)


@pytest.mark.parametrize(
    ("forge", "finding"),
    [
        (_second_table, "names a second table of"),
        (_early_table, "states what is published of"),
        (_by_the_asker, "lets admin approve"),
        (_by_the_asker_in_capitals, "lets ADMIN approve"),
        (_of_another_table, "approves another table of"),
        (_of_another_report, "approves another report of"),
        (_of_no_report, "approves another report of"),
        (_report_without_table, "states a report of .* before its table"),
        (_report_while_publishing, "states a report of .* after publishing began"),
        (_report_when_over, "states what is published of"),
        (_passes_at_last, "pass after a report that did not"),
        (_published_unpassed, "which did not pass its gate"),
        (_approved_before_its_last_report, "without the approval it asked for"),
        (_never_approved, "without the approval it asked for"),
    ],
)
def test_forged_statements_are_found_with_and_without_the_product(
    world: World, tmp_path: Path, forge: Callable[[World], None], finding: str
) -> None:
    forge(world)
    report = world.verify()
    assert any(re.search(finding, str(one)) for one in report.problems), report.problems
    written = io.StringIO()
    export(world.engine, written)
    (tmp_path / "ledger.jsonl").write_text(written.getvalue())
    with pytest.raises(verify_export.Bad, match=finding):
        verify_export.verify(tmp_path / "ledger.jsonl", {}, [], [])


def test_honest_statements_pass_the_standalone_verifier(world: World, tmp_path: Path) -> None:
    charge = _judged(world, parameters=ASKED)
    _approve(world, charge)
    _report(world, charge, LATER)
    _approve(world, charge, report=LATER)
    world.ledger.begin_publishing(charge.charge_id)
    withheld = _judged(world, "2", passed=False)
    world.ledger.withhold(withheld.charge_id, "its gate")
    written = io.StringIO()
    export(world.engine, written)
    (tmp_path / "ledger.jsonl").write_text(written.getvalue())
    assert "nothing is wrong" in verify_export.verify(tmp_path / "ledger.jsonl", {}, [], [])
    bodies = [json.loads(line).get("body") for line in written.getvalue().splitlines()]
    facts = [json.loads(body)["facts"] for body in bodies if body and '"approve"' in body]
    assert {"decision": "approve", "table": TABLE, "report": REPORT} in facts
