"""What the documents tell a reader to run, runs; what they tell a steward to write, loads."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from include.config.loader import load_checked
from tests.docs.conftest import Shell
from tests.docs.pages import ROOT, blocks, section, text

README, AUDITOR, STEWARD = "README.md", "docs/auditor-guide.md", "docs/steward-guide.md"
# Commands that install, start or remove something are not for a test of documents; the makefile's
# targets and the compose file have tests of their own.
ELSEWHERE = ("make ", "docker ", "python3 tools/make_env.py")


def scripts(page: str) -> list[str]:
    return [b for b in blocks(page, "bash") if not b.lstrip().startswith(ELSEWHERE)]


def commands(*pages: str) -> list[str]:
    """Return the commands of some pages, each once."""
    found = [line for page in pages for script in scripts(page) for line in script.splitlines()]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("command", commands(README, STEWARD))
def test_commands_run(shell: Shell, command: str) -> None:
    done = shell(command)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def audit(shell: Shell) -> str:
    """The auditor's guide from its first command to its last, in one shell."""
    done = shell("\n".join(scripts(AUDITOR)))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_auditors_guide_reaches_its_two_statements(audit: str) -> None:
    assert "data.parquet: OK" in audit
    assert "Signature Verified Successfully" in audit
    assert "good: " in audit
    assert "ABOVE" not in audit
    assert "1 in the journal, 1 counted by the newest signed checkpoint, 1 packages found" in audit
    assert "FAILED" not in audit
    assert "Nothing is wrong." in audit


def test_the_auditors_guide_notices_a_missing_package(shell: Shell, installation: Path) -> None:
    """The check for missing releases fails when a package is taken away."""
    listing = next(b for b in scripts(AUDITOR) if "counted by the newest" in b)
    empty = installation / "var" / "nothing"
    empty.mkdir(exist_ok=True)
    variables = 'LEDGER=$(mktemp)\n.venv/bin/python -m include.cli export "$LEDGER"\n'
    done = shell(f"{variables}RELEASES={empty}\n{listing}")
    assert done.returncode == 1
    assert "no package found: ['happiness_by_wave-1994-12-31-" in done.stdout


def test_a_package_is_read_in_three_lines(installation: Path) -> None:
    (snippet,) = blocks(README, "python")
    assert len(snippet.strip().splitlines()) == 3
    (package,) = (installation / "var" / "releases").glob("*/*/*/")
    done = subprocess.run(
        [sys.executable, "-c", snippet], cwd=package, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "workstat" in done.stdout


def test_the_files_a_steward_writes_fit_each_other(tmp_path: Path) -> None:
    found = [body for body in blocks(README, "yaml") if "\n" in body]
    names = ("datasets/happiness.yaml", "budgets.yaml", "releases/happiness_by_wave.yaml")
    assert len(found) == len(names)
    for name, body in zip(names, found, strict=True):
        assert body.startswith(f"# {name}") or name == "budgets.yaml"
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(body, encoding="utf-8")
    checked = load_checked(tmp_path / names[2], tmp_path)
    assert checked.release.interest == (("prestige", "happy"),)


def test_an_example_of_impossible_combinations_loads(tmp_path: Path) -> None:
    (example,) = [one for one in blocks("docs/configuration.md", "yaml") if "never:" in one]
    for folder in ("datasets", "releases"):
        (tmp_path / folder).mkdir()
    source = ROOT / "include" / "config"
    for name in ("budgets.yaml", "releases/happiness_by_wave.yaml"):
        (tmp_path / name).write_text((source / name).read_text(encoding="utf-8"), encoding="utf-8")
    dataset = (source / "datasets" / "happiness.yaml").read_text(encoding="utf-8")
    assert "\nconstraints:" not in dataset
    (tmp_path / "datasets" / "happiness.yaml").write_text(f"{dataset}\n{example}", encoding="utf-8")
    path = tmp_path / "releases" / "happiness_by_wave.yaml"
    assert len(load_checked(path, tmp_path).dataset.constraints) == 1


def test_the_example_of_units_within_units_moves_what_is_said() -> None:
    import yaml

    from include.config.datasets import DatasetConfig

    (example,) = [one for one in blocks("docs/configuration.md", "yaml") if "person]" in one]
    rest = {
        "dataset": "d",
        "privacy_unit": {"what": "person", "max_rows": 1},
        "source": {"path": "x.csv"},
        "columns": {"a": {"type": "boolean"}},
    }
    dataset = DatasetConfig.model_validate(rest | yaml.safe_load(example))
    assert dataset.max_rows == 6
    assert "the noise is made for the larger, 6" in text("docs/configuration.md")


def test_the_error_line_is_what_the_loader_says(tmp_path: Path) -> None:
    """The one line quoted in the configuration reference."""
    from include.config.errors import ConfigError

    quoted = re.search(r"^    (releases/.*did you mean.*)$", text("docs/configuration.md"), re.M)
    assert quoted is not None
    for folder in ("datasets", "releases"):
        (tmp_path / folder).mkdir()
    source = ROOT / "include" / "config"
    for name in ("budgets.yaml", "datasets/happiness.yaml"):
        (tmp_path / name).write_text((source / name).read_text(encoding="utf-8"), encoding="utf-8")
    release = yaml.safe_load((source / "releases" / "happiness_by_wave.yaml").read_text())
    release["interest"] = [["educ", "incme"]]
    path = tmp_path / "releases" / "happiness_by_wave.yaml"
    path.write_text(json.dumps(release, default=str), encoding="utf-8")
    with pytest.raises(ConfigError) as fault:
        load_checked(path, tmp_path)
    assert str(fault.value) == quoted[1]


def test_the_refusal_is_what_the_ledger_says(shell: Shell) -> None:
    quoted = "denied by per_operation_limit: epsilon 3 is above the limit of 2 for one operation"
    assert quoted in section(STEWARD, "5. Read a refusal")
    from include.accounting import Cost
    from include.budget.policy import Limit, decide

    pico = 10**12
    limit = Limit("per_operation_limit", 2 * pico)
    decision = decide(
        3 * pico,
        3 * pico,
        per_operation=[limit],
        per_request=[],
        rooms=[],
        price=lambda epsilon: Cost(epsilon, None),
    )
    assert decision.reason == quoted


def test_a_shell_learns_where_the_embedded_default_lies(shell: Shell) -> None:
    line = 'eval "$(.venv/bin/python -m tools.embedded)"'
    assert line in section(README, "A release of your own, without the UI")
    done = shell(f'{line}\nprintf "%s\\n" "$AIRFLOW_HOME" "$AIRFLOW_CONN_PRIVACY_LEDGER"')
    assert done.returncode == 0, done.stderr
    home, connection = done.stdout.splitlines()
    assert home == str(ROOT / "var" / "airflow")
    assert json.loads(connection)["host"] == f"{home}/airflow.db"
