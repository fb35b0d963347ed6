"""docs/operations.md: every command it tells, every service and every variable it names exists."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from include.cli.__main__ import parser
from tests.compose.composefile import ROOT, documented, optional

TEXT = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
RUN = re.compile(
    r"docker compose run --rm (?P<options>(?:-\S+ \S+ )*)(?P<service>[a-z-]+)(?P<rest>.*)"
)


def told() -> list[tuple[str, list[str]]]:
    """Each `docker compose run` of the page: its service and arguments."""
    joined = re.sub(r"\\\n\s*", "", TEXT)
    found = [(m["service"], m["rest"].split("`")[0]) for m in RUN.finditer(joined)]
    return [(service, shlex.split(rest, comments=True)) for service, rest in found]


def test_every_service_that_is_run_exists(services: dict[str, dict[str, Any]]) -> None:
    assert len(told()) >= 8
    assert {service for service, _ in told()} <= set(services)


@pytest.mark.parametrize(
    "arguments", [a for service, a in told() if service in ("steward", "auditor")], ids=" ".join
)
def test_every_command_of_the_steward_and_the_auditor_is_one(arguments: list[str]) -> None:
    parser().parse_args(arguments)  # exits where it is not


def test_every_service_of_the_table_exists(services: dict[str, dict[str, Any]]) -> None:
    table = TEXT.split("## What runs where")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}
    assert named == set(services) - {"postgres", "store", "store-init"}


def test_every_variable_is_of_the_compose_file_or_a_setting() -> None:
    settings = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    known = set(documented()) | set(optional()) | set(re.findall(r"CUSYN_[A-Z_]+", settings))
    assert set(re.findall(r"CUSYN_[A-Z0-9_]+", TEXT)) <= known
