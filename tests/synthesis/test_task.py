"""Tasks: marginals in one form, faults named by key and fix."""

from __future__ import annotations

import pytest

from include.synthesis import SynthesisTask, TaskError

DOMAIN = {"age": 5, "ключ, \n": 2, "income": 3}


def test_all_k_way_and_column_order() -> None:
    task = SynthesisTask.build(DOMAIN, interest=[["income", "age"], ["age", "income"]])
    assert task.interest == (("age", "income"),)
    assert [clique for clique, _ in task.workload] == [
        ("age", "ключ, \n"),
        ("age", "income"),
        ("ключ, \n", "income"),
    ]
    assert SynthesisTask.build(DOMAIN, workload="all 5-way").workload == ((tuple(DOMAIN), 1.0),)


def test_weights_in_three_spellings_add_up() -> None:
    workload = [
        ["age", "income"],
        (["income", "age"], 2),
        {"columns": ["age", "income"], "weight": 0.5},
    ]
    assert SynthesisTask.build(DOMAIN, workload=workload).workload == ((("age", "income"), 3.5),)


def test_json_round_trip() -> None:
    task = SynthesisTask.build(
        DOMAIN, workload=[(["age"], 2.5)], interest=[["age"]], max_rows=3, expected_rows=10
    )
    assert SynthesisTask.from_dict(task.to_dict()) == task
    everything = SynthesisTask.build(DOMAIN)
    assert everything.to_dict()["workload"] == "all 2-way"
    assert SynthesisTask.from_dict(everything.to_dict()) == everything


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"interest": [["age", "wage"]]}, "interest: column 'wage' is not in the dataset"),
        ({"interest": [["age", "age"]]}, "twice"),
        ({"interest": [[]]}, "list of columns"),
        ({"interest": ["age"]}, "list of columns"),
        ({"workload": "all pairs"}, "all 2-way"),
        ({"workload": []}, "empty"),
        ({"workload": [{"column": ["age"]}]}, "columns"),
        ({"workload": [(["age"], 0)]}, "weight"),
        ({"workload": [(["age"], True)]}, "weight"),
        ({"workload": [(["age"], float("nan"))]}, "weight"),
        ({"max_rows": 0}, "max_rows"),
        ({"max_rows": True}, "max_rows"),
        ({"expected_rows": -1}, "expected_rows"),
    ],
)
def test_faults(changes: dict[str, object], fault: str) -> None:
    with pytest.raises(TaskError) as caught:
        SynthesisTask.build(DOMAIN, **changes)  # type: ignore[arg-type]
    assert fault in str(caught.value)
    assert str(caught.value).endswith(".")


def test_at_most_four_columns_an_interest_query() -> None:
    domain = dict.fromkeys("abcde", 2)
    SynthesisTask.build(domain, interest=[["a", "b", "c", "d"]])
    with pytest.raises(TaskError, match="at most 4"):
        SynthesisTask.build(domain, interest=[["a", "b", "c", "d", "e"]])


def test_domains() -> None:
    with pytest.raises(TaskError, match="no column"):
        SynthesisTask.build({})
    with pytest.raises(TaskError, match="at least 1"):
        SynthesisTask.build({"x": 0})
    with pytest.raises(TaskError, match=r"161700 marginals and at most 20000"):
        SynthesisTask.build({f"x{i}": 2 for i in range(100)}, workload="all 3-way")
    huge = SynthesisTask.build({f"x{i}": 1000 for i in range(30)})
    assert huge.cells(tuple(huge.domain)) == 1000**30
