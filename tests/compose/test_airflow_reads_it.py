"""Airflow's own configuration reader understands every variable of every service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.compose.local import localise

# For each AIRFLOW__SECTION__OPTION of this process: whether Airflow knows the option, and its value
# as `airflow config get-value` would print it.
READER = """
import json, os
from airflow.configuration import conf
found = {}
for name in os.environ:
    if name.startswith("AIRFLOW__"):
        _, section, option = name.lower().split("__")
        known = option in conf.configuration_description.get(section, {"options": {}})["options"]
        found[name] = [known, conf.get(section, option)]
print(json.dumps(found))
"""


@pytest.mark.parametrize("name", ["init", "api-server", "scheduler"])
def test_every_option_exists_and_has_the_value_given(
    services: dict[str, dict[str, Any]], tmp_path: Path, name: str
) -> None:
    """A misspelt option would be ignored without a word."""
    environment = localise(services[name]["environment"], tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", READER],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) >= 10
    for option, (known, value) in found.items():
        assert known, f"Airflow has no option {option}"
        assert value == environment[option]
