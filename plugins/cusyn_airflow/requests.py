"""From an Airflow context to a `ReleaseRun`: the only place where one becomes the other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.settings import load_settings

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.config.models import ReleaseConfig
    from include.stages.run import ReleaseRun

# Runs that Airflow itself makes because the release's own schedule says so.
SCHEDULED_RUN_TYPES = {"scheduled", "asset_triggered"}


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
    from include.config.models import ReleaseConfig
    from include.stages.run import ReleaseRun

    settings = load_settings()
    release = read_release(request, settings.config_dir)
    dag_run, ti = context["dag_run"], context["ti"]
    run_type = getattr(dag_run.run_type, "value", str(dag_run.run_type))
    return ReleaseRun(
        release=release,
        dataset=load_dataset(release.dataset, settings.config_dir),
        budgets=load_budgets(settings.config_dir),
        period=str(request["period"]).strip(),
        actor=dag_run.triggering_user_name
        or ("scheduler" if run_type in SCHEDULED_RUN_TYPES else "unknown"),
        scheduled=run_type in SCHEDULED_RUN_TYPES,
        dag_id=ti.dag_id,
        run_id=ti.run_id,
        map_index=ti.map_index if ti.map_index is not None else -1,
        attempt=ti.try_number,
    )


def read_release(request: dict[str, Any], config_dir: Path) -> ReleaseConfig:
    """Return the release a request names: a file of the steward's, or the fields of the form.

    Raises:
        ConfigError: naming file or form field, and the fix.

    Privacy: ledger only.
    """
    from include.config.loader import load_release, parse_request

    if "form" in request:
        return parse_request(request["form"], config_dir)
    release = load_release(config_dir / "releases" / request["file"])
    if release.partition is None:
        return release
    # The partition's value may be a template over the run ("{{ logical_date.year }}"): Airflow
    # rendered it as part of the operator's request.
    rendered = release.partition.model_copy(update={"value": request["partition_value"]})
    return release.model_copy(update={"partition": rendered})
