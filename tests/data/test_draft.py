"""A draft holds names and types; what the rows hold is not in it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from include.config.datasets import DatasetConfig
from include.config.errors import ConfigError
from include.config.faults import build
from include.config.yamlfile import parse_yaml
from include.data.draft import draft_schema
from include.data.errors import SourceError

FRAME = pd.DataFrame(
    {
        "person_id": ["CANARY-1"],
        "größe": [199.25],
        "n": [777_001],
        "ok": [True],
        "when": pd.to_datetime(["2021-03-04T05:06"]),
        "c": pd.Series(["CANARY-2"], dtype="category"),
        " lead\nname": ["CANARY-3"],
        "no": ["CANARY-4"],
        "l": [["CANARY-5"]],
    }
)


@pytest.mark.parametrize("file_format", ["csv", "parquet"])
def test_a_draft_tells_no_value_and_is_readable_yaml(tmp_path: Path, file_format: str) -> None:
    path = tmp_path / f"my table.{file_format}"
    FRAME.to_csv(path, index=False) if file_format == "csv" else FRAME.to_parquet(path)
    text = draft_schema(path)
    for value in ("CANARY", "199", "777", "2021"):
        assert value not in text
    content = parse_yaml(text, "draft")
    assert content["dataset"] == "my_table"
    assert content["privacy_unit"]["id_column"] == "person_id"
    assert content["columns"]["person_id"]["type"] == "key"
    assert content["columns"]["leadname"]["source_column"] == " lead\nname"
    assert {"größe", "n", "ok", "when", "c", "no"} <= set(content["columns"])
    if file_format == "parquet":
        kinds = {name: block["type"] for name, block in content["columns"].items()}
        assert (kinds["größe"], kinds["n"], kinds["c"]) == ("float", "integer", "category")
        assert (kinds["ok"], kinds["when"]) == ("boolean", "datetime")
        assert "l" not in kinds


def test_a_draft_is_the_same_for_two_tables_of_one_layout(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    drafts = []
    for frame in (FRAME, pd.concat([FRAME, FRAME.assign(n=-1, c="never seen")], ignore_index=True)):
        frame.astype({"c": "str"}).to_parquet(path)
        drafts.append(draft_schema(path))
    assert drafts[0] == drafts[1]


def test_a_draft_must_be_filled_in(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b,a\n1,2,3\n")
    text = draft_schema(tmp_path / "x.csv")
    assert "more than once" in text and "max_rows:" in text
    with pytest.raises(ConfigError):
        build(DatasetConfig, parse_yaml(text, "draft"), "draft")


def test_a_filled_in_draft_loads(tmp_path: Path) -> None:
    pd.DataFrame({"n": [1], "ok": [True]}).to_parquet(tmp_path / "x.parquet")
    text = draft_schema(tmp_path / "x.parquet").replace("populations: []", "populations: [p]")
    text = text.replace("max_rows: ", "max_rows: 1 ", 1).replace("nullable: ", "nullable: true ")
    text = text.replace("    min:", "    min: 0").replace("    max:", "    max: 9")
    assert list(build(DatasetConfig, parse_yaml(text, "draft"), "draft").columns) == ["n", "ok"]


def test_a_missing_file_is_told_plainly(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        draft_schema(tmp_path / "gone.csv")
    (tmp_path / "x.parquet").write_text("CANARY")
    with pytest.raises(SourceError, match=r"layout of x\.parquet failed \(ArrowInvalid\)"):
        draft_schema(tmp_path / "x.parquet")


def test_the_unit_is_not_guessed_where_several_columns_could_name_it(tmp_path: Path) -> None:
    """Whoever leaves a visit's id there protects visits and says persons."""
    (tmp_path / "x.csv").write_text("visit_id,pid,n\n")
    text = draft_schema(tmp_path / "x.csv")
    assert parse_yaml(text, "x.yaml")["privacy_unit"]["id_column"] is None
    assert "# whose row is it? visit_id, pid look like ids" in text
