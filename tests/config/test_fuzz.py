"""Whatever stands in a file, the answer is a model or one plain line."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from include.config import BudgetsConfig, ConfigError, DatasetConfig, ReleaseConfig, cross_check
from include.config.faults import build
from include.config.yamlfile import parse_yaml, read_yaml

EXAMPLE = Path(__file__).resolve().parent / "example"
FILES: dict[type[Any], dict[str, Any]] = {
    ReleaseConfig: read_yaml(EXAMPLE / "releases" / "happiness_by_wave.yaml", "r"),
    DatasetConfig: read_yaml(EXAMPLE / "datasets" / "happiness.yaml", "d"),
    BudgetsConfig: read_yaml(EXAMPLE / "budgets.yaml", "b"),
}
ODD: list[Any] = [
    None, True, -1, 0, 10**30, 1.5, float("nan"), float("inf"), -0.0, "", " ", "x" * 5000, "a\nb",
    "\u202e", "no", "1e400", "1_0", "1e-9", "{{ x }}", [], [[]], [None], [1, "1"], ["a", ["b"]],
    {}, {"a": 1}, {"": 1}, {1: 2}, {None: None}, {"min": {}}, {"type": []}, {"dates": "x"},
    {"never": {"happy": {"from": []}, "female": "x"}},
    [{"never": {"happy": None, "educ": {"to": 8}}}],
]  # fmt: skip
EXTRA = ["constraints", "expectations", "gate", "options", "workload", "columns", "rows"]


def paths(node: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    keys = (
        node.keys()
        if isinstance(node, dict)
        else range(len(node))
        if isinstance(node, list)
        else ()
    )
    return [at] * bool(at) + [p for key in keys for p in paths(node[key], (*at, key))]


@pytest.mark.parametrize("model", list(FILES))
@given(st.data())
@settings(max_examples=150, deadline=None)
def test_an_odd_value_anywhere_gives_a_model_or_one_line(
    model: type[Any], data: st.DataObject
) -> None:
    content = copy.deepcopy(FILES[model])
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.sampled_from(paths(content) + [(key,) for key in EXTRA]))
        node = content
        for key in place[:-1]:
            node = node[key]
        node[place[-1]] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
    models = {m: build(m, c, "x.yaml") for m, c in FILES.items() if m is not model}
    try:
        models[model] = build(model, content, "x.yaml")
    except ConfigError as error:
        assert "\n" not in str(error) and str(error).startswith("x.yaml")
        assert len(str(error)) < 1000
        assert "cannot be understood" not in str(error)
    else:
        faults = cross_check(models[ReleaseConfig], models[DatasetConfig], models[BudgetsConfig])
        assert all("\n" not in fault for fault in faults)


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda b: b.decode("latin-1")))
@settings(max_examples=300, deadline=None)
def test_any_text_is_yaml_or_one_line(text: str) -> None:
    try:
        content = parse_yaml(text, "x.yaml")
    except ConfigError as error:
        assert "\n" not in str(error)
    else:
        assert isinstance(content, dict)


@given(st.dictionaries(st.text(max_size=8), st.sampled_from(ODD), max_size=4))
@settings(max_examples=100, deadline=None)
def test_what_yaml_writes_is_read_or_refused(content: dict[str, Any]) -> None:
    try:
        parse_yaml(yaml.safe_dump(content, allow_unicode=True), "x.yaml")
    except ConfigError as error:
        assert "\n" not in str(error)
