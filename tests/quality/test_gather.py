"""From a declared dataset to a valid package: the rooms agree on names, types and codes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pandas as pd
from frictionless import Package

from include.accounting import Gaussian
from include.config.datasets import DatasetConfig
from include.data.encode import decode
from include.data.schema import Schema
from include.publishing.package import PackageInput, build_package
from include.publishing.verify import sound, verify_package
from include.quality.checks import check_synthetic
from include.quality.fidelity import assess, gate
from include.quality.gather import NO_VALUE, columns_from, dataset_from, measurements_from
from include.quality.report import read_report, render_html
from include.synthesis.transcript import NoisyMarginal, Round, Transcript
from tests.publishing.conftest import LINEAGE
from tests.quality.facts_example import report

DATASET = DatasetConfig.model_validate(
    {
        "dataset": "everything",
        "title": "One column of every type",
        "licence": "https://example.org/licence",
        "populations": ["people"],
        "privacy_unit": {"what": "person", "max_rows": 1},
        "source": {"path": "x.csv"},
        "columns": {
            "row": {"type": "key"},
            "sector": {"type": "category", "values": ["a", "b, c", 'd "e"'], "nullable": True},
            "status": {"type": "category", "values": ["x", "y"], "outside": "other"},
            "age": {"type": "integer", "min": 0, "max": 99, "bins": [0, 18, 65], "nullable": True},
            "pay": {"type": "float", "min": 0, "max": 10, "bins": 4, "nullable": True},
            "member": {"type": "boolean", "nullable": True},
            "since": {
                "type": "date",
                "min": "2020-01-15",
                "max": "2021-12-31",
                "resolution": "month",
                "nullable": True,
            },
            "seen": {
                "type": "datetime",
                "min": "2020-01-01T00:00",
                "max": "2020-01-02T00:00",
                "resolution": "hour",
            },
        },
    }
)


def synthetic(rows: int = 400) -> tuple[Schema, np.ndarray, pd.DataFrame]:
    schema = Schema.from_config(DATASET)
    rng = np.random.default_rng(5)
    codes = np.stack([rng.integers(0, c.cardinality, rows) for c in schema], axis=1)
    return schema, codes.astype(np.uint8), decode(codes, schema, rng)


def test_columns_describe_the_decoded_table():
    schema, _, frame = synthetic()
    columns = columns_from(schema)
    assert [c.name for c in columns] == list(frame.columns)
    by_name = {c.name: c for c in columns}
    assert by_name["row"].type == "key"
    assert by_name["sector"].cells == ("a", "b, c", 'd "e"', NO_VALUE)
    assert by_name["sector"].values == ("a", "b, c", 'd "e"')
    assert by_name["status"].values == ("x", "y", "other")
    assert (by_name["age"].minimum, by_name["age"].maximum) == ("0", "99")
    assert by_name["age"].cells[-1] == NO_VALUE
    outcomes = check_synthetic(frame, columns, expected_rows=len(frame))
    assert [(o.column, o.rule) for o in outcomes if not o.passed] == []


def test_a_transcript_gives_its_measurements():
    marginal = NoisyMarginal(("sector", "status"), 3.0, tuple(range(12)), "interest")
    transcript = Transcript(
        "mwem_pgm",
        "ab" * 32,
        (Round(4, "interest", (Gaussian(3.0, label="interest"),), (marginal,)),),
    )
    (found,) = measurements_from(transcript)
    assert (found.clique, found.sigma, found.counts) == (("sector", "status"), 3.0, marginal.counts)
    assert (found.purpose, found.round) == ("interest", 4)


def test_every_type_ends_in_a_valid_package(tmp_path, signer):
    schema, codes, frame = synthetic()
    columns = columns_from(schema)
    rng = np.random.default_rng(6)
    pairs = [("sector", "status"), ("age", "member")]
    names = list(schema.domain)
    marginals = []
    for clique in pairs:
        shape = [schema.domain[n] for n in clique]
        flat = np.ravel_multi_index([codes[:, names.index(n)] for n in clique], shape)
        counts = np.bincount(flat, minlength=int(np.prod(shape))) + rng.integers(
            -3, 4, np.prod(shape)
        )
        marginals.append(NoisyMarginal(clique, 2.0, tuple(int(c) for c in counts), "selected"))
    transcript = Transcript(
        "mwem_pgm",
        "ab" * 32,
        (Round(1, "selected", (Gaussian(2.0, label="s"),), tuple(marginals)),),
    )
    fidelity = assess(codes, columns, measurements_from(transcript), [])
    checks = tuple(check_synthetic(frame, columns, expected_rows=len(frame)))
    facts = replace(
        report(),
        dataset=dataset_from(DATASET),
        columns=columns,
        fidelity=fidelity,
        checks=checks,
        verdict=gate(fidelity, checks),
    )
    assert facts.verdict.passed
    built = build_package(tmp_path / "p", PackageInput(facts, frame, LINEAGE, signer))
    found = Package(str(built.path / "datapackage.json")).validate()
    assert found.valid, found.flatten(["type", "note", "cell"])
    assert sound(verify_package(built.path))
    assert read_report(built.path / "report.json") == facts
    assert "One column of every type" in render_html(facts)
    how = json.loads((built.path / "datapackage.json").read_text())["resources"][0]["pandas"]
    table = pd.read_csv(built.path / "data.csv", **how)
    parquet = pd.read_parquet(built.path / "data.parquet")
    pd.testing.assert_frame_equal(table, parquet, check_categorical=False, check_dtype=False)
    assert parquet["age"].isna().sum() == frame["age"].isna().sum() > 0
