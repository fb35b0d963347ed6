from __future__ import annotations

import datetime as dt
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from include.config import (
    CategoryColumn,
    ConfigError,
    DatasetConfig,
    IntegerColumn,
    ScheduleDates,
    config_digest,
    list_release_files,
    load_budgets,
    load_checked,
    load_dataset,
    parse_request,
)

ROOT = Path(__file__).resolve().parents[2]
FORM = {
    "release": "by_hand",
    "dataset": "gss_happiness",
    "requester": "labour_team",
    "epsilon": "0.5",
    "accept_at_least": "",
    "interest": [["educ", "income"]],
    "partition": None,
    "publish": {"uri": "var/releases"},
}


@pytest.mark.parametrize("value", ["", " "])
def test_a_form_with_a_partition_of_no_value_is_refused(config_dir: Path, value: str) -> None:
    form = FORM | {"partition": {"column": "year", "value": value}}
    with pytest.raises(ConfigError, match=r"^form: partition\.value: the value is empty; "):
        parse_request(form, config_dir)


def test_the_shipped_files_fit_together() -> None:
    shipped = ROOT / "include" / "config"
    for path in list_release_files(shipped):
        load_checked(path, shipped)


def test_an_example_reads_as_it_is_written(config_dir: Path) -> None:
    checked = load_checked(list_release_files(config_dir)[0], config_dir)
    assert checked.release.epsilon_pico == 10**12
    assert checked.release.accept_at_least_pico == 5 * 10**11
    assert isinstance(checked.release.schedule, ScheduleDates)
    assert checked.release.schedule.dates[0] == dt.date(1994, 12, 31)
    assert checked.dataset.max_rows == 1
    pool = checked.budgets.populations["us_adults_gss"]
    assert (pool.delta_exponent, pool.per_operation_limit_pico) == (9, 2 * 10**12)


def test_fifty_releases_parse_in_well_under_a_second_with_light_imports(config_dir: Path) -> None:
    text = (config_dir / "releases" / "happiness_by_wave.yaml").read_text()
    for i in range(50):
        copy = text.replace("release: happiness_by_wave", f"release: wave_{i}")
        (config_dir / "releases" / f"wave_{i}.yaml").write_text(copy)
    started = time.process_time()
    for path in list_release_files(config_dir):
        load_checked(path, config_dir)
    assert time.process_time() - started < 1.0
    heavy = ["numpy", "pandas", "pyarrow", "great_expectations", "sqlalchemy", "opendp", "mbi"]
    code = f"import sys, include.config; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert out.stdout.strip() == "[]"


def test_words_of_yaml_1_1_keep_the_meaning_the_steward_sees(
    config_dir: Path, edit: Callable[[str, str, str], Path]
) -> None:
    edit(
        "datasets/happiness.yaml",
        "values: [not too happy, pretty happy, very happy]",
        "values: [no, yes, on, 010, 12:30, 2024-01-01, 1_000, 7]",
    )
    column = load_dataset("gss_happiness", config_dir).columns["happy"]
    assert isinstance(column, CategoryColumn)
    assert column.values == ("no", "yes", "on", "010", "12:30", "2024-01-01", "1_000", "7")


@pytest.mark.parametrize("quote", ["", '"'])
def test_dates_are_read_with_and_without_quotes(
    config_dir: Path, edit: Callable[[str, str, str], Path], quote: str
) -> None:
    path = edit("releases/happiness_by_wave.yaml", "1994-12-31", f"{quote}1993-12-31{quote}")
    schedule = load_checked(path, config_dir).release.schedule
    assert isinstance(schedule, ScheduleDates)
    assert schedule.dates[0] == dt.date(1993, 12, 31)


