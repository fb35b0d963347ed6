"""From the steward's declarations to what the mechanism and the ledger are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from include.budget.models import Request
    from include.data.schema import Schema
    from include.stages.run import ReleaseRun
    from include.synthesis.task import SynthesisTask

from include.stages.run import BUDGET_TASK


def schema_of(run: ReleaseRun) -> Schema:
    """Return the public domain of the columns the release models.

    Privacy: ledger only.
    """
    from include.data.schema import Schema

    return Schema.from_config(run.dataset, run.release.columns)


def delta_exponent_of(run: ReleaseRun) -> int:
    """Return N of delta = 1e-N, the one delta all populations of a dataset share.

    Privacy: ledger only.
    """
    return next(run.budgets.populations[name].delta_exponent for name in run.dataset.populations)


def synthesis_task(run: ReleaseRun) -> SynthesisTask:
    """Return the task of the mechanism: domain, workload, interest, bounds; all of it public.

    Raises:
        TaskError: an interest query or the workload names what the schema does not have.

    Privacy: ledger only.
    """
    from include.synthesis.task import SynthesisTask

    workload = run.release.workload
    return SynthesisTask.build(
        schema_of(run).domain,
        workload=workload
        if isinstance(workload, str)
        else [query.model_dump() for query in workload],
        interest=run.release.interest,
        max_rows=run.dataset.max_rows,
        options=_options(run),
        expected_rows=run.release.rows or run.dataset.expected_rows,
        ordered=_ordered(run),
    )


def _ordered(run: ReleaseRun) -> dict[str, int]:
    """Return how many first cells of which columns are in order, where the release asks for it."""
    from include.config.columns import ORDERED_TYPES

    if "quantile_bins" not in run.release.options:
        return {}
    return {one.name: one.declared for one in schema_of(run) if one.type in ORDERED_TYPES}


def _options(run: ReleaseRun) -> dict[str, Any]:
    """Return the mechanism's options, the schema's tags among them where they matter."""
    from include.config.checks import sensitive_columns

    options: dict[str, Any] = dict(run.release.options)
    if run.release.mechanism == "csa_privbayes":
        first, *more = sensitive_columns(run.release, run.dataset) or (None,)
        options |= {"sensitive": first} | ({"also_sensitive": more} if more else {})
    return options


def budget_request(run: ReleaseRun, snapshot_id: str | None) -> Request:
    """Return what BudgetEval is asked.

    The snapshot is not part of the question: a cleared run keeps its own.

    Privacy: ledger only.
    """
    from include.budget.models import Request

    release = run.release
    return Request(
        key=run.key,
        dataset=run.dataset.dataset,
        requester=release.requester,
        actor=run.actor,
        release=release.release,
        period=run.period,
        mechanism=release.mechanism,
        epsilon_pico=release.epsilon_pico,
        accept_at_least_pico=release.accept_at_least_pico,
        parameters=_public_parameters(run),
        dag_id=run.dag_id,
        run_id=run.run_id,
        task_id=BUDGET_TASK,
        map_index=str(run.map_index),
        snapshot_id=snapshot_id,
        delta_exponent=release.delta_exponent,
        partition=partition_of(run),
    )


def partition_of(run: ReleaseRun) -> str | None:
    """Name the partition a release is confined to, as charges and snapshots name it.

    Privacy: ledger only.
    """
    from include.budget.partitions import partition_name

    chosen = run.release.partition
    return None if chosen is None else partition_name(chosen.column, chosen.value)


def _public_parameters(run: ReleaseRun) -> dict[str, Any]:
    """What, besides the amounts, makes two requests the same question."""
    task = synthesis_task(run).to_dict()
    task.pop("expected_rows")  # a guess for predictions; editing it changes no release
    return {"task": task, "approval": run.release.approval, **stated_parameters(run)}


def stated_parameters(run: ReleaseRun) -> dict[str, Any]:
    """Return what the table and the claim still take from the files after the seal.

    Privacy: ledger only.
    """
    release = run.release
    return {
        "schema": schema_of(run).digest,
        "partition": release.partition.model_dump() if release.partition else None,
        "rows": release.rows,
        "strict": run.dataset.strict,
        "what": run.dataset.privacy_unit.what,
        "unit": {
            name: [binding.id_text, binding.max_rows]
            for name, binding in run.dataset.bindings.items()
        },
    }
