"""docs/operations.md, "Into an existing Airflow": the ledger beside tables that are already there.

Airflow's own login owns Airflow's tables, as in most installations; the ledger gets an owner of its
own, and Airflow's migration command accepts what it finds.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.compose.composefile import ROOT
from tests.compose.machines import postgres

pytestmark = pytest.mark.slow
SECTION = (
    (ROOT / "docs" / "operations.md")
    .read_text(encoding="utf-8")
    .split("## Into an existing Airflow")[1]
    .split("\n## ")[0]
)


def blocks(language: str) -> list[str]:
    """The section's code blocks of one language, as a reader would copy them."""
    return [
        re.sub(r"^   ", "", text, flags=re.MULTILINE)
        .replace("'...'", "'pw'")
        .replace(":...@", ":pw@")
        for text in re.findall(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)
    ]


def airflow(arguments: list[str], port: int, home: Path, **extra: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "airflow", *arguments],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}",
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": (
                f"postgresql+psycopg2://airflow:pw@127.0.0.1:{port}/airflow"
            ),
            **extra,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_recipe_works_as_it_is_written(tmp_path: Path) -> None:
    create_roles, let_airflow_see = blocks("sql")
    (migrate,) = [text for text in blocks("bash") if "migrate" in text]
    migrate = migrate.replace("@host:5432", "@127.0.0.1:{port}").replace(
        "python ", f"{sys.executable} "
    )
    managers = {
        "AIRFLOW__DATABASE__EXTERNAL_DB_MANAGERS": "cusyn_airflow.db_manager.LedgerDBManager"
    }
    with postgres("pw") as port:
        where = f"host=127.0.0.1 port={port} dbname=airflow password=pw user="
        with psycopg.connect(where + "postgres", autocommit=True) as superuser:
            superuser.execute("CREATE ROLE airflow LOGIN PASSWORD 'pw'")
            superuser.execute("ALTER DATABASE airflow OWNER TO airflow")
            airflow(["db", "migrate"], port, tmp_path / "home")  # the Airflow that is there already
            superuser.execute(create_roles)
            subprocess.run(
                ["bash", "-c", migrate.format(port=port)],
                env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"},
                check=True,
            )
            with psycopg.connect(where + "dp_ledger_owner", autocommit=True) as owner:
                owner.execute(let_airflow_see)
            airflow(["db", "migrate"], port, tmp_path / "home", **managers)
            airflow(["db", "check-migrations"], port, tmp_path / "home", **managers)
            owners = superuser.execute(
                "SELECT DISTINCT tableowner, tablename LIKE 'dp%' FROM pg_tables"
                " WHERE schemaname = 'public'"
            ).fetchall()
        assert set(owners) == {("airflow", False), ("dp_ledger_owner", True)}
        with (
            psycopg.connect(where + "airflow") as runtime,
            pytest.raises(psycopg.errors.InsufficientPrivilege),
        ):
            runtime.execute("UPDATE dp_pool SET spent_pico = 0")
