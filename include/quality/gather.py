"""Facts from what the other rooms hand over: schema, plan, transcript, declarations.

Only public attributes are read, and nothing is computed: this is the one place that knows the
names on both sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from include.quality.facts import ColumnFacts, DatasetFacts, InterestQuery, Measurement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from include.config.datasets import DatasetConfig
    from include.data.schema import Column, Schema
    from include.synthesis.errors import InterestError
    from include.synthesis.plan import Plan
    from include.synthesis.transcript import Transcript

NO_VALUE = "(no value)"
"""How the level of empty cells is called in plots."""


def columns_from(schema: Schema) -> tuple[ColumnFacts, ...]:
    """Describe the released columns, surrogates included, in the order of the synthetic table.

    Args:
        schema: the schema the table was decoded with.

    Returns:
        One entry per column of the table.

    Privacy: post-processing (declarations only).
    """
    modelled = {column.name: column for column in schema.columns}
    return tuple(
        _column(modelled[name]) if name in modelled else _surrogate(name) for name in schema.output
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