@pytest.mark.parametrize("text", ["0 6 1 * *", "@monthly", "*/15 0-6 * JAN MON"])
def test_cron_and_presets_are_accepted(
    config_dir: Path, edit: Callable[[str, str, str], Path], text: str
) -> None:
    path = config_dir / "releases" / "happiness_by_wave.yaml"
    lines = path.read_text().split("schedule:")
    after = lines[1].split("partition:", 1)[1]
    path.write_text(f'{lines[0]}schedule: "{text}"\npartition:{after}')
    assert load_checked(path, config_dir).release.schedule == text
    path.write_text(f'{lines[0]}schedule: "every now and then"\npartition:{after}')
    with pytest.raises(ConfigError, match=r"schedule: .*five fields"):
        load_checked(path, config_dir)


def test_the_manual_form_follows_the_rules_of_a_file(config_dir: Path) -> None:
    request = parse_request(FORM, config_dir)
    assert request.accept_at_least_pico == request.epsilon_pico == 5 * 10**11
    with pytest.raises(ConfigError, match=r"^form: epsilon: .*sign"):
        parse_request({**FORM, "epsilon": "-10"}, config_dir)
    with pytest.raises(ConfigError, match=r"^form: interest: unknown column 'incom'"):
        parse_request({**FORM, "interest": [["educ", "incom"]]}, config_dir)
    with pytest.raises(ConfigError, match=r"^form: requester: missing"):
        parse_request({**FORM, "requester": ""}, config_dir)


def test_the_gate_knows_the_thresholds_that_the_quality_check_knows(
    config_dir: Path, edit: Callable[[str, str, str], Path]
) -> None:
    from include.config.requests import GATE_KEYS
    from include.quality.fidelity import Thresholds

    assert set(GATE_KEYS) == set(Thresholds.__dataclass_fields__)
    path = edit(
        "releases/happiness_by_wave.yaml",
        "rows: 2400",
        "gate: {require_checks: false, max_interest_bound95_tv: 0.5}",
    )
    gate = load_checked(path, config_dir).release.gate
    assert Thresholds.from_mapping(gate).require_checks is False


def test_only_listed_airflow_users_may_act_for_a_requester(config_dir: Path) -> None:
    budgets = load_budgets(config_dir)
    assert budgets.may_act_for("admin", "labour_team")
    assert not budgets.may_act_for("viewer", "labour_team")
    assert not budgets.may_act_for(None, "labour_team")


def test_a_comment_does_not_change_the_digest_and_a_bin_does(
    config_dir: Path, edit: Callable[[str, str, str], Path]
) -> None:
    before = config_digest(load_dataset("gss_happiness", config_dir))
    edit("datasets/happiness.yaml", "dataset:", "# a remark\ndataset:")
    assert config_digest(load_dataset("gss_happiness", config_dir)) == before
    edit("datasets/happiness.yaml", "[17, 30, 40", "[17, 31, 40")
    assert config_digest(load_dataset("gss_happiness", config_dir)) != before


def _dataset(**changes: object) -> DatasetConfig:
    base: dict[str, object] = {
        "dataset": "d",
        "populations": ["p"],
        "privacy_unit": {"what": "person", "max_rows": 1},
        "source": {"path": "x.csv"},
        "columns": {"a": {"type": "boolean"}},
    }
    return DatasetConfig.model_validate({**base, **changes})


def test_column_names_of_any_script_are_kept_apart() -> None:
    names = ["größe", "年齢", "שם", "a,b", 'a"b', "a b", "É"]
    columns = {name: {"type": "boolean"} for name in names}
    assert list(_dataset(columns=columns).columns) == names
    with pytest.raises(ValueError, match="look the same"):
        _dataset(columns={**columns, "E\u0301": {"type": "boolean"}})


def test_a_joined_population_moves_its_own_row_and_one_kept_in_its_place() -> None:
    one_row = {"what": "pupil", "max_rows": 1}
    populations = {"pupils": None, "teachers": {"id_column": "teacher", "max_rows": 30}}
    dataset = _dataset(populations=populations, privacy_unit=one_row)
    assert (dataset.levels, dataset.max_rows) == (((("teacher",), 30),), 30)
    populations["teachers"] = {"id_column": "teacher", "max_rows": 1}
    assert _dataset(populations=populations, privacy_unit=one_row).max_rows == 2


