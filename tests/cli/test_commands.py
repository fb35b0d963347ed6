"""Every command, as text and as JSON: the same facts, plain faults, right exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from include.accounting.accountant import Cost
from include.budget.anchors import WitnessDamaged
from include.cli.__main__ import command, main, parser
from include.stages.budget_eval import budget_eval
from include.stages.ledger import open_ledger, witness
from include.stages.load import load
from include.stages.run import Workplace
from tests.stages.test_stages import release

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def cli(place, monkeypatch, capsys):
    """Run commands on the clinic's places."""
    monkeypatch.setattr("include.cli.__main__.load_settings", lambda: place.settings)

    def call(*words: str) -> tuple[int, str, str]:
        code = main(words)
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture
def released(place, make_run):
    """One published release."""
    return release(make_run(), place)[1]


def facts(cli, *words: str):
    code, out, _ = cli(*words, "--json")
    assert code == 0
    return json.loads(out)


def test_before_anything_happened_each_list_says_what_to_do(cli):
    assert "trigger a DAG" in cli("charges")[1]
    assert "Nothing is published yet" in cli("releases")[1]


def test_pools_charges_and_releases_tell_the_same_as_text_and_json(cli, released):
    pools = facts(cli, "pools")
    assert {pool["owner"] for pool in pools} == {"patients", "team"}
    text = cli("pools")[1]
    assert all(pool["spent_epsilon"] in text for pool in pools)
    [charge] = facts(cli, "charges")
    assert charge["charge_id"] in cli("charges")[1]
    assert (charge["actor"], charge["granted_epsilon"], charge["state"]) == (
        "anna",
        "1",
        "published",
    )
    [found] = facts(cli, "releases")
    assert found["release_id"] == released.release_id
    assert released.uri in cli("releases")[1]


def test_a_release_shows_its_journal_and_its_audit_passes(cli, released):
    shown = facts(cli, "release", released.release_id)
    kinds = [entry["kind"] for entry in shown["entries"]]
    assert kinds.index("open") < kinds.index("begin_round") < kinds.index("seal")
    assert "spent" in cli("release", released.release_id)[1]
    audit = facts(cli, "release", released.release_id, "--audit")
    assert audit["ok"]
    assert len(audit["checks"]) >= 6
    assert "FAILED" not in cli("release", released.release_id, "--audit")[1]
    (Path(released.uri) / "datapackage.json").unlink()
    code, told, _ = cli("release", released.release_id, "--audit")
    assert code == 1
    assert "FAILED  the manifest lies where it was published" in told


def test_an_audit_without_the_package_tells_all_the_rest_and_what_to_set(cli, released, place):
    """A reader of the ledger often cannot read the releases: that is no finding."""
    before = cli("release", released.release_id, "--audit")
    away = Path(released.uri).parents[2]
    away.rename(away.with_name("elsewhere"))
    code, told, err = cli("release", released.release_id, "--audit")
    assert (code, err) == (2, "")
    assert before[0] == 0
    *ledgers, _, _ = before[1].rstrip().splitlines()  # the last two lines are the package's checks
    *same, line = told.rstrip().splitlines()
    assert same == ledgers
    assert line == (
        "  NOT CHECKED  the manifest lies where it was published: the package itself was not "
        f"checked, because {released.uri} cannot be read from here (no permission, or not there); "
        "mount that folder here, readable (relative ones lie under CUSYN_PROJECT_ROOT), then ask "
        "again"
    )
    code, out, _ = cli("release", released.release_id, "--audit", "--json")
    data = json.loads(out)
    assert code == 2
    assert [data[key] for key in ("ok", "wrong", "complete")] == [False, False, False]
    assert [check["checked"] for check in data["checks"]].count(False) == 1
    assert data["checks"][-1]["answer"] in line


def test_what_is_wrong_in_the_ledger_weighs_more_than_a_package_not_read(
    cli, released, monkeypatch
):
    away = Path(released.uri).parents[2]
    away.rename(away.with_name("elsewhere"))
    dearer = Cost(rho_pico=10**18, epsilon_pure_pico=None)
    monkeypatch.setattr("include.budget.audit.compose_journalled", lambda events: dearer)
    code, told, _ = cli("release", released.release_id, "--audit")
    assert code == 1
    assert "FAILED" in told
    assert "NOT CHECKED" in told


