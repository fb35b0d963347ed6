"""What a steward does to the ledger: by whom, why, and only with evidence that is signed."""

from __future__ import annotations

import json
import shlex
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from include.budget.errors import LedgerRewound, PoolFrozen
from include.stages.budget_eval import budget_eval
from include.stages.ledger import witness
from tests.stages.test_stages import release

WHY = ("--reason", "disk failure")


@pytest.fixture
def cli(place, monkeypatch, capsys):
    """Run `admin` as maria, on the clinic's places."""
    from include.cli.__main__ import main

    monkeypatch.setattr("include.cli.__main__.load_settings", lambda: place.settings)
    monkeypatch.setattr("getpass.getuser", lambda: "maria")

    def call(*words: str) -> tuple[int, str, str]:
        code = main(["admin", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture
def lost(place, make_run, tmp_path) -> list[Path]:
    """A release after the backup, then the restore; its checkpoints are what remembers it."""
    backup = tmp_path / "backup.db"
    ledger = place.ledger.engine.url.database
    _copy(ledger, backup)
    release(make_run(), place)
    place.ledger.change_limit("user:team@clinic", 10**12, actor="x", reason="y")
    witness(place)
    place.ledger.engine.dispose()
    _copy(backup, ledger)
    return sorted(place.settings.checkpoints_dir.glob("checkpoint-*.json"))


def _copy(source: str | Path, target: str | Path) -> None:
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as two:
        one.backup(two)


def _reconcile(cli, *words: str):
    return cli("reconcile", "--authorised-by", "the board", *WHY, *words)


def test_reconciling_uses_every_checkpoint_and_everything_verifies_after_it(
    cli, place, make_run, lost, tmp_path
):
    assert len(lost) == 4  # measured, sealed, published, and one by hand
    with pytest.raises(LedgerRewound):
        budget_eval(make_run(), place, None)
    with pytest.raises(LedgerRewound):
        witness(place)
    assert len(list(place.settings.checkpoints_dir.glob("checkpoint-*.json"))) == 4
    code, out, err = _reconcile(cli)
    assert code == 0, err
    assert "4 signed checkpoints" in out
    assert {pool.spent_pico > 0 for pool in place.reader.pools()} == {True}
    from include.stages.ledger import verify_ledger

    report = verify_ledger(place)
    assert report.ok, report.problems
    assert "RECONCILED: 4 entries" in report.notes[0]
    from tools.verify_export import main as verify_export

    file, keys = tmp_path / "ledger.jsonl", place.settings.keys_dir / "public"
    from include.budget.export import export

    with file.open("w", encoding="utf-8") as target:
        export(place.ledger.engine, target)
    given = [str(file), "--key", *map(str, keys.glob("*.pem")), "--checkpoint", *map(str, lost)]
    assert verify_export(given) == 0
    assert witness(place)


def test_a_checkpoint_nobody_signed_is_no_evidence(cli, place, lost):
    told = json.loads(lost[-1].read_text())
    body = json.loads(told["body"])
    body["pools"] = {}
    lost[-1].write_text(json.dumps(told | {"body": json.dumps(body)}))
    code, _, err = _reconcile(cli)
    assert code == 1
    assert "its signature does not hold" in err
    lost[-1].write_text(json.dumps(told | {"key_id": "0" * 16}))
    assert "give its public half with --key" in _reconcile(cli)[2]
    assert place.reader.entries()[-1].kind != "reconcile"


def test_without_the_witnesses_nothing_is_thawed(cli, place, make_run, lost, tmp_path):
    with pytest.raises(LedgerRewound):
        budget_eval(make_run(), place, None)
    for path in lost:
        path.rename(tmp_path / path.name)
    code, _, err = _reconcile(cli)
    assert code == 1
    assert "holds no checkpoint although some were exported" in err
    assert {pool.status for pool in place.reader.pools()} == {"frozen"}


def test_a_steward_who_sees_no_key_folder_gives_the_public_key(cli, place, lost, tmp_path):
    [public] = (place.settings.keys_dir / "public").glob("*.pem")
    given = public.rename(tmp_path / "publisher.pem")
    assert _reconcile(cli)[0] == 1
    assert "the public key cannot be read" in _reconcile(cli, "--key", "none.pem")[2]
    assert _reconcile(cli, "--key", str(given))[0] == 0


def test_an_older_or_missing_checkpoint_is_refused(cli, lost):
    code, _, err = _reconcile(cli, "--checkpoint", str(lost[0]))
    assert code == 1
    assert any(f"{path.name} in" in err for path in lost[1:])
    assert "is newer" in err
    assert "not an exported checkpoint" in _reconcile(cli, "--checkpoint", "none.json")[2]
    assert _reconcile(cli, "--checkpoint", str(lost[-1]))[0] == 0


def test_acts_are_journalled_under_who_does_them(cli, place, make_run):
    charge = budget_eval(make_run(), place, None)
    assert cli("void", charge.charge_id, "--reason", "asked by mistake")[0] == 0
    assert place.reader.entries()[-1].actor == "maria"
    code, out, _ = cli("void", charge.charge_id, "--reason", "another")
    assert (code, "already void" in out) == (0, True)


@pytest.mark.parametrize("reason", ["", " ", "two\nlines"])
def test_a_reason_is_one_line_of_text(cli, place, make_run, reason):
    charge = budget_eval(make_run(), place, None)
    before = place.reader.head()
    code, _, err = cli("void", charge.charge_id, "--reason", reason)
    assert (code, err.count("\n")) == (1, 1)
    assert cli("freeze", "--reason", reason)[0] == 1
    assert place.reader.head() == before


def test_a_second_withdrawal_keeps_the_first_reason_everywhere(cli, place, make_run):
    published = release(make_run(), place)[1]
    cli("withdraw", published.release_id, "--reason", "a wrong column")
    code, out, _ = cli("withdraw", published.release_id, "--reason", "another story")
    assert code == 0
    assert "was already withdrawn (a wrong column)" in out
    assert place.reader.release(published.release_id).withdrawn_reason == "a wrong column"
    files = [path.read_text() for path in Path(published.uri).parents[1].rglob("*.json")]
    assert any("a wrong column" in text for text in files)
    assert not any("another story" in text for text in files)


def test_a_row_bound_is_not_amended_under_the_same_name(cli, place):
    file = place.settings.config_dir / "datasets" / "clinic.yaml"
    more = "id_column: pid, max_rows: 5"
    file.write_text(file.read_text().replace("max_rows: 1", more))
    before = place.reader.head()
    code, _, err = cli("amend", "clinic", "--reason", "more visits")
    assert code == 1
    assert "id_column none and max_rows 1" in err
    assert "max_rows 5" in err
    assert place.reader.head() == before


def test_releases_of_registered_partitions_cost_a_population_the_largest_only(cli, place, make_run):
    by_year = ("--population", "patients", "--column", "year", "--values", "2001", "2002")
    why = ("--authorised-by", "the board", "--reason", "one stay a patient")
    assert cli("partitions", "clinic", *by_year, *why)[0] == 0
    run = make_run()
    budget_eval(run, place, None)
    other = run.release.partition.model_copy(update={"value": "2002"})
    later = run.release.model_copy(update={"partition": other})
    budget_eval(make_run(release=later, period="2002-12-31", run_id="run-2"), place, None)
    pools = {pool.pool_id: pool for pool in place.reader.pools(owner="patients")}
    each = {
        name.rpartition(":")[2]: pool.held_epsilon for name, pool in pools.items() if "=" in name
    }
    assert set(each) == {"year=2001", "year=2002"}
    whole = next(pool for name, pool in pools.items() if name.startswith("dataset:"))
    assert whole.held_epsilon == max(each.values())
    assert (
        cli("partitions", "clinic", *by_year, "--authorised-by", "maria", "--reason", "x")[0] == 1
    )


def test_partitions_by_a_column_the_dataset_lacks_are_refused(cli, place):
    words = ("--population", "patients", "--values", "2001", "2002")
    why = ("--authorised-by", "the board", "--reason", "one stay a patient")
    before = place.reader.head()
    code, _, err = cli("partitions", "clinic", *words, "--column", "yaer", *why)
    assert code == 1
    assert "--column: unknown column 'yaer'; did you mean 'year'?" in err
    assert place.reader.head() == before
    (place.settings.config_dir / "datasets" / "clinic.yaml").unlink()
    assert cli("partitions", "clinic", *words, "--column", "yaer", *why)[0] == 0  # nothing to ask


def test_a_freeze_says_how_it_ends_and_the_command_it_names_ends_it(cli, place, make_run):
    _, out, _ = cli("freeze", "--reason", "a doubtful source")
    assert "`admin reconcile` opens them again" in out
    run = make_run()
    with pytest.raises(PoolFrozen, match="nothing was charged; open it again with") as told:
        budget_eval(run, place, None)
    words = shlex.split(str(told.value).split("`")[1])
    assert words[:4] == ["python", "-m", "include.cli", "admin"]
    assert cli(*words[4:])[0] == 0
    assert budget_eval(run, place, None).state == "reserved"
