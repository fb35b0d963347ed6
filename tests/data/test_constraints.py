"""Impossible combinations are declared, checked at parse time, and never come out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from include.data.constraints import draw_possible, possible_rows
from include.data.schema import Schema
from include.errors import CuSynError
from tests.data.conftest import dataset

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "min": 0, "max": 99, "bins": [0, 15, 30, 65]},
    "married": {"type": "boolean", "nullable": True},
    "work": {"type": "category", "values": ["school", "retired", "works"]},
    "since": {"type": "date", "min": "2020-01-01", "max": "2022-12-31", "resolution": "year"},
}


def declared(*never: dict[str, Any]) -> Any:
    return dataset(COLUMNS, constraints=[{"never": block} for block in never])


def test_rows_of_each_kind_of_condition() -> None:
    config = declared(
        {"age": {"to": 14}, "married": True},
        {"work": ["retired", "works"], "married": None},
        {"since": {"from": "2021"}, "age": {"from": 65}},
    )
    shape = Schema.from_config(config)
    rows = ["0100", "0000", "1100", "1210", "1200", "3001", "3000"]
    codes = np.array([[int(code) for code in row] for row in rows])
    want = [False, True, True, False, True, False, True]
    assert possible_rows(codes, shape, config.constraints).tolist() == want


@pytest.mark.parametrize(
    ("never", "sentence"),
    [
        ({"age": {"to": 14}}, "at least two columns"),
        ({"agee": {"to": 14}, "married": True}, "unknown column 'agee'; did you mean 'age'"),
        ({"age": {"to": 20}, "married": True}, "cuts the bin from 15 to 29 in two"),
        ({"age": {"below": 20}, "married": True}, "unknown condition"),
        ({"age": 7, "married": True}, "'7' is not a level of 'age'"),
        ({"age": {"to": 14}, "married": "yes"}, "'yes' is not a level of 'married'"),
        ({"work": "retird", "married": True}, "did you mean 'retired'"),
        ({"work": {"to": "retired"}, "married": True}, "has no order"),
        ({"work": None, "married": True}, "is not nullable"),
        ({"work": [], "married": True}, "empty list"),
    ],
)
def test_a_constraint_that_does_not_fit_is_told_at_parse_time(never: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        declared(never)


def uniform(shape: Schema) -> Any:
    def draw(rows: int, seed: bytes) -> Any:
        rng = np.random.default_rng(list(seed))
        return np.stack([rng.integers(0, c, rows) for c in shape.domain.values()], axis=1)

    return draw


def test_draws_hold_no_impossible_row_and_keep_their_number() -> None:
    config = declared({"age": {"to": 29}, "work": "retired"}, {"married": True, "work": "school"})
    shape = Schema.from_config(config)
    codes = draw_possible(uniform(shape), 500, b"seed", shape, config.constraints)
    assert codes.shape == (500, 4)
    assert possible_rows(codes, shape, config.constraints).all()
    again = draw_possible(uniform(shape), 500, b"seed", shape, config.constraints)
    assert np.array_equal(codes, again)


def test_without_constraints_the_draw_is_the_models_own() -> None:
    shape = Schema.from_config(declared())
    codes = draw_possible(uniform(shape), 50, b"seed", shape, [])
    assert np.array_equal(codes, uniform(shape)(50, b"seed"))


def test_a_contradiction_is_told_plainly() -> None:
    config = declared({"married": [True, False, None], "work": ["school", "retired", "works"]})
    shape = Schema.from_config(config)
    with pytest.raises(CuSynError, match="exclude nearly every row"):
        draw_possible(uniform(shape), 10, b"seed", shape, config.constraints)


def test_a_constraint_on_a_column_left_out_does_not_apply() -> None:
    config = declared({"age": {"to": 14}, "married": True})
    shape = Schema.from_config(config, ["age", "work"])
    assert possible_rows(np.array([[0, 0]]), shape, config.constraints).all()
