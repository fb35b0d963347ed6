"""Bins by private quantiles: which columns get how many, and what a transcript made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from include.synthesis.bins import ColumnBins, QuantileBins, gathered_domain, settled_edges
from include.synthesis.task import SynthesisTask, TaskError

if TYPE_CHECKING:
    from include.synthesis.transcript import Round

LABEL = "bins"
"""Purpose and label of the rounds and events that select edges."""


def read_quantile_bins(
    task: SynthesisTask, options: Mapping[str, Any]
) -> tuple[SynthesisTask, dict[str, QuantileBins]]:
    """Check the option `quantile_bins`, and gather the task's cells by it.

    Args:
        task: The task, in declared cells.
        options: Its options, types and ranges checked.

    Returns:
        The task with as many cells a column as the release will measure, and the bins by column.

    Raises:
        TaskError: One sentence that names the key and the fix.

    Privacy: ledger only.
    """
    asked: Mapping[str, int] = options["quantile_bins"] or {}
    if not asked:
        if options["bin_share"] is not None:
            raise TaskError("options: bin_share needs `quantile_bins: {COLUMN: BINS}`; add it.")
        return task, {}
    wanted = {name: _checked(task, name, asked[name]) for name in task.domain if name in asked}
    for name in asked:
        if name not in wanted:
            raise TaskError(
                f"options: quantile_bins names {name!r}, which is not modelled; use one of "
                f"{', '.join(map(repr, task.ordered or task.domain))}."
            )
    return replace(task, domain=gathered_domain(task.domain, wanted)), wanted


def _checked(task: SynthesisTask, name: str, bins: int) -> QuantileBins:
    grid = task.ordered.get(name)
    if grid is None:
        raise TaskError(
            f"options: quantile_bins names {name!r}, whose levels have no order; choose a column "
            "of type integer, float, date or datetime."
        )
    if not 2 <= bins < grid:
        raise TaskError(
            f"options: quantile_bins asks for {bins} bins of {name!r}, which is declared with "
            f"{grid} levels to choose edges from; ask for 2 to {grid - 1}, or declare finer bins."
            if grid > 2
            else f"options: quantile_bins names {name!r}, which is declared with {grid} levels; "
            "declare finer bins to choose edges from, or remove it."
        )
    return QuantileBins(grid, bins)


def settled_bins(
    bins: Mapping[str, QuantileBins], domain: Mapping[str, int], rounds: Iterable[Round]
) -> tuple[ColumnBins, ...]:
    """Read the bins off the answered rounds; a column whose round was lost gets equal bins.

    Args:
        bins: What `read_quantile_bins` found.
        domain: Cells of each column of the gathered task.
        rounds: Answered rounds.

    Returns:
        The bins of each column of `quantile_bins`, in domain order.

    Privacy: post-processing.
    """
    answers = [edge for turn in rounds for edge in turn.edges]
    found = []
    for name, wanted in bins.items():
        own = [edge for column, edge in answers if column == name]
        cells = domain[name] - wanted.bins + wanted.grid
        edges = settled_edges(own, wanted)
        found.append(ColumnBins(name, wanted.grid, cells, edges, answered=bool(own)))
    return tuple(found)
