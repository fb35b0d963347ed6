"""Builds the DAGs from the steward's YAML: the one bridge between the two.

Light on purpose: this runs at every parse, so pandas, OpenDP and Great Expectations are imported
inside the tasks only.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pendulum
from airflow.sdk import DAG, Asset, BaseOperator, Param

from cusyn_airflow.operators.budget_eval import BudgetEvalOperator
from cusyn_airflow.operators.configuration_error import ConfigurationErrorOperator
from cusyn_airflow.operators.load import LoadOperator
from cusyn_airflow.operators.publish import PublishOperator
from cusyn_airflow.operators.quality_check import QualityCheckOperator
from cusyn_airflow.operators.synthesize import SynthesizeOperator
from cusyn_airflow.operators.validate import ValidateOperator
from cusyn_airflow.timetables import ReleaseDatesTimetable
from include.config.loader import file_label, list_release_files, load_checked
from include.config.requests import ReleaseConfig, ScheduleDates
from include.errors import CuSynError
from include.settings import Settings, load_settings
from include.stages.beforehand import require_destination

TAG = "cusyn"
START = pendulum.datetime(1990, 1, 1, tz="UTC")
# A retry costs nothing: every stage asks the ledger first (docs/ledger.md).
DEFAULT_ARGS = {"retries": 2, "retry_delay": timedelta(seconds=30)}
# `dag_run`, since a run without a logical date has no such name in its templates at all.
PERIOD = "{{ params.period or (dag_run.logical_date | ds if dag_run.logical_date else '') }}"


def release_dags() -> dict[str, DAG]:
    """Return one DAG a release file; a broken file gets a DAG that shows what is wrong with it.

    Privacy: ledger only.
    """
    settings = load_settings()
    releases: dict[str, tuple[ReleaseConfig, Path]] = {}
    faults: list[tuple[str, str]] = []
    # A file named after its release comes first: a copy of it, not renamed, is the one at fault.
    for path, release in sorted(_readable(settings, faults), key=_is_copy):
        if release.release in releases:
            other = releases[release.release][1].name
            faults.append((path.stem, _declared_twice(path.name, release.release, other)))
        else:
            releases[release.release] = (release, path)
    dags = [release_dag(release, path) for release, path in releases.values()]
    for stem, sentence in faults:
        name = f"{stem}.file" if stem in releases else stem  # never in another release's place
        dags.append(configuration_error_dag(name, sentence))
    return {dag.dag_id: dag for dag in dags}


def _readable(
    settings: Settings, faults: list[tuple[str, str]]
) -> Iterator[tuple[Path, ReleaseConfig]]:
    for path in list_release_files(settings.config_dir):
        try:
            release = load_checked(path, settings.config_dir).release
            require_destination(release, settings, file_label(path))
            yield path, release
        except CuSynError as error:
            faults.append((path.stem, str(error)))


def _is_copy(found: tuple[Path, ReleaseConfig]) -> tuple[bool, str]:
    path, release = found
    return path.stem != release.release, path.name


def _declared_twice(file: str, release: str, other: str) -> str:
    return (
        f"releases/{file}: release: {release!r} is already declared in releases/{other}; "
        "give it another name"
    )


def release_dag(release: ReleaseConfig, path: Path) -> DAG:
    """Return the DAG of one release file."""
    request = {"file": path.name, "period": PERIOD}
    with DAG(
        dag_id=f"release__{release.release}",
        description=release.title or f"Synthetic release of {release.dataset}",
        doc_md=_doc(release),
        schedule=_schedule(release),
        start_date=START,
        catchup=False,
        max_active_runs=1,
        default_args=DEFAULT_ARGS,
        tags=[TAG, "release", release.dataset],
        params={
            "period": Param(
                None,
                type=["null", "string"],
                description="Only for a run without a logical date: the period it releases, "
                "e.g. 1994-12-31.",
            )
        },
    ) as dag:
        pipeline(request, release_name=release.release, approval=release.approval == "required")
    return dag


def pipeline(request: dict[str, Any], *, release_name: str, approval: bool = False) -> None:
    """Chain the six stages inside the DAG at hand, with an approval before the last if declared."""
    load = LoadOperator(task_id="load", request=request)
    validate = ValidateOperator(task_id="validate", request=request)
    budget = BudgetEvalOperator(task_id="budget_eval", request=request)
    synthesize = SynthesizeOperator(task_id="synthesize", request=request)
    quality = QualityCheckOperator(task_id="quality_check", request=request)
    asset = Asset(name=f"release/{release_name}", uri=f"cusyn://releases/{release_name}")
    publish = PublishOperator(task_id="publish", request=request, outlets=[asset])
    _ = load >> validate >> budget >> synthesize >> quality
    _ = quality >> _approval(request) >> publish if approval else quality >> publish


def _approval(request: dict[str, Any]) -> BaseOperator:
    from cusyn_airflow.operators.approval import ReleaseApprovalOperator

    return ReleaseApprovalOperator(task_id="approve", request=request)


def configuration_error_dag(stem: str, sentence: str) -> DAG:
    """Return the DAG that stands in for a broken release file, its page and task saying why."""
    with DAG(
        dag_id=f"release__{stem}",
        description=sentence,
        doc_md=f"**This release cannot run.** {sentence}",
        schedule=None,
        start_date=START,
        catchup=False,
        tags=[TAG, "release", "configuration-error"],
    ) as dag:
        ConfigurationErrorOperator(task_id="configuration_error", sentence=sentence)
    return dag


def _schedule(release: ReleaseConfig) -> Any:
    if isinstance(release.schedule, ScheduleDates):
        return ReleaseDatesTimetable([date.isoformat() for date in release.schedule.dates])
    return release.schedule


def _doc(release: ReleaseConfig) -> str:
    interest = ", ".join(" × ".join(query) for query in release.interest) or "none"
    return (
        f"{release.description or ''}\n\n"
        f"Releases a synthetic version of **{release.dataset}** by `{release.mechanism}`, asking "
        f"epsilon {release.epsilon} in the name of **{release.requester}** "
        f"(smaller is more private). Interest queries: {interest}.\n"
    )