def test_an_unknown_release_is_one_sentence_and_exit_code_1(cli):
    code, out, err = cli("release", "nothing")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "nothing is not in the ledger" in err
    assert json.loads(cli("release", "nothing", "--json")[2])["error"] in err


def test_a_plan_prints_the_cost_that_is_later_debited_to_the_last_digit(cli, place, make_run):
    file = str(place.settings.config_dir / "releases" / "wards.yaml")
    planned = facts(cli, "plan", file)
    assert planned["plan"]["predictions"][0]["columns"] == ["ward", "smoker"]
    before = facts(cli, "charges")
    release(make_run(), place)
    assert before == []
    [charge] = facts(cli, "charges")
    from include.accounting import format_amount

    debited = {pool: format_amount(pico) for pool, pico in charge["amounts_pico"].items()}
    assert {one["pool"]: one["cost"] for one in planned["costs"]} == debited
    assert all(cost in cli("plan", file)[1] for cost in debited.values())


def test_verify_compares_the_witnesses_and_finds_a_rewritten_entry(cli, place, released):
    manifest = f"{released.uri}/datapackage.json"
    report = facts(cli, "verify", "--manifest", manifest)
    assert (report["ok"], report["anchors"]) == (True, 4)
    checkpoint, *_ = place.settings.checkpoints_dir.glob("checkpoint-*.json")
    record = json.loads(checkpoint.read_text())
    record["body"] = record["body"].replace('"hash":"', '"hash":"0')
    checkpoint.write_text(json.dumps(record))
    code, out, _ = cli("verify")
    assert code == 1
    assert "checkpoint" in out


def test_a_checkpoint_that_is_not_signed_stops_the_step_and_freezes_nothing(
    cli, place, make_run, released
):
    path, *_ = place.settings.checkpoints_dir.glob("checkpoint-*.json")
    good = path.read_text()
    record = json.loads(good)
    forged = json.loads(record["body"]) | {"seq": 999}
    run = make_run(period="2002-12-31", run_id="run-2")
    spent = [(pool.held_pico, pool.spent_pico) for pool in place.reader.pools()]
    for bad in (
        json.dumps(record | {"body": json.dumps(forged)}),
        json.dumps(record | {"key_id": "0" * 16}),
        json.dumps(record | {"signature": "none"}),
        "{}",
    ):
        path.write_text(bad)
        place = Workplace(place.settings, open_ledger(place.settings, place.settings.ledger_url))
        with pytest.raises(WitnessDamaged, match=re.escape(path.name)):
            budget_eval(run, place, None)
        with pytest.raises(WitnessDamaged, match=re.escape(path.name)):
            witness(place)
        code, out, _ = cli("verify")
        assert code == 1 and f"the exported checkpoint {path.name}" in out
        assert "FROZEN" not in out
    assert {pool.status for pool in place.reader.pools()} == {"open"}
    assert [(pool.held_pico, pool.spent_pico) for pool in place.reader.pools()] == spent
    path.write_text(good)
    assert budget_eval(run, place, load(run, place)).state == "reserved"


def test_verify_says_when_pools_are_frozen(cli, released):
    assert cli("admin", "freeze", "--reason", "a drill")[0] == 0
    assert "FROZEN: 2 of 2 pools" in cli("verify")[1]


def test_lost_checkpoints_are_not_taken_for_agreement(cli, released, place):
    for path in place.settings.checkpoints_dir.glob("*.json"):
        path.unlink()
    code, *told = cli("verify")
    out = " ".join(map(str, told))
    assert code == 2 and "NOT CHECKED  whether the ledger was rewound" in out


def test_an_export_that_cannot_be_written_is_one_sentence(cli, released, tmp_path):
    for path in (tmp_path, tmp_path / "nowhere" / "ledger.jsonl", ""):
        code, *told = cli("export", str(path))
        out = " ".join(map(str, told))
        assert code == 1 and "cannot be written" in out and "Traceback" not in out


