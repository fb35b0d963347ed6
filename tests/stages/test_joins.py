"""A dataset about several populations: persons within households."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from include.budget.migrations import migrate
from include.budget.store import connect
from include.config.loader import load_checked
from include.settings import Settings
from include.stages.ledger import open_ledger
from include.stages.register import register
from include.stages.run import Workplace
from include.stages.store import protect
from include.stages.task import schema_of
from tests.clinic import write_source
from tests.stages.test_stages import release

BINDINGS = """populations:
  homes: {id_column: home, max_rows: 6}
  patients: {id_column: [home, person], max_rows: 2}
"""


@pytest.fixture
def joined(settings: Settings) -> Workplace:
    """The clinic, each home with forty rows of four people."""
    source = settings.project_root / "clinic.parquet"
    write_source(source)
    frame = pd.read_parquet(source)
    number = pd.Series(range(len(frame)))
    frame.assign(home=number // 40, person=(number // 10) % 4).to_parquet(source)
    file = settings.config_dir / "datasets" / "clinic.yaml"
    told = file.read_text().replace("populations: [patients]\n", BINDINGS)
    file.write_text(told)
    budgets = settings.config_dir / "budgets.yaml"
    homes = 'populations:\n  homes: {epsilon: "5", delta: "1e-9", per_operation_limit: "2"}'
    budgets.write_text(budgets.read_text().replace("populations:", homes))
    engine = connect(settings.ledger_url, create=True)
    migrate(engine)
    checked = load_checked(settings.config_dir / "releases" / "wards.yaml", settings.config_dir)
    ledger = open_ledger(settings, settings.ledger_url)
    register(ledger, checked.budgets, [checked.dataset], actor="test")
    return Workplace(settings, ledger)


def test_every_population_is_charged_bounded_and_named_in_the_package(joined, make_run):
    _, published = release(make_run(), joined)
    bindings = joined.reader.dataset("clinic")["populations"]
    assert bindings["patients"] == {"id_column": '["home", "person"]', "max_rows": 2}
    assert bindings["homes"] == {"id_column": "home", "max_rows": 6}
    spent = {
        pool.owner: pool.spent_pico for pool in joined.reader.pools() if pool.kind == "dataset"
    }
    assert spent["homes"] == spent["patients"] > 0
    statement = json.loads((Path(published.uri) / "datapackage.json").read_text())["dp"][
        "statement"
    ]
    assert statement["contribution_bound"] == {
        "max_rows": 6,
        "populations": {
            "homes": {"max_rows": 6, "id_columns": ["home"]},
            "patients": {"max_rows": 2, "id_columns": ["home", "person"]},
        },
    }
    relation = statement["neighbouring_relation"]
    assert "homes (at most 6 rows of one home)" in relation
    assert "patients (at most 2 rows of one home with person)" in relation
    assert "a change of 6 rows" in relation
    assert relation in (Path(published.uri) / "README.md").read_text()
    page = re.sub("<[^>]*>", "", (Path(published.uri) / "report.html").read_text())
    assert "about homes" in page and "about patients" in page


def test_the_protected_table_keeps_what_was_declared(joined, make_run):
    run = make_run()
    charge, _ = release(run, joined)
    table = protect(joined.settings, charge.snapshot_id, schema_of(run), run.dataset)
    assert table.max_rows == 6
    with table.spending():
        # The year's half of ten homes, each with four people of five rows: two each, six in all.
        assert table.counts(()).sum() == 10 * 6


def test_a_binding_that_changes_after_registration_is_refused(joined, make_run):
    file = joined.settings.config_dir / "datasets" / "clinic.yaml"
    file.write_text(file.read_text().replace("[home, person], max_rows: 2", "home, max_rows: 2"))
    with pytest.raises(Exception, match="populations, id_column or max_rows in its file differ"):
        release(make_run(), joined)
