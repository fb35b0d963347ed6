"""Bad input gives one plain sentence that names file, key and fix, and loses nothing."""

from __future__ import annotations

import json
import re

import pendulum
import pytest
from airflow.sdk import DAG

from cusyn_airflow.operators.load import LoadOperator
from cusyn_airflow.operators.validate import ValidateOperator
from tests.airflow import world
from tests.airflow.faults import refusing_store, write_lock
from tests.airflow.rig import Rig, Run

FAILURE = re.compile(r"airflow\.sdk\.exceptions\.Airflow(?:Fail)?Exception: (.*)")


def sentence(capfd: pytest.CaptureFixture[str]) -> str:
    """Return the one sentence with which the task failed, however often it was tried."""
    told = set(FAILURE.findall(capfd.readouterr().out))
    assert len(told) == 1, told
    (only,) = told
    assert "Traceback" not in only and len(only) < 400
    return only


def failed_at_once(run: Run, task: str) -> None:
    assert run.state == "failed" and run.states()[task] == "failed" and run.tries(task) == 1


def nothing_lost(rig: Rig) -> None:
    assert set(rig.spent().values()) == {(0, 0)} and not rig.package_bytes()


BROKEN_FILES = {
    "unknown column": ({"interest": [["animl", "indoors"]]}, "interest: unknown column 'animl'"),
    "negative epsilon": ({"epsilon": "-1"}, "epsilon"),
    "NaN epsilon": ({"epsilon": "NaN"}, "epsilon"),
    "float NaN epsilon": ({"epsilon": float("nan")}, "epsilon"),
    "zero epsilon": ({"epsilon": "0"}, "epsilon"),
    "unknown requester": ({"requester": "nobody"}, "requester: unknown requester 'nobody'"),
    "unknown key": ({"intrest": []}, "intrest"),
}


@pytest.mark.parametrize("case", BROKEN_FILES)
def test_a_fault_in_a_release_file_is_told_on_its_page(rig: Rig, case: str) -> None:
    changes, told = BROKEN_FILES[case]
    rig.declare(release=changes)
    dag = rig.parse()["release__pets_by_year"]
    (task,) = dag.tasks
    for text in (dag.description, dag.doc_md, task.sentence):
        assert "releases/pets_by_year.yaml: " in text and told in text
    assert "; " in task.sentence  # the fix follows the fault
    assert "configuration-error" in dag.tags


def test_a_configuration_error_fails_its_task_at_once_with_the_sentence(
    rig: Rig, capfd: pytest.CaptureFixture[str]
) -> None:
    rig.declare(release={"interest": [["animl", "indoors"]]})
    run = rig.release()
    failed_at_once(run, "configuration_error")
    assert sentence(capfd) == rig.parse()["release__pets_by_year"].description
    nothing_lost(rig)


def test_a_file_broken_while_a_run_is_under_way_stops_it_until_it_is_mended(
    rig: Rig, capfd: pytest.CaptureFixture[str]
) -> None:
    run = rig.trigger().finish(until="budget_eval")
    held = rig.spent()
    path = rig.config / "releases" / "pets_by_year.yaml"
    good = path.read_bytes()
    dag = rig.parse()[run.dag_id]
    path.write_text("release: [")
    run.finish(dag=dag)
    failed_at_once(run, "synthesize")
    assert sentence(capfd).startswith("releases/pets_by_year.yaml: ")
    assert rig.spent() == held
    path.write_bytes(good)
    assert run.clear("synthesize", "quality_check", "publish").finish().state == "success"


def test_a_missing_source_is_named(rig: Rig, capfd: pytest.CaptureFixture[str]) -> None:
    rig.source.unlink()
    run = rig.release()
    assert run.state == "failed" and run.states()["load"] == "failed"
    told = sentence(capfd)
    assert "pets" in told and "source" in told
    nothing_lost(rig)
    world.write_source(rig.source, world.rows())
    assert run.clear().finish().state == "success"


