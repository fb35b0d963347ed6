"""Each broken file gives one line: file, key, fault, fix."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from include.config import ConfigError, list_release_files, load_checked

RELEASE = "releases/happiness_by_wave.yaml"
DATASET = "datasets/happiness.yaml"
BUDGETS = "budgets.yaml"

CASES = [
    # file, text, replacement, what the sentence must say
    (RELEASE, "mechanism: mwem_pgm", "mechanism: [mwem_pgm", ["line", "broken YAML"]),
    (RELEASE, "mechanism: mwem_pgm", "mechanism:\tmwem_pgm\n\tx: 1", ["line", "tab"]),
    (RELEASE, "requester: labour_team", "requestor: labour_team", ["'requestor'", "'requester'?"]),
    (RELEASE, "requester: labour_team", "", ["requester", "missing"]),
    (RELEASE, "mechanism: mwem_pgm", "mechanism: mwem", ["mechanism", "'mwem'", "mwem_pgm"]),
    (RELEASE, "mechanism: mwem_pgm", "mechanism: aim\nmechanism: aim", ["line", "written twice"]),
    (RELEASE, 'epsilon: "1"', "epsilon: 0.5", ["epsilon", "0.5", "in quotes"]),
    (RELEASE, 'epsilon: "1"', "epsilon: .nan", ["epsilon", "NaN"]),
    (RELEASE, 'epsilon: "1"', 'epsilon: "nan"', ["epsilon", "NaN"]),
    (RELEASE, 'epsilon: "1"', "epsilon: NaN", ["epsilon", "NaN"]),
    (RELEASE, 'epsilon: "1"', "epsilon: .inf", ["epsilon", "infinite"]),
    (RELEASE, 'epsilon: "1"', "epsilon: -1", ["epsilon", "negative"]),
    (RELEASE, 'epsilon: "1"', 'epsilon: "-1"', ["epsilon", "sign"]),
    (RELEASE, 'epsilon: "1"', "epsilon: -0.0", ["epsilon", "sign"]),
    (RELEASE, 'epsilon: "1"', "epsilon: 0", ["epsilon", "zero"]),
    (RELEASE, 'epsilon: "1"', 'epsilon: "1e400"', ["epsilon", "exponent"]),
    (RELEASE, 'epsilon: "1"', "epsilon: 1_0", ["epsilon", "underscore"]),
    (RELEASE, 'epsilon: "1"', 'epsilon: "１"', ["epsilon", "ASCII"]),
    (RELEASE, 'epsilon: "1"', "epsilon: true", ["epsilon", "true/false"]),
    (RELEASE, 'epsilon: "1"', "epsilon:", ["epsilon", "missing value"]),
    (RELEASE, 'accept_at_least: "0.5"', 'accept_at_least: "1.5"', ["accept_at_least", "above"]),
    (RELEASE, "[educ, income]", "[educ, incme]", ["interest", "'incme'", "'income'?"]),
    (RELEASE, "[educ, income]", "[educ, educ]", ["interest", "twice"]),
    (RELEASE, "[educ, income]", "[happy, prestige]", ["interest", "listed twice"]),
    (RELEASE, "[educ, income]", "educ", ["interest", "[[a, b], [c, d]]"]),
    (RELEASE, "dataset: gss_happiness", "dataset: gss_hapiness", ["dataset", "'gss_happiness'?"]),
    (RELEASE, "requester: labour_team", "requester: labor_team", ["requester", "'labour_team'?"]),
    (RELEASE, "requester: labour_team", "requester: labour team", ["requester", "usable name"]),
    (RELEASE, "release: happiness_by_wave", "release: ../x", ["release", "usable name"]),
    (RELEASE, "1994-12-31", "1994-13-31", ["schedule.dates", "1994-13-31", "2024-12-31"]),
    (RELEASE, "1994-12-31", "1996-12-31", ["schedule.dates", "listed twice"]),
    (RELEASE, 'value: "{{ logical_date.year }}"', 'value: ""', ["partition.value", "is empty"]),
    (RELEASE, 'value: "{{ logical_date.year }}"', 'value: "  "', ["partition.value", "is empty"]),
    (RELEASE, "column: year", "column: yaer", ["partition.column", "'yaer'", "'year'?"]),
    (RELEASE, "column: year", "column: happy", ["partition.column", "constant"]),
    (RELEASE, "rows: 2400", "rows: 0", ["rows", "at least 1"]),
    (RELEASE, "rows: 2400", "columns: [happy]", ["interest", "left out by `columns:`"]),
    (
        RELEASE,
        "mechanism: mwem_pgm",
        "mechanism: privbayes\ncolumns: [educ, income, prestige, happy, workstat]\n"
        "options: {quantile_bins: {attend: 4}}",
        ["options.quantile_bins", "left out by `columns:`", "drop it from the option"],
    ),
    (
        RELEASE,
        "mechanism: mwem_pgm",
        "mechanism: privbayes\noptions: {bin_share: 0.2}",
        ["options.bin_share", "needs `quantile_bins"],
    ),
    (RELEASE, "rows: 2400", "delta: 1e-6", ["delta", "1e-6", "1e-9"]),
    (
        RELEASE,
        "rows: 2400",
        "gate: {max_interest_bound: 0.1}",
        ["gate", "max_interest_bound95_tv'?"],
    ),
    (RELEASE, "rows: 2400", "gate: {max_interest_bound95_tv: 1.5}", ["gate", "share"]),
    (RELEASE, "rows: 2400", "gate: {require_checks: 1}", ["gate", "true or false"]),
    (RELEASE, "{uri: var/releases}", '{uri: ""}', ["publish.uri", "empty"]),
    (RELEASE, "{uri: var/releases}", '{uri: "s3://"}', ["publish.uri", "no bucket"]),
    (RELEASE, "{uri: var/releases}", '{uri: "s3:///x"}', ["publish.uri", "no bucket"]),
    (RELEASE, "{uri: var/releases}", '{uri: "http://x/y"}', ["publish.uri", "no folder"]),
    (RELEASE, "{uri: var/releases}", '{uri: "~/x"}', ["publish.uri", "whole path"]),
    (RELEASE, "{uri: var/releases}", '{uri: "file://x"}', ["publish.uri", "file:///folder"]),
    (RELEASE, "publish: {uri: var/releases}", "publish: here", ["publish", "block of keys"]),
    (
        RELEASE,
        "rows: 2400",
        "options: {intrest_share: 0.3}",
        ["options.intrest_share", "mwem_pgm has no option", "did you mean 'interest_share'?"],
    ),
    (RELEASE, "rows: 2400", "options: {degree: 2}", ["options.degree", "it has rounds, interest"]),
    (RELEASE, "rows: 2400", "options: {rounds: 1.5}", ["options.rounds", "1.5", "whole number"]),
    (RELEASE, "rows: 2400", "options: {rounds: 999}", ["options.rounds", "999", "0 to 500"]),
    (RELEASE, "rows: 2400", "options: {rounds: true}", ["options.rounds", "True", "0 to 500"]),
    (
        RELEASE,
        "rows: 2400",
        "options: {interest_share: .nan}",
        ["options.interest_share", "NaN", "finite"],
    ),
    (
        RELEASE,
        "rows: 2400",
        "options: {estimator: nunpy}",
        ["options.estimator", "'nunpy'", "numpy or private_pgm"],
    ),
    (DATASET, "    nullable: true", "    nullable: maybe", ["workstat.nullable", "true or false"]),
    (DATASET, "    nullable: true", "    nulable: true", ["columns.workstat", "'nullable'?"]),
    (DATASET, "type: category", "type: categry", ["'categry'", "'category'?"]),
    (DATASET, "type: category", "type: text", ["free text", "leave the column out"]),
    (DATASET, "    type: boolean\n", "", ["'female' has no type"]),
    (DATASET, "max: 86", "max: 8", ["prestige", "below min"]),
    (DATASET, "[17, 30, 40, 50, 60, 70]", "[17, 30, 30]", ["prestige", "do not rise"]),
    (DATASET, "[17, 30, 40, 50, 60, 70]", "[20, 30]", ["prestige", "first bin", "17"]),
    (DATASET, "[17, 30, 40, 50, 60, 70]", "[17, 3.5]", ["prestige", "whole number"]),
    (DATASET, "outside: clamp", "outside: other", ["prestige", "no level"]),
    (DATASET, "[not too happy, pretty happy, very happy]", "[true, false]", ["truth value"]),
    (DATASET, "[not too happy, pretty happy, very happy]", "[1.0, 2.0]", ["in quotes"]),
    (DATASET, "[not too happy, pretty happy, very happy]", "[a, null]", ["nullable: true"]),
    (DATASET, "[not too happy, pretty happy, very happy]", "[a, a]", ["listed twice"]),
    (DATASET, "max_rows: 1", "max_rows: 3", ["privacy_unit", "id_column"]),
    (DATASET, "max_rows: 1", "max_rows: true", ["max_rows", "not a whole number"]),
    (DATASET, "privacy_unit: {what: person, max_rows: 1}", "", ["privacy_unit", "missing"]),
    (DATASET, "populations: [us_adults_gss]", "populations: [us_adults]", ["'us_adults_gss'?"]),
    (DATASET, "source: {path: var/raw/happiness.parquet}", "source: {}", ["source", "add path"]),
    (DATASET, "happiness.parquet}", "happiness.sav}", ["source", "format: csv"]),
    *(
        (DATASET, "happiness.parquet}", f"x.csv, encoding: {name}}}", ["source", name, "latin-1"])
        for name in ("klingon", "rot13", "base64", "hex", "bz2", "undefined", "idna", "punycode")
    ),
    (DATASET, "happiness.parquet}", 'x.csv, encoding: "u\\0"}', ["source", "no encoding of text"]),
    (DATASET, "  babies:", "  Happy:", ["'happy'", "'Happy'", "look the same"]),
    (DATASET, "  babies:", '  " happy2":', ["space", "source_column"]),
    (DATASET, "  babies:", '  "a\\nb":', ["line break", "source_column"]),
    (DATASET, "  babies:", '  "a\\u202eb":', ["invisible character"]),
    (DATASET, "  babies:", '  "":', ["column name is empty"]),
    (DATASET, "  babies:", "  7:", ["not text", "in quotes"]),
    (DATASET, "  babies:", "  happy:", ["line", "written twice"]),
    (BUDGETS, 'delta: "1e-9"', 'delta: "0.1"', ["populations.us_adults_gss.delta", "1e-N"]),
    (BUDGETS, 'epsilon: "10"', "epsilon: 10.5", ["us_adults_gss.epsilon", "in quotes"]),
    (BUDGETS, "gss_happiness", "gss_other", ["requester", "no budget"]),
    (
        BUDGETS,
        "local: [labour_team]",
        "local: [labor_team]",
        ["airflow_users.local", "'labour_team'?"],
    ),
]


@pytest.mark.parametrize(("file", "old", "new", "said"), CASES)
def test_one_line_names_file_key_and_fix(
    config_dir: Path,
    edit: Callable[[str, str, str], Path],
    file: str,
    old: str,
    new: str,
    said: list[str],
) -> None:
    edit(file, old, new)
    with pytest.raises(ConfigError) as caught:
        load_checked(list_release_files(config_dir)[0], config_dir)
    sentence = str(caught.value)
    for word in said:
        assert word in sentence
    assert "\n" not in sentence and "; " in sentence
    assert any(name in sentence for name in ("happiness_by_wave.yaml", "happiness.yaml", BUDGETS))
    assert str(config_dir.parent) not in sentence
    assert "Traceback" not in sentence and "pydantic" not in sentence


def test_a_missing_file_an_empty_file_and_a_list_are_told_plainly(config_dir: Path) -> None:
    path = config_dir / RELEASE
    for content, word in [("", "empty"), ("- a\n- b\n", "line 1"), ("a: &a [*a]\n", "unknown key")]:
        path.write_text(content)
        with pytest.raises(ConfigError, match=word):
            load_checked(path, config_dir)
    path.write_bytes(b"release: \xff\xfe\n")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_checked(path, config_dir)
    path.unlink()
    with pytest.raises(ConfigError, match="does not exist"):
        load_checked(path, config_dir)
    os.mkfifo(path)  # opening it would wait for ever
    with pytest.raises(ConfigError, match="readable file"):
        load_checked(path, config_dir)


def test_a_deeply_nested_file_is_refused_without_a_traceback(config_dir: Path) -> None:
    path = config_dir / RELEASE
    path.write_text("a: " + "[" * 5_000)
    with pytest.raises(ConfigError):
        load_checked(path, config_dir)


def test_a_missing_budgets_file_names_itself(config_dir: Path) -> None:
    (config_dir / BUDGETS).unlink()
    with pytest.raises(ConfigError, match=r"^budgets\.yaml: the file does not exist"):
        load_checked(list_release_files(config_dir)[0], config_dir)


def test_one_broken_dataset_file_leaves_the_others_usable(config_dir: Path) -> None:
    (config_dir / "datasets" / "aaa_broken.yaml").write_text("dataset: [")
    assert (
        load_checked(list_release_files(config_dir)[0], config_dir).dataset.dataset
        == "gss_happiness"
    )


def test_a_dataset_declared_in_two_files_names_both(config_dir: Path) -> None:
    text = (config_dir / DATASET).read_text()
    (config_dir / "datasets" / "copy.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"datasets/copy\.yaml and datasets/happiness\.yaml"):
        load_checked(list_release_files(config_dir)[0], config_dir)


def test_a_forged_second_line_cannot_enter_a_sentence(config_dir: Path) -> None:
    path = config_dir / RELEASE
    path.write_text('release: "x\\n2026-01-01 INFO all is well"\n')
    with pytest.raises(ConfigError) as caught:
        load_checked(path, config_dir)
    assert "\n" not in str(caught.value)
