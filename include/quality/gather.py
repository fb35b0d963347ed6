"""Facts from what the other rooms hand over: schema, plan, transcript, declarations.

Only public attributes are read, and nothing is computed: this is the one place that knows the
names on both sides.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from include.accounting import format_amount
from include.quality.facts import (
    ColumnBinsFacts,
    ColumnFacts,
    DatasetFacts,
    InterestQuery,
    Measurement,
    PrivateBins,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from include.accounting import Cost
    from include.config.datasets import DatasetConfig
    from include.data.schema import Column, Schema
    from include.synthesis.bins import ColumnBins
    from include.synthesis.errors import InterestError
    from include.synthesis.plan import Plan
    from include.synthesis.transcript import Transcript

NO_VALUE = "(no value)"
"""How the level of empty cells is called in plots."""


def columns_from(schema: Schema, bins: Sequence[ColumnBins] = ()) -> tuple[ColumnFacts, ...]:
    """Describe the released columns, surrogates included, in the order of the synthetic table.

    Args:
        schema: the schema the table was decoded with.
        bins: the columns whose bins were selected privately; their cells are these bins.

    Returns:
        One entry per column of the table.

    Privacy: post-processing (declarations only).
    """
    modelled = {column.name: _column(column) for column in schema.columns}
    modelled |= {item.column: _in_bins(modelled[item.column], item) for item in bins}
    return tuple(modelled.get(name) or _surrogate(name) for name in schema.output)


def _in_bins(column: ColumnFacts, bins: ColumnBins) -> ColumnFacts:
    return replace(
        column,
        cells=(*bin_labels(column.cells, bins), *column.cells[bins.grid :]),
        domain_source=(
            f"bounds and a grid of {bins.grid} levels declared by the data steward; the edges of "
            f"{len(bins.edges)} bins selected from it privately, and paid for by this release"
        ),
    )


def bin_labels(levels: Sequence[str], bins: ColumnBins) -> tuple[str, ...]:
    """Name bins by the first and the last declared level inside.

    Args:
        levels: labels of the declared levels, in code order, such as "17 to 20" or "1994".
        bins: the bins of the column.

    Returns:
        One label a bin.

    Privacy: post-processing.
    """
    found = []
    for low, high in zip(bins.edges, bins.ends, strict=True):
        first, last = levels[low].split(" to ")[0], levels[high - 1].split(" to ")[-1]
        found.append(first if first == last else f"{first} to {last}")
    return tuple(found)


def codes_in_bins(codes: NDArray[Any], schema: Schema, bins: Sequence[ColumnBins]) -> NDArray[Any]:
    """Gather the codes of synthetic rows in bins.

    Args:
        codes: shape (rows, columns), declared cells, columns in schema order.
        schema: the schema the table was decoded with.
        bins: the columns to gather.

    Returns:
        Codes of the same shape.

    Privacy: post-processing (of synthetic rows).
    """
    import numpy as np

    found = codes.copy()
    order = list(schema.domain)
    for item in bins:
        place = order.index(item.column)
        found[:, place] = np.asarray(item.gathered)[codes[:, place]]
    return found


def private_bins_from(schema: Schema, bins: Sequence[ColumnBins], paid: Cost) -> PrivateBins | None:
    """State which bins were selected privately, and their price; None where none were.

    Args:
        schema: the declared schema.
        bins: as the transcript tells them.
        paid: composed cost of the selections of edges.

    Returns:
        The statement.

    Privacy: post-processing.
    """
    if not bins:
        return None
    levels = {column.name: column.levels for column in schema}
    pure = paid.epsilon_pure_pico
    return PrivateBins(
        columns=tuple(
            ColumnBinsFacts(
                column=item.column,
                bins=bin_labels(levels[item.column], item),
                grid=f"{item.grid} declared levels, {levels[item.column][0]} first",
                selected=item.answered,
            )
            for item in bins
        ),
        rho=format_amount(paid.rho_pico),
        epsilon_pure=None if pure is None else format_amount(pure),
    )


def _column(column: Column) -> ColumnFacts:
    labels = [
        NO_VALUE if code == column.null_code else label for code, label in enumerate(column.levels)
    ]
    values = tuple(label for code, label in enumerate(column.levels) if code != column.null_code)
    config = column.config
    bounded = column.type in ("integer", "float")
    return ColumnFacts(
        name=column.name,
        type=column.type,
        cells=tuple(labels),
        nullable=column.nullable,
        values=values if column.type == "category" else None,
        minimum=str(getattr(config, "min", None)) if bounded else None,
        maximum=str(getattr(config, "max", None)) if bounded else None,
        description=config.description or "",
        decimals=getattr(config, "decimals", None),
    )


def _surrogate(name: str) -> ColumnFacts:
    return ColumnFacts(
        name,
        "key",
        (),
        description="A running number of the synthetic row; it stands for nobody.",
        domain_source="numbered per synthetic row; not derived from any real key",
    )


def measurements_from(transcript: Transcript) -> tuple[Measurement, ...]:
    """List the noisy marginals of a sealed transcript.

    Privacy: post-processing.
    """
    return tuple(
        Measurement(m.clique, m.sigma, m.counts, m.label, turn.number)
        for turn in transcript.rounds
        for m in turn.marginals
    )


def interest_from(errors: Sequence[InterestError], plan: Plan) -> tuple[InterestQuery, ...]:
    """Pair the error of each interest query with what its plan predicted.

    Args:
        errors: from the noise of the transcript.
        plan: the plan that was run.

    Returns:
        The queries in the order of `errors`.

    Privacy: post-processing.
    """
    predicted = {prediction.clique: prediction for prediction in plan.predictions}
    queries = []
    for error in errors:
        known = predicted.get(error.clique)
        queries.append(
            InterestQuery(
                error.clique,
                error.sigma,
                error.typical_tv,
                error.bound95_tv,
                known.expected_tv if known else None,
                known.warning if known else "",
            )
        )
    return tuple(queries)


def dataset_from(config: DatasetConfig) -> DatasetFacts:
    """Describe the dataset in the steward's words.

    Privacy: ledger only.
    """
    licence = config.licence or ""
    return DatasetFacts(
        name=config.dataset,
        title=config.title or "",
        description=config.description or "",
        licence="" if licence.startswith("http") else licence,
        licence_url=licence if licence.startswith("http") else "",
        citation=config.citation or "",
        publisher=config.publisher or "",
        contact=config.contact or "",
        populations=tuple(config.populations),
    )
