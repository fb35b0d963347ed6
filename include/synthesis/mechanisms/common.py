"""Rules that mechanisms share: which marginals are candidates, what fits, interest rounds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from include.accounting import Event, Gaussian, compose
from include.synthesis.mechanisms.base import Step
from include.synthesis.plan import Plan, PlanError, predict, sigma_within
from include.synthesis.spending import OpenRound
from include.synthesis.task import MAX_CANDIDATES, Clique, SynthesisTask, TaskError

WORST_INTEREST_PART = Fraction(1, 16)
"""After interruptions an interest query is measured on no less than this part of its budget."""


CELL_BYTES = 8
"""A count, or a modelled count, of one cell."""

WORKLOAD_PER_MODEL = 2
"""The workload's marginals are all counted; together they may be so many times the model's size."""


def noise_l1(sigma: float, cells: int) -> float:
    """Expect the L1 norm of Gaussian noise on a marginal.

    Args:
        sigma: Noise scale of each cell, in rows.
        cells: Number of cells.

    Returns:
        sigma cells sqrt(2 / pi), in rows.

    Privacy: ledger only.
    """
    return math.sqrt(2 / math.pi) * sigma * cells


def check_fits(task: SynthesisTask, max_model_mb: float) -> None:
    """Refuse interest queries that no model within the memory bound holds, and too wide a workload.

    Args:
        task: The task.
        max_model_mb: Memory bound of the model's tables.

    Raises:
        PlanError: With the size needed and the size allowed.

    Privacy: ledger only.
    """
    from include.synthesis.estimation import ModelSizer

    singles = [(column,) for column in task.domain]
    sizer = ModelSizer(task.domain, singles)
    if sizer.size_mb > max_model_mb:
        raise PlanError(
            f"columns: the columns alone need {_megabytes(sizer.size_mb)} MB and max_model_mb is "
            f"{max_model_mb:g}; use coarser bins."
        )
    for query in task.interest:
        alone = sizer.size_with_mb(query)
        if alone > max_model_mb:
            raise PlanError(
                f"interest: {' x '.join(query)} has {task.cells(query)} cells; a model with it "
                f"needs {_megabytes(alone)} MB and max_model_mb is {max_model_mb:g}; use coarser "
                "bins or fewer columns."
            )
    together = ModelSizer(task.domain, [*singles, *task.interest]).size_mb
    if together > max_model_mb:
        raise PlanError(
            f"interest: a model that holds all {len(task.interest)} queries needs "
            f"{_megabytes(together)} MB and max_model_mb is {max_model_mb:g}; ask for fewer."
        )
    _check_workload_fits(task, max_model_mb)


def _check_workload_fits(task: SynthesisTask, max_model_mb: float) -> None:
    needed = sum(task.cells(clique) for clique, _ in task.workload) * CELL_BYTES / 1e6
    allowed = WORKLOAD_PER_MODEL * max_model_mb
    if needed > allowed:
        raise PlanError(
            f"workload: its {len(task.workload)} marginals need {_megabytes(needed)} MB together "
            f"and {allowed:g} MB are allowed, twice max_model_mb; name fewer or smaller ones, "
            "'all 2-way' for example, or use coarser bins."
        )


def workload_candidates(task: SynthesisTask, max_model_mb: float) -> list[Clique]:
    """List the workload's marginals that selection may choose from.

    Args:
        task: The task.
        max_model_mb: Memory bound of the model's tables.

    Returns:
        Marginals that fit the bound beside the interest queries, without these.

    Privacy: ledger only.
    """
    from include.synthesis.estimation import ModelSizer

    interest = set(task.interest)
    open_cliques = [clique for clique, _ in task.workload if clique not in interest]
    if not open_cliques:
        return []
    sizer = ModelSizer(task.domain, [*((column,) for column in task.domain), *task.interest])
    sizes = sizer.sizes_with_mb(open_cliques)
    return [
        clique for clique, size in zip(open_cliques, sizes, strict=True) if size <= max_model_mb
    ]


def interest_step(
    queries: Sequence[Clique], sigma: float, max_rows: int, left: Fraction
) -> Step | None:
    """Name the round of the next interest query.

    After an interruption, when the planned noise scale is no longer affordable for all open
    queries, they share what is left equally.

    Args:
        queries: Interest queries not yet measured, in order, at least one.
        sigma: Planned noise scale in rows.
        max_rows: Rows one privacy unit may own.
        left: Exact rho that these queries may spend.

    Returns:
        The step, or None where hardly anything is left to measure with.

    Privacy: post-processing.
    """
    planned = Gaussian(sigma, max_rows, "interest")
    event = planned
    if planned.rho * len(queries) > left:
        if left < planned.rho * WORST_INTEREST_PART * len(queries):
            return None
        event = Gaussian(sigma_within(left, len(queries), max_rows), max_rows, "interest")
    return measure_step("interest", queries[:1], (event,))


def measure_step(label: str, cliques: Sequence[Clique], events: tuple[Event, ...]) -> Step:
    """Name a round that measures given marginals, one event each.

    Privacy: post-processing.
    """

    def run(turn: OpenRound) -> None:
        for clique in cliques:
            turn.measure(clique, label)

    return Step(label, events, run)


def _megabytes(size: float) -> str:
    return f"{size:.3g}" if size < 1e6 else f"{size:.1e}"


def downward_closure(task: SynthesisTask) -> dict[Clique, float]:
    """List every part of the workload's marginals with its weight.

    Args:
        task: The task.

    Returns:
        Weight by marginal: the sum over the workload of weight x columns in common.

    Raises:
        TaskError: There are more candidates than a round can score.

    Source: McKenna, Mullins, Sheldon and Miklau 2022 (AIM), section 4.

    Privacy: ledger only.
    """
    parts: dict[Clique, None] = {}
    for clique, _ in task.workload:
        for size in range(1, len(clique) + 1):
            parts.update(dict.fromkeys(itertools.combinations(clique, size)))
        if len(parts) > MAX_CANDIDATES:
            raise TaskError(
                f"workload: its marginals and their parts are over {MAX_CANDIDATES}; list fewer."
            )
    # Columns in common add up over the columns of a part, so one sum a column is enough.
    by_column = dict.fromkeys(task.domain, 0.0)
    for clique, weight in task.workload:
        for column in clique:
            by_column[column] += weight
    return {part: sum(by_column[column] for column in part) for part in parts}


def plan_of(
    mechanism: str,
    task: SynthesisTask,
    epsilon_pico: int,
    delta_exponent: int,
    parameters: dict[str, Any],
    events: tuple[Event, ...],
) -> Plan:
    """Compose a plan's events and predict its interest queries from their noise.

    Args:
        mechanism: Registered name.
        task: What is asked for.
        epsilon_pico: Granted epsilon in units of 1e-12.
        delta_exponent: N of delta = 1e-N.
        parameters: The mechanism's settings, `sigma_interest` among them.
        events: Everything the plan does to the data.

    Returns:
        The plan.

    Privacy: ledger only.
    """
    cost = compose(events)
    return Plan(
        mechanism=mechanism,
        task=task,
        epsilon_pico=epsilon_pico,
        delta_exponent=delta_exponent,
        parameters=parameters,
        events=events,
        cost=cost,
        predictions=tuple(
            predict(task, query, parameters["sigma_interest"], cost, delta_exponent)
            for query in task.interest
        ),
    )
