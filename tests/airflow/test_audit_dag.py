"""The nightly audit, and a ledger that comes back from a backup."""

from __future__ import annotations

import shutil
import sqlite3

import pytest

from tests.airflow.rig import Rig
from tests.airflow.test_bad_input import sentence


def test_the_audit_verifies_expires_and_signs(rig: Rig) -> None:
    rig.release()
    run = rig.release(None, dag_id="ledger_audit", user=None)
    assert set(run.states().values()) == {"success"}
    assert run.xcom("expire_reservations") == {"expired": "0"}
    assert run.xcom("verify_ledger")["head"] == rig.verify().head_hash
    assert list((rig.root / "var" / "checkpoints").iterdir())


def test_the_audit_fails_for_good_on_a_balance_changed_by_hand(
    rig: Rig, capfd: pytest.CaptureFixture[str]
) -> None:
    rig.release()
    good = rig.root / "good.db"
    shutil.copy(rig.ledger_file, good)
    connection = sqlite3.connect(rig.ledger_file, isolation_level=None)
    triggers = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    for (name,) in list(connection.execute(triggers)):
        connection.execute(f'DROP TRIGGER "{name}"')
    pools = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '%pool'"
    table = next(name for (name,) in connection.execute(pools) if "charge" not in name)
    connection.execute(f'UPDATE "{table}" SET spent_pico = spent_pico - 1 WHERE spent_pico > 0')
    connection.close()
    run = rig.release(None, dag_id="ledger_audit", user=None)
    assert run.state == "failed" and run.tries("verify_ledger") == 1
    assert sentence(capfd).startswith("the ledger does not verify: ")
    shutil.copy(good, rig.ledger_file)


def test_a_ledger_restored_from_a_backup_sells_nothing_twice(
    rig: Rig, capfd: pytest.CaptureFixture[str]
) -> None:
    backup = rig.root / "backup.db"
    shutil.copy(rig.ledger_file, backup)
    assert rig.release("2020-12-31").state == "success"
    shutil.copy(backup, rig.ledger_file)
    run = rig.release("2021-12-31")
    assert run.state == "failed" and run.states()["budget_eval"] == "failed"
    assert not rig.charges()
    assert "checkpoint" in sentence(capfd)
    assert {pool.status for pool in rig.reader().pools()} == {"frozen"}
