"""Options of the mechanisms: one table for the reader of YAML and for the mechanisms."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from include.config.requests import MECHANISMS
from include.options import OPTIONS, Option, option_fault
from include.synthesis import MECHANISM_NAMES, SynthesisTask, TaskError, synthesizer

ROOT = Path(__file__).resolve().parents[2]


def test_every_mechanism_has_its_options() -> None:
    assert set(OPTIONS) == set(MECHANISMS) == set(MECHANISM_NAMES)
    for name in MECHANISM_NAMES:
        assert synthesizer(name).option_specs is OPTIONS[name]


@pytest.mark.parametrize("mechanism", sorted(OPTIONS))
def test_the_ends_of_every_range_are_taken_and_what_lies_beyond_is_not(mechanism: str) -> None:
    numbers = {
        name: option
        for name, option in OPTIONS[mechanism].items()
        if not option.choices and not option.kind
    }
    assert numbers
    for name, option in numbers.items():
        kind = int if option.whole else float
        for end in (option.low, option.high):
            assert option_fault(mechanism, name, kind(end)) == ""
        for value in (option.low - 1, option.high + 1, float("nan"), True, "3", [3]):
            assert option_fault(mechanism, name, value).startswith(f"{name} is ")


@pytest.mark.parametrize("mechanism", sorted(OPTIONS))
def test_a_default_passes_its_own_check(mechanism: str) -> None:
    for name, option in OPTIONS[mechanism].items():
        assert option_fault(mechanism, name, option.default) == ""


def test_a_mechanism_and_the_file_tell_the_same() -> None:
    task = SynthesisTask.build({"a": 2, "b": 3}, options={"round": 3})
    with pytest.raises(TaskError) as caught:
        synthesizer("aim").options(task)
    assert str(caught.value) == "options: " + option_fault("aim", "round", 3)
    assert "did you mean 'rounds'?" in str(caught.value)


def test_a_long_value_is_cut() -> None:
    fault = option_fault("aim", "estimator", "x" * 500)
    assert len(fault) < 200


def test_reading_the_files_loads_no_mechanism() -> None:
    code = (
        "import sys, include.config\n"
        "names = {name.split('.')[0] for name in sys.modules}\n"
        "assert not names & {'numpy', 'pandas', 'opendp', 'pyarrow', 'mbi', 'jax', 'scipy'}\n"
        "assert not [name for name in sys.modules if name.startswith('include.synthesis')]\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_an_option_without_bounds_has_words_or_a_kind() -> None:
    for options in OPTIONS.values():
        for option in options.values():
            assert isinstance(option, Option)
            assert option.choices or option.kind or option.low < option.high
