"""The package: complete, valid by its own standards, the same bytes twice, easy to load."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pandas as pd
import pytest
import yaml
from frictionless import Checklist, Package

from include.publishing.errors import PublishError
from include.publishing.facts import FileFacts
from include.publishing.package import (
    PackageInput,
    build_package,
    describe,
    path_part,
    release_id,
)
from include.publishing.registry import dcat
from include.publishing.tables import missing_token, typed_frame
from include.quality.facts import ColumnFacts, PrivacyFacts
from tests.publishing.conftest import LINEAGE, decoded
from tests.quality.facts_example import HOSTILE, report

SCHEMAS = Path(__file__).parents[2] / "include" / "publishing" / "schemas"


def manifest(package) -> dict:
    return json.loads((package.path / "datapackage.json").read_text(encoding="utf-8"))


def test_everything_is_in_it(package):
    assert sorted(p.name for p in package.path.iterdir()) == [
        "README.md",
        "SHA256SUMS",
        "SHA256SUMS.key.pem",
        "SHA256SUMS.sig",
        "data.csv",
        "data.parquet",
        "datapackage.json",
        "dcat.jsonld",
        "dp-registry-draft.yaml",
        "report.html",
        "report.json",
    ]
    assert package.release_id == f"happiness_by_wave-1998-12-31-{package.content_digest[:12]}"
    assert describe(package.path) == package


def test_the_same_input_gives_the_same_bytes(package, make_package):
    again = make_package()
    assert again.path != package.path
    for file in package.path.iterdir():
        assert file.read_bytes() == (again.path / file.name).read_bytes(), file.name
    assert again.release_id == package.release_id
    assert make_package(title="x").release_id != package.release_id


def test_a_retry_replaces_what_an_earlier_try_left(tmp_path, signer):
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "half").write_text("x")
    (tmp_path / ".package.partial").mkdir()
    facts = report(rows=50)
    built = build_package(folder, PackageInput(facts, decoded(facts), LINEAGE, signer))
    assert not (folder / "half").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["package"]
    assert built.path == folder


def test_frictionless_finds_the_package_valid(package):
    found = Package(str(package.path / "datapackage.json")).validate()
    assert found.valid, found.flatten(["type", "note"])
    assert [task.name for task in found.tasks] == ["data", "data-parquet", "report"]
    assert found.stats["errors"] == 0


def test_frictionless_would_find_a_fault(package, tmp_path):
    for file in package.path.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    text = (tmp_path / "data.csv").read_text(encoding="utf-8")
    (tmp_path / "data.csv").write_text(text.replace("income 0", "income ?"), encoding="utf-8")
    assert not Package(str(tmp_path / "datapackage.json")).validate().valid


def test_names_of_any_script_survive(make_package):
    package = make_package(names=HOSTILE[:4])
    table = pd.read_parquet(package.path / "data.parquet")
    assert tuple(table.columns) == HOSTILE[:4]
    how = manifest(package)["resources"][0]["pandas"]
    assert pd.read_csv(package.path / "data.csv", **how).equals(table)
    # Frictionless trims the labels it reads, so a name that begins with a space looks wrong to it.
    trims = Checklist(skip_errors=["incorrect-label"])
    assert Package(str(package.path / "datapackage.json")).validate(trims).valid
    readme = (package.path / "README.md").read_text(encoding="utf-8")
    assert "<script>" not in readme
    assert "\u202e" not in readme


def test_the_claim_and_the_registry_draft_keep_their_schemas(package):
    claim = json.loads((SCHEMAS / "dp.schema.json").read_text())
    registry = json.loads((SCHEMAS / "registry.schema.json").read_text())
    for schema in (claim, registry):
        jsonschema.Draft202012Validator.check_schema(schema)
    _check(claim, manifest(package)["dp"])
    draft = yaml.safe_load((package.path / "dp-registry-draft.yaml").read_text(encoding="utf-8"))
    _check(registry, draft)
    assert draft["deployment"]["privacy_loss"]["privacy_parameters"] == {
        "epsilon": 1.0,
        "delta": 1e-9,
        "rho": 0.01497,
    }
    with pytest.raises(jsonschema.ValidationError):
        _check(registry, {**draft, "surprise": 1})
    with pytest.raises(jsonschema.ValidationError):
        incomplete = manifest(package)["dp"]
        del incomplete["statement"]["neighbouring_relation"]
        _check(claim, incomplete)


def _check(schema: dict, body: object) -> None:
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    jsonschema.Draft202012Validator(schema, format_checker=checker).validate(body)


def test_the_claim_says_all_that_is_asked_of_one(package):
    dp = manifest(package)["dp"]
    statement = dp["statement"]
    assert statement["unit_of_privacy"] == "person"
    assert "add or remove one person" in statement["neighbouring_relation"]
    assert statement["parameters"] == {
        "epsilon": "1",
        "delta": "1e-9",
        "rho": "0.01497",
        "epsilon_pure": None,
    }
    assert statement["contribution_bound"] == {"max_rows": 1, "populations": {}}
    assert {d["column"] for d in statement["domains"]} == {"educ", "income", "happy", "workstat"}
    assert dp["budget"]["pools"][0] == {
        "kind": "dataset",
        "name": "us_adults_gss",
        "accounting": "zcdp",
        "total_epsilon": "10",
        "spent_before_epsilon": "1.4366",
        "spent_after_epsilon": "1.78",
        "remaining_epsilon": "9.76",
    }
    assert dp["budget"]["binding_constraint"] == "request"
    assert [q["columns"] for q in dp["interest_queries"]] == [
        ["educ", "income"],
        ["happy", "workstat"],
    ]
    assert all(q["noise_scale"] > 0 and q["bound95_error_tv"] > 0 for q in dp["interest_queries"])
    assert (dp["lineage"]["entry_seq"], dp["lineage"]["entry_hash"]) == (7, "ab" * 32)


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        (PrivacyFacts("1", "1e-9", "person", "MWEM-PGM", rho="0.01"), "Zero-concentrated DP"),
        (PrivacyFacts("1", "0", "person", "PrivBayes", epsilon_pure="1"), "Pure DP"),
        (PrivacyFacts("1", "1e-9", "person", "other"), "Approximate DP"),
    ],
)
def test_the_variant_follows_the_parameters(facts, name, tmp_path):
    whole = replace(report(rows=20), privacy=facts)
    built = build_package(tmp_path / "p", PackageInput(whole, decoded(whole), LINEAGE))
    assert manifest(built)["dp"]["dp_variant"]["variant_name"] == name
    assert manifest(built)["dp"]["signature"] is None
    assert not (built.path / "SHA256SUMS.sig").exists()


@pytest.mark.parametrize(
    ("licence", "url", "stated"),
    [
        ("CC-BY-4.0", "", {"name": "CC-BY-4.0"}),
        ("CC-BY-4.0", "https://x.org/l", {"name": "CC-BY-4.0", "path": "https://x.org/l"}),
        ("", "https://x.org/l", {"path": "https://x.org/l"}),
        ("Public extract; see terms", "", {"name": "other", "title": "Public extract; see terms"}),
        ("See terms", "https://x.org/l", {"path": "https://x.org/l", "title": "See terms"}),
        ("", "", None),
    ],
)
def test_a_licence_is_a_name_or_an_address_and_a_sentence_a_title(licence, url, stated, tmp_path):
    facts = report(rows=20)
    facts = replace(facts, dataset=replace(facts.dataset, licence=licence, licence_url=url))
    built = build_package(tmp_path / "p", PackageInput(facts, decoded(facts), LINEAGE))
    assert manifest(built).get("licenses") == (None if stated is None else [stated])


@pytest.mark.parametrize(
    ("contact", "told"),
    [
        ("https://example.org/ask", {"vcard:hasURL": {"@id": "https://example.org/ask"}}),
        ("data@example.org", {"vcard:hasEmail": {"@id": "mailto:data@example.org"}}),
        ("the third door on the left", {"vcard:note": "the third door on the left"}),
    ],
)
def test_dcat_links_what_is_an_address_and_nothing_else(contact, told):
    files = {name: FileFacts(name, 1, "0" * 64) for name in ("data.csv", "data.parquet")}
    facts = report()
    known = replace(facts.dataset, contact=contact, licence="As agreed", licence_url="")
    body = dcat(replace(facts, dataset=known), files)
    assert told.items() <= body["dcat:contactPoint"].items()
    assert body["dct:license"] == {"@type": "dct:LicenseDocument", "dct:title": "As agreed"}


def test_dcat_points_at_the_files(package):
    body = json.loads((package.path / "dcat.jsonld").read_text(encoding="utf-8"))
    for part in body["dcat:distribution"]:
        file = package.path / part["dcat:downloadURL"]["@id"]
        assert file.stat().st_size == part["dcat:byteSize"]
    assert body["dct:license"] == {"@id": "https://creativecommons.org/licenses/by/4.0/"}


def test_a_data_user_loads_it_in_three_lines(package):
    """The README's own lines, run where a reader would run them."""
    text = (package.path / "README.md").read_text(encoding="utf-8")
    snippets = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(snippets) == 2
    assert all(len(s.strip().splitlines()) == 3 for s in snippets)
    show = "\nprint({name: str(kind) for name, kind in table.dtypes.items()})"
    for snippet in snippets:
        done = subprocess.run(
            [sys.executable, "-c", snippet + show],
            cwd=package.path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip().splitlines()[-1] == str(
            {"educ": "Int64", "income": "category", "happy": "category", "workstat": "category"}
        )


def test_integers_with_missing_values_stay_integers(tmp_path):
    columns = [
        ColumnFacts("n", "integer", ("0", "1", "(no value)"), True, None, "0", "1"),
        ColumnFacts("f", "float", ("0 to 1", "(no value)"), True, None, "0", "1"),
        ColumnFacts("b", "boolean", ("false", "true", "(no value)"), True),
        ColumnFacts("d", "date", ("2020", "(no value)"), True),
        ColumnFacts("t", "datetime", ("2020", "(no value)"), True),
        ColumnFacts("c", "category", ("NA", "", "(no value)"), True, ("NA", "")),
        ColumnFacts("k", "key", ()),
    ]
    frame = pd.DataFrame(
        {
            "n": pd.array([1, None], dtype="Int64"),
            "f": [0.25, float("nan")],
            "b": pd.array([True, None], dtype="boolean"),
            "d": pd.to_datetime(["2020-03-01", None]),
            "t": pd.to_datetime(["2020-03-01T10:30:00", None]),
            "c": pd.array(["NA", None], dtype="str"),
            "k": pd.array([1, 2], dtype="Int64"),
        }
    )
    assert missing_token(columns) == "null"
    facts = replace(report(rows=2), columns=tuple(columns))
    built = build_package(tmp_path / "p", PackageInput(facts, frame, LINEAGE))
    lines = (built.path / "data.csv").read_text(encoding="utf-8").splitlines()
    assert lines[1:] == [
        "1,0.25,True,2020-03-01,2020-03-01T10:30:00,NA,1",
        "null,null,null,null,null,null,2",
    ]
    how = manifest(built)["resources"][0]["pandas"]
    table = pd.read_csv(built.path / "data.csv", **how)
    parquet = pd.read_parquet(built.path / "data.parquet")
    assert [str(d) for d in parquet.dtypes[:3]] == ["Int64", "Float64", "boolean"]
    assert [str(d) for d in table.dtypes[:3]] == ["Int64", "Float64", "boolean"]
    assert table.dtypes["d"].kind == table.dtypes["t"].kind == "M"
    assert table.iloc[1, :6].isna().all()
    assert parquet.iloc[1, :6].isna().all()
    found = Package(str(built.path / "datapackage.json")).validate()
    assert found.valid, found.flatten(["type", "note", "cell"])


def test_ordinary_tables_write_missing_cells_as_empty(package):
    assert ",," in (package.path / "data.csv").read_text(encoding="utf-8")
    assert manifest(package)["resources"][0]["schema"]["missingValues"] == [""]


def test_tables_and_facts_of_different_charges_do_not_mix(tmp_path, signer):
    facts = report(rows=30)
    table = decoded(facts)
    with pytest.raises(PublishError, match="not of the same charge"):
        build_package(tmp_path / "p", PackageInput(facts, table.iloc[:-1], LINEAGE, signer))
    with pytest.raises(PublishError, match="declared columns in their order"):
        typed_frame(table[table.columns[::-1]], facts.columns)
    twice = [ColumnFacts("a", "category", ("x",), False, ("x",))] * 2
    doubled = pd.DataFrame([["x", "x"]], columns=["a", "a"])
    with pytest.raises(PublishError, match="stands twice"):
        typed_frame(doubled, twice)


def test_an_empty_synthetic_table_is_a_package_too(tmp_path):
    facts = report(rows=1)
    empty = replace(facts, fidelity=replace(facts.fidelity, rows=0))
    built = build_package(tmp_path / "p", PackageInput(empty, decoded(facts).iloc[:0], LINEAGE))
    assert len(pd.read_parquet(built.path / "data.parquet")) == 0
    assert Package(str(built.path / "datapackage.json")).validate().valid


def test_names_of_places_are_safe_and_stay_apart():
    assert path_part("1998-12-31") == "1998-12-31"
    parts = {path_part(t) for t in ("a/b", "a b", "a:b", "../a", "", "é", "x" * 300)}
    assert len(parts) == 7
    assert all(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}", part) for part in parts)
    assert release_id("r", "p", "ab" * 32) == "r-p-" + "ab" * 6


def test_nothing_in_the_package_stands_for_the_raw_data(package):
    """No digest beside those of released artefacts, plan, transcript and ledger entry."""
    known = set(re.findall(r"[0-9a-f]{64}", (package.path / "SHA256SUMS").read_text()))
    known |= {LINEAGE.entry_hash, LINEAGE.transcript_digest, LINEAGE.plan_digest}
    for name in ("datapackage.json", "report.json", "README.md", "dp-registry-draft.yaml"):
        text = (package.path / name).read_text(encoding="utf-8")
        assert set(re.findall(r"[0-9a-f]{64}", text)) <= known, name