@pytest.mark.parametrize("task", ["budget_eval", "synthesize", "publish"])
def test_a_locked_ledger_is_tried_again(
    rig: Rig,
    task: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("include.budget.store.engine.BUSY_SECONDS", 0.3)
    before = {"budget_eval": "validate", "synthesize": "budget_eval", "publish": "quality_check"}
    run = rig.trigger().finish(until=before[task])
    spent = rig.spent()
    with write_lock(rig.ledger_file):
        run.finish(until=task)
    assert run.states()[task] == "up_for_retry"
    assert "the ledger database stayed locked" in sentence(capfd)
    assert rig.spent() == spent
    run.finish()
    assert run.state == "success" and run.tries(task) == 2
    assert rig.charge().state == "published"


def test_a_ledger_that_is_not_there_is_named(
    rig: Rig, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = rig.root / "nowhere.db"
    monkeypatch.setenv(
        "AIRFLOW_CONN_PRIVACY_LEDGER", json.dumps({"conn_type": "sqlite", "host": str(missing)})
    )
    run = rig.release()
    assert run.state == "failed"
    assert "does not exist: run `make demo` or `make up` first, or" in sentence(capfd)
    assert not missing.exists()


def test_mapped_stages_are_refused_in_one_sentence(
    rig: Rig, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = [{"file": "pets_by_year.yaml", "period": f"{year}-12-31"} for year in (2020, 2021)]
    with DAG("mapped", schedule=None, start_date=pendulum.datetime(2020, 1, 1)) as dag:
        load = LoadOperator.partial(task_id="load", retries=0).expand(request=asked)
        _ = load >> ValidateOperator.partial(task_id="validate", retries=0).expand(request=asked)
    rig.store(dag)
    assert dag.test(logical_date=None).state == "failed"
    assert sentence(capfd).startswith("load was mapped with expand(), which the stages do not")
    nothing_lost(rig)


def test_a_wrong_privacy_unit_is_named(rig: Rig, capfd: pytest.CaptureFixture[str]) -> None:
    rig.declare(dataset={"privacy_unit": {"id_column": "keeper_id"}})
    run = rig.release()
    assert run.state == "failed" and run.states()["budget_eval"] != "success"
    told = sentence(capfd)
    assert "keeper_id" in told
    nothing_lost(rig)


def test_several_rows_a_person_without_an_id_is_a_fault_of_the_file(rig: Rig) -> None:
    rig.declare(dataset={"privacy_unit": {"max_rows": 5}})
    description = rig.parse()["release__pets_by_year"].description
    assert "datasets/pets.yaml: privacy_unit" in description and "id_column" in description


def test_a_column_of_another_type_is_named_and_no_value_is(
    rig: Rig, capfd: pytest.CaptureFixture[str]
) -> None:
    table = world.rows()
    for row in table:
        row["weight"] = f"about {row['weight']} kg"
    world.write_source(rig.source, table)
    run = rig.release()
    failed_at_once(run, "validate")
    told = sentence(capfd)
    assert "weight" in told and "kg" not in told
    assert not rig.charges()


@pytest.mark.parametrize("user", ["mallory", "scheduler", None])
def test_a_user_who_is_not_listed_is_refused(
    rig: Rig, user: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    run = rig.release(user=user)
    failed_at_once(run, "load")
    told = sentence(capfd)
    assert "may not request releases for 'vets'" in told
    assert "budgets.yaml under airflow_users" in told
    assert not rig.charges()


def test_conf_cannot_name_the_actor(rig: Rig, capfd: pytest.CaptureFixture[str]) -> None:
    claims = {"actor": "alice", "user": "alice", "triggering_user_name": "alice"}
    run = rig.release(user="mallory", conf=claims)
    failed_at_once(run, "load")
    assert "Airflow user 'mallory' may not" in sentence(capfd)


def test_whoever_clears_a_run_releases_nothing_new(rig: Rig) -> None:
    run = rig.release(user="mallory")
    assert run.clear().finish().state == "failed" and not rig.charges()


def test_the_schedule_needs_no_user_and_is_named_scheduler(rig: Rig) -> None:
    run = rig.trigger(user=None, run_type="scheduled").finish(until="budget_eval")
    assert run.states()["budget_eval"] == "success"
    assert rig.charge().actor == "scheduler" and rig.charge().requester == "vets"


def test_a_run_without_a_date_must_name_its_period(
    rig: Rig, capfd: pytest.CaptureFixture[str]
) -> None:
    part = {"column": "year", "value": "2020"}
    rig.declare(release={"schedule": None, "partition": part})
    run = rig.release(None)
    assert run.state == "failed" and not rig.charges()
    assert "fill in the field 'period'" in sentence(capfd)


@pytest.mark.parametrize("period", ["", "spring", "2020-12-30"])
def test_a_period_that_is_no_release_date_is_refused(
    rig: Rig, period: str, capfd: pytest.CaptureFixture[str]
) -> None:
    run = rig.release(None, conf={"period": period} if period else None)
    failed_at_once(run, "load")
    assert "is none of its dates (2020-12-31, 2021-12-31, 2022-12-31)" in sentence(capfd)
    assert not rig.charges()


@pytest.mark.parametrize("period", ["spring/2021", "spring 2021", "2021-05-01T14:00"])
def test_a_period_that_could_not_be_a_folder_is_refused_by_the_form(
    rig: Rig, period: str, capfd: pytest.CaptureFixture[str]
) -> None:
    form = {"dataset": "pets", "requester": "vets", "period": period}
    run = rig.release(None, dag_id="manual_release", conf=form)
    failed_at_once(run, "load")
    told = sentence(capfd)
    assert told.startswith(f"period '{period}': use at most 64 letters") and not rig.charges()


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("epsilon", "0"),
        ("epsilon", "-1"),
        ("epsilon", "much"),
        ("accept_at_least", "2"),
        ("accept_at_least", "1e400"),
        ("interest", [["animl"]]),
    ],
)
def test_the_form_names_its_fields(
    rig: Rig, field: str, wrong: object, capfd: pytest.CaptureFixture[str]
) -> None:
    form = {"dataset": "pets", "requester": "vets", "period": "p1", field: wrong}
    run = rig.release(None, dag_id="manual_release", conf=form)
    failed_at_once(run, "load")
    assert not rig.charges()
    told = sentence(capfd)
    assert told.startswith(f"form: {field}: ") and "; " in told


def test_the_form_releases_once_a_period(rig: Rig) -> None:
    form = {
        "dataset": "pets",
        "requester": "vets",
        "period": "spring",
        "partition_column": "year",
        "partition_value": "2021",
    }
    run = rig.release(None, dag_id="manual_release", conf=form)
    assert run.state == "success" and rig.charge().period == "spring"
    again = rig.release(None, dag_id="manual_release", conf=form)
    assert again.state == "success" and again.xcom("publish") == run.xcom("publish")
    assert rig.charge().state == "published"


def test_a_dry_run_says_the_cost_and_spends_nothing(
    rig: Rig, capfd: pytest.CaptureFixture[str]
) -> None:
    rig.register()
    form = {"dataset": "pets", "requester": "vets", "period": "spring", "dry_run": True}
    run = rig.release(None, dag_id="manual_release", conf=form)
    assert run.state == "success" and set(run.states().values()) == {"skipped"}
    assert not rig.charges() and not (rig.root / "protected").exists()
    said = capfd.readouterr()
    assert "would be charged rho" in said.out + said.err
    denied = rig.trigger("manual_release", None, user="mallory", conf=form).finish()
    assert denied.state == "failed"


def test_a_store_that_refuses_is_told_in_one_sentence_and_costs_nothing_more(
    rig: Rig, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.declare(release={"publish": {"uri": "s3://bucket/pets", "conn_id": "store"}})
    with refusing_store() as address:
        monkeypatch.setenv("AIRFLOW_CONN_STORE", store_connection(address))
        run = rig.release()
    failed_at_once(run, "publish")
    assert "refused access (403)" in sentence(capfd)
    spent = rig.spent()
    rig.declare()
    run.clear("publish").finish()
    assert run.state == "success" and rig.spent() == spent


def store_connection(address: str) -> str:
    return json.dumps(
        {
            "conn_type": "aws",
            "login": "key",
            "password": "secret",
            "extra": {"endpoint_url": address, "region_name": "eu-central-1"},
        }
    )