def test_an_export_is_checked_by_the_standalone_verifier(cli, released, tmp_path):
    file = tmp_path / "ledger.jsonl"
    assert cli("export", str(file))[0] == 0
    command = [sys.executable, "-I", str(ROOT / "tools" / "verify_export.py"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = file.read_text().splitlines()
    file.write_text("\n".join(line.replace('"granted', '"Granted') for line in lines))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0


def test_a_package_verifies_and_a_changed_byte_is_found(cli, released):
    assert facts(cli, "package", "verify", released.uri)["sound"]
    table = Path(released.uri) / "data.csv"
    table.chmod(0o600)
    table.write_bytes(table.read_bytes() + b"\n")
    code, out, _ = cli("package", "verify", released.uri)
    assert code == 1
    assert "data.csv" in out


def test_register_twice_changes_nothing_and_a_raised_cap_is_refused(cli, place):
    before = facts(cli, "register")
    assert facts(cli, "register") == before
    budgets = place.settings.config_dir / "budgets.yaml"
    budgets.write_text(budgets.read_text().replace('epsilon: "3"', 'epsilon: "30"'))
    code, _, err = cli("register")
    assert code == 1
    assert "30" in err
    assert "3" in err.replace("30", "")
    assert facts(cli, "pools") == before


def test_a_release_is_withdrawn_in_the_ledger_and_beside_its_files(cli, released):
    code, out, _ = cli("admin", "withdraw", released.release_id, "--reason", "a wrong column")
    assert code == 0
    assert released.release_id in out
    assert facts(cli, "releases")[0]["withdrawn_reason"] == "a wrong column"
    notices = [path.read_text() for path in Path(released.uri).parents[1].rglob("*.json")]
    assert any("a wrong column" in notice for notice in notices)


@pytest.mark.parametrize("limit", ["0", "-1"])
def test_a_limit_that_lists_nothing_is_refused(cli, limit):
    code, out, err = cli("charges", "--limit", limit)
    assert (code, out) == (1, "")
    assert err == f"--limit is {limit}; write a whole number of at least 1\n"


def test_a_budget_on_a_dataset_that_no_file_declares_is_named(cli, place):
    budgets = place.settings.config_dir / "budgets.yaml"
    budgets.write_text(budgets.read_text().replace("{clinic:", "{clinics:"))
    told = "budgets.yaml: users.team.datasets.clinics: no file declares this dataset; did you mean"
    assert cli("register")[2].startswith(told)


def test_a_missing_ledger_is_one_sentence_that_names_the_fix(tmp_path):
    env = {"CUSYN_LEDGER_URL": f"sqlite:///{tmp_path}/none.db", "PATH": "", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "include.cli", "pools"]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "run `make demo` or `make up` first, or `airflow db migrate` with" in done.stderr


def test_every_command_has_its_function_and_takes_json():
    actions = next(a for a in parser()._actions if a.dest == "command").choices
    for name, sub in actions.items():
        assert callable(command(name))
        assert "--json" in sub.format_help()


def test_exact_figures_are_refused_for_registered_data_and_given_for_public_data(
    cli, place, released
):
    table = f"{released.uri}/data.parquet"
    code, out, err = cli("internal-evaluation", "clinic", table)
    assert (code, out) == (1, "")
    assert "registered in the ledger" in err
    file = place.settings.config_dir / "datasets" / "public.yaml"
    text = (place.settings.config_dir / "datasets" / "clinic.yaml").read_text()
    text = text.replace("dataset: clinic", "dataset: fair\npublic_data: true")
    file.write_text(text)  # a copy under another name is of the same people
    refused = cli("internal-evaluation", "fair", table)[2]
    assert "a population the ledger protects" in refused
    text = text.replace("[patients]", "[visitors]")
    file.write_text(text.replace("public_data: true", "public_data: false"))
    assert cli("internal-evaluation", "fair", table)[0] == 1
    file.write_text(text)
    found = facts(cli, "internal-evaluation", "fair", table)
    assert found["original_rows"] == 400
    assert {tuple(one["columns"]) for one in found["columns"]} == {
        ("ward",),
        ("stay",),
        ("smoker",),
    }


def test_a_changed_schema_is_refused_until_it_is_amended(cli, place):
    file = place.settings.config_dir / "datasets" / "clinic.yaml"
    file.write_text(file.read_text().replace("[north, south, east]", "[north, south, east, west]"))
    assert cli("register")[0] == 1
    code, out, _ = cli("admin", "amend", "clinic", "--reason", "a fourth ward has opened")
    assert (code, out) == (0, "amend: clinic is registered as its file declares it now\n")
    assert cli("register")[0] == 0
    words = place.reader.entries()[-1].words
    assert "a fourth ward has opened" in words
