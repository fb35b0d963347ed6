"""Every command, target, setting and key that exists is documented."""

from __future__ import annotations

import argparse
import re

import pytest

from include.budget import states
from include.cli.__main__ import parser
from include.config.base import ConfigModel
from include.config.columns import (
    COLUMN_TYPES,
    BooleanColumn,
    CategoryColumn,
    DateColumn,
    DateTimeColumn,
    FloatColumn,
    IntegerColumn,
    KeyColumn,
)
from include.config.constraints import Constraint
from include.config.datasets import DatasetConfig, SourceConfig
from include.config.expectations import KINDS, ExpectationConfig
from include.config.requests import (
    BudgetsConfig,
    PopulationConfig,
    PublishConfig,
    ReleaseConfig,
    UserConfig,
    UserPoolConfig,
)
from include.config.units import PopulationBinding, PrivacyUnit
from include.quality.fidelity import Thresholds
from include.synthesis.registry import MECHANISM_NAMES, synthesizer
from tests.docs.pages import ROOT, blocks, section, text

CONFIGURATION = "docs/configuration.md"
MODELS: list[tuple[type[ConfigModel], str]] = [
    (DatasetConfig, "Dataset"),
    (PrivacyUnit, "Privacy unit"),
    (PopulationBinding, "Population binding"),
    (SourceConfig, "Source"),
    *(
        (model, "Columns")
        for model in (
            CategoryColumn,
            BooleanColumn,
            IntegerColumn,
            FloatColumn,
            DateColumn,
            DateTimeColumn,
            KeyColumn,
        )
    ),
    (Constraint, "Impossible combinations"),
    (ExpectationConfig, "Expectations"),
    (BudgetsConfig, "Budgets"),
    (PopulationConfig, "Population"),
    (UserConfig, "User"),
    (UserPoolConfig, "User"),
    (ReleaseConfig, "Release"),
    (PublishConfig, "Publish"),
]


def cells(page: str, heading: str) -> set[str]:
    """Return the code spans in the tables under a heading."""
    rows = [line for line in section(page, heading).splitlines() if line.startswith("|")]
    return set(re.findall(r"`([^`]+)`", "\n".join(rows)))


def subcommands(of: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return a parser's subcommands by name."""
    for action in of._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


@pytest.mark.parametrize(("model", "heading"), MODELS, ids=lambda value: str(value))
def test_every_key_is_documented(model: type[ConfigModel], heading: str) -> None:
    assert set(model.model_fields) <= cells(CONFIGURATION, heading)


def test_every_model_of_the_configuration_is_looked_at() -> None:
    def known(model: type[ConfigModel]) -> set[type[ConfigModel]]:
        return {model, *(sub for one in model.__subclasses__() for sub in known(one))}

    named = {model for model, _ in MODELS}
    public = {m for m in known(ConfigModel) if not m.__name__.startswith("_")} - {ConfigModel}
    # Two keys each, told in the row of their parent.
    small = {"PartitionConfig", "ScheduleDates", "WorkloadQuery"}
    ours = {m for m in public if m.__module__.startswith("include.config")}
    assert {m.__name__ for m in ours - named} <= small


def test_every_choice_is_documented() -> None:
    page = text(CONFIGURATION)
    choices = [*COLUMN_TYPES, *KINDS, *Thresholds.__dataclass_fields__]
    assert [name for name in choices if f"`{name}`" not in page] == []


@pytest.mark.parametrize("mechanism", MECHANISM_NAMES)
def test_every_option_is_documented(mechanism: str) -> None:
    specs = synthesizer(mechanism).option_specs
    assert set(specs) <= cells("docs/mechanisms.md", "Options")
    assert f"`{mechanism}`" in text("docs/mechanisms.md")
    assert f"`{mechanism}`" in section(CONFIGURATION, "Release")


def test_every_command_is_in_the_readme() -> None:
    named = {span.split()[0] for span in cells("README.md", "Command line")}
    assert set(subcommands(parser())) <= named


def test_every_option_of_a_command_is_documented() -> None:
    pages = text("README.md") + text("docs/steward-guide.md") + text("docs/auditor-guide.md")
    missing = [
        (name, option)
        for name, command in subcommands(parser()).items()
        for action in command._actions
        for option in action.option_strings
        if option not in ("-h", "--help") and option not in pages
    ]
    assert missing == []


def test_every_act_of_the_steward_is_documented() -> None:
    page = text("docs/steward-guide.md")
    acts = subcommands(subcommands(parser())["admin"])
    assert [name for name in acts if f"admin {name}" not in page] == []


def test_every_make_target_is_documented() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE)
    named = set(re.findall(r"make ([a-z-]+)", section("README.md", "Make targets")))
    assert set(targets) == named


def test_every_setting_is_documented() -> None:
    code = [*(ROOT / "include").rglob("*.py"), *(ROOT / "plugins").rglob("*.py")]
    used = {
        name
        for path in code
        for name in re.findall(r"[\"'](CUSYN_[A-Z_]+)[\"']", path.read_text(encoding="utf-8"))
    }
    assert "CUSYN_CONFIG_DIR" in used
    documented = {span for span in cells(CONFIGURATION, "Settings") if span.startswith("CUSYN_")}
    assert used == documented


def test_every_dag_is_named() -> None:
    found = re.findall(
        r'dag_id="(\w+)"',
        "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "dags").glob("*.py")),
    )
    pages = text("README.md") + text("docs/steward-guide.md") + text("docs/auditor-guide.md")
    assert found
    assert [name for name in found if name not in pages] == []


def test_every_state_is_drawn() -> None:
    (picture,) = (b for b in blocks("docs/architecture.md", "mermaid") if "stateDiagram" in b)
    drawn = set(re.findall(r"(\w+) --> (\w+)", picture))
    legal = {(arrow.start, arrow.end) for arrows in states.ARROWS.values() for arrow in arrows}
    assert drawn == {(a, b) for a, b in legal if a is not None}
    assert all(f"[*] --> {end}" in picture for start, end in legal if start is None)