def test_ids_that_cross_are_refused_with_both_ways_out() -> None:
    populations = {"pupils": None, "teachers": {"id_column": "teacher", "max_rows": 30}}
    unit = {"what": "pupil", "id_column": "pupil", "max_rows": 2}
    with pytest.raises(ValueError, match="cannot be bounded together") as refused:
        _dataset(populations=populations, privacy_unit=unit)
    told = str(refused.value)
    assert "write id_column: [teacher, pupil] for the inner kind" in told
    assert "so that the others own one row each" in told
    unit["id_column"] = ["pupil", "year"]
    populations["teachers"] = {"id_column": ["teacher", "year"], "max_rows": 30}
    with pytest.raises(ValueError, match="cannot be bounded together"):
        _dataset(populations=populations, privacy_unit=unit)


@pytest.mark.parametrize(
    ("households", "persons", "moved"), [(6, 2, 6), (6, 4, 8), (3, 5, 6), (1, 1, 2)]
)
def test_a_person_within_a_household_moves_twice_what_is_kept(
    households: int, persons: int, moved: int
) -> None:
    populations = {
        "households": {"id_column": "household", "max_rows": households},
        "persons": {"id_column": ["person", "household"], "max_rows": persons},
    }
    dataset = _dataset(populations=populations)
    assert dataset.levels == ((("household", "person"), persons), (("household",), households))
    assert dataset.id_columns == ("household", "person")
    assert dataset.max_rows == moved
    texts = {name: binding.id_text for name, binding in dataset.bindings.items()}
    assert texts == {"households": "household", "persons": '["household", "person"]'}


def test_populations_that_share_their_id_take_the_smallest_bound() -> None:
    populations = {
        "a": {"id_column": "pid", "max_rows": 5},
        "b": {"id_column": ["pid"], "max_rows": 3},
    }
    assert _dataset(populations=populations).levels == ((("pid",), 3),)


@pytest.mark.parametrize(
    ("unit", "sentence"),
    [
        ({"id_column": []}, "id_column is an empty list"),
        ({"id_column": ["a", 1]}, "holds what is not text"),
        ({"id_column": ["p", "p"]}, "lists a column twice"),
    ],
)
def test_a_wrong_list_of_id_columns_is_told(unit: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        _dataset(privacy_unit=unit)


def test_a_partition_column_does_not_name_the_unit() -> None:
    with pytest.raises(ValueError, match="is left out of a partition"):
        _dataset(privacy_unit={"id_column": ["pid", "year"]}, partition_columns=["year"])


def test_the_steward_is_asked_how_many_rows_one_unit_may_own() -> None:
    with pytest.raises(ValueError, match="how many rows one unit may own"):
        _dataset(privacy_unit={"what": "person"})
    assert _dataset(privacy_unit={"what": "person", "id_column": "pid"}).max_rows == 1


def test_the_id_of_the_privacy_unit_cannot_be_modelled() -> None:
    columns = {"a": {"type": "boolean"}, "pid": {"type": "integer", "min": 0, "max": 9}}
    with pytest.raises(ValueError, match="cannot be modelled"):
        _dataset(columns=columns, privacy_unit={"id_column": "pid"})
    columns["pid"] = {"type": "key"}
    assert list(_dataset(columns=columns, privacy_unit={"id_column": "pid"}).modelled_columns) == [
        "a"
    ]


def test_equal_bins_cover_the_bounds() -> None:
    column = IntegerColumn.model_validate({"type": "integer", "min": 3, "max": 12, "bins": 3})
    assert column.lower_ends == [3, 6, 9]
    assert IntegerColumn.model_validate({"type": "integer", "min": 0, "max": 1}).lower_ends == [
        0,
        1,
    ]
