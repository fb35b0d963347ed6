"""From an Airflow context to a `ReleaseRun`: the only place where one becomes the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cusyn_airflow.lineage import lineage
from include.settings import load_settings

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.config.requests import ReleaseConfig
    from include.stages.run import ReleaseRun

# Runs that Airflow itself makes because the release's own schedule says so.
SCHEDULED_RUN_TYPES = {"scheduled", "asset_triggered"}

# `dag.test()` runs in the process of whoever has a shell on the machine and authenticates nobody;
# budgets.yaml calls that person `local`.
LOCAL_ACTOR = "local"

# Names with a meaning of their own in budgets.yaml or in the journal: somebody who logs in to
# Airflow under one of them gets none of its rights.
NOT_A_USER = {LOCAL_ACTOR, "dag_test", "scheduler", "unknown"}


def release_run(request: dict[str, Any], context: Context) -> ReleaseRun:
    """Read the declarations the request names and join them with the run's own facts.

    Args:
        request: rendered `request` of an operator.
        context: the running task's context.

    Raises:
        ConfigError: naming file, key and fix.

    Privacy: ledger only.
    """
    from include.config.loader import load_budgets, load_dataset
    from include.stages.run import ReleaseRun

    config_dir = load_settings().config_dir
    release = read_release(request, config_dir)
    dataset = load_dataset(release.dataset, config_dir)
    dag_run, ti = context["dag_run"], context["ti"]
    scheduled = _is_scheduled(dag_run)
    return ReleaseRun(
        release=release,
        dataset=dataset,
        budgets=load_budgets(config_dir),
        period=str(request["period"]).strip(),
        actor=_actor(dag_run.triggering_user_name, scheduled),
        scheduled=scheduled,
        dag_id=ti.dag_id,
        run_id=ti.run_id,
        map_index=-1 if ti.map_index is None else ti.map_index,
        attempt=ti.try_number,
        is_alive=lambda dag_id, run_id: (
            ti.get_dr_count(dag_id=dag_id, run_ids=[run_id], states=["queued", "running"]) > 0
        ),
        lineage=lineage(release, dataset),
    )


def read_release(request: dict[str, Any], config_dir: Path) -> ReleaseConfig:
    """Return the release a request names: a file of the steward's, or the fields of the form.

    Raises:
        ConfigError: naming file or form field, and the fix.
        PeriodError: the run's period is no usable name, or none of the release's dates.

    Privacy: ledger only.
    """
    from include.config.errors import ConfigError, quoted
    from include.config.loader import load_checked, parse_request
    from include.stages.period import check_period, for_period

    period = check_period(str(request["period"]).strip())
    if "form" in request:
        return parse_request(_filled_form(request["form"]), config_dir)
    file = str(request["file"])
    if Path(file).name != file:
        raise ConfigError("request", "file", f"{quoted(file)} is a path; name a file of releases/")
    release = load_checked(config_dir / "releases" / file, config_dir).release
    return for_period(release, period)


def is_dry_run(request: dict[str, Any]) -> bool:
    """Tell whether a manual request only wants to know what it would cost.

    Privacy: ledger only.
    """
    return bool(json.loads(request.get("form", {}).get("dry_run", "false")))


def _filled_form(form: dict[str, str]) -> dict[str, Any]:
    """Read the form's JSON texts back and give the release its name, place and partition."""
    fields = {name: json.loads(text) for name, text in form.items()}
    column, value = fields.pop("partition_column"), fields.pop("partition_value")
    if column or value:
        fields["partition"] = {"column": column or "", "value": value or ""}
    for fact_of_the_run in ("period", "dry_run"):
        fields.pop(fact_of_the_run)
    return fields | {
        "release": f"manual_{fields['dataset']}",
        "publish": {"uri": load_settings().releases_uri},
    }


def acting_user(context: Context) -> str:
    """Return who made the run, as Airflow authenticated them.

    Privacy: ledger only.
    """
    dag_run = context["dag_run"]
    return _actor(dag_run.triggering_user_name, _is_scheduled(dag_run))


def _is_scheduled(dag_run: Any) -> bool:
    """Tell whether Airflow itself made the run from its DAG's schedule."""
    return getattr(dag_run.run_type, "value", str(dag_run.run_type)) in SCHEDULED_RUN_TYPES


def _actor(triggering_user: str | None, scheduled: bool) -> str:
    """Return who asked, as Airflow authenticated them; the run's conf is never consulted."""
    in_process = _in_process()
    if in_process and triggering_user == "dag_test":
        return LOCAL_ACTOR
    if not in_process and triggering_user in NOT_A_USER:
        # An Airflow user of such a name is nobody's stand-in.
        return f"{triggering_user} (Airflow user)"
    return triggering_user or ("scheduler" if scheduled else "unknown")


def _in_process() -> bool:
    """Tell whether this task runs in the process of whoever started it, as in `dag.test()`."""
    from airflow.sdk.execution_time import task_runner

    comms = getattr(task_runner, "SUPERVISOR_COMMS", None)
    return type(comms).__name__ == "InProcessSupervisorComms"
