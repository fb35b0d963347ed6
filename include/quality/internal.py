"""Exact comparison with the original table, for public or consented data only.

Un-noised quality figures are statements about the people in a table: of data the ledger protects
they must not exist, on any screen. This module refuses every dataset and every population that is
registered, and everything that the caller does not declare public. Nothing it returns goes into a
report or a package; all of it carries the mark `internal`.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from include.quality.checks import QualityError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from include.config.datasets import DatasetConfig
    from include.data.schema import Schema

MARK = "internal"


class ProtectedDataError(QualityError):
    """Exact figures were asked for about data that the ledger protects.

    Privacy: ledger only.
    """


@dataclass(frozen=True)
class ExactError:
    """Exact distance of one marginal of the synthetic table from the original.

    Privacy: reads raw data (public or consented data only).
    """

    clique: tuple[str, ...]
    tv: float  # total variation, 0 to 1


@dataclass(frozen=True)
class InternalEvaluation:
    """Exact figures; never to be published.

    Privacy: reads raw data (public or consented data only).
    """

    original_rows: int
    synthetic_rows: int
    columns: tuple[ExactError, ...]
    pairs: tuple[ExactError, ...]
    interest: tuple[ExactError, ...]

    @property
    def mean_pair_tv(self) -> float:
        """Mean distance over all pairs of columns; 0 for a single column."""
        return sum(p.tv for p in self.pairs) / len(self.pairs) if self.pairs else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-safe values, every one under the mark."""

        def plain(errors: Sequence[ExactError]) -> list[dict[str, Any]]:
            return [{"columns": list(e.clique), "tv": e.tv} for e in errors]

        return {
            "mark": MARK,
            "original_rows": self.original_rows,
            "synthetic_rows": self.synthetic_rows,
            "mean_pair_tv": self.mean_pair_tv,
            "columns": plain(self.columns),
            "pairs": plain(self.pairs),
            "interest": plain(self.interest),
        }

    def to_text(self) -> str:
        """Return the figures as lines, the largest errors first."""
        lines = [
            "INTERNAL: exact figures about the original rows; do not publish any of them.",
            f"rows: {self.original_rows} original, {self.synthetic_rows} synthetic",
            f"mean distance over {len(self.pairs)} pairs: {self.mean_pair_tv:.4f}",
        ]
        for title, errors in (("interest", self.interest), ("column", self.columns)):
            lines += [f"{title} {_name(e)}: {e.tv:.4f}" for e in errors]
        worst = sorted(self.pairs, key=lambda e: -e.tv)[:10]
        lines += [f"pair {_name(e)}: {e.tv:.4f}" for e in worst]
        return "\n".join(lines)


def internal_evaluation(
    dataset: DatasetConfig,
    original: pd.DataFrame,
    synthetic: pd.DataFrame,
    *,
    registered_datasets: Collection[str],
    registered_populations: Collection[str],
    declared_public: bool,
    interest: Sequence[tuple[str, ...]] = (),
) -> InternalEvaluation:
    """Compare a synthetic table with its original, exactly.

    Args:
        dataset: the declaration of the original.
        original: its rows.
        synthetic: the synthetic rows.
        registered_datasets: names the ledger knows.
        registered_populations: populations the ledger protects; a copy under another name is of
            the same people.
        declared_public: the caller states that the table is public or everybody in it agreed.
        interest: queries to list apart.

    Returns:
        Exact total variation of every column, every pair and every interest query.

    Raises:
        ProtectedDataError: the data are registered, or not declared public.

    Privacy: reads raw data (public or consented data only).
    """
    refuse_protected(dataset, registered_datasets, registered_populations, declared_public)
    from include.data.encode import encode
    from include.data.schema import Schema

    schema = Schema.from_config(dataset)
    a, b = encode(original, schema), encode(synthetic, schema)
    names = list(schema.domain)

    def exact(cliques: Sequence[tuple[str, ...]]) -> tuple[ExactError, ...]:
        return tuple(ExactError(c, _distance(a, b, schema, c)) for c in cliques)

    return InternalEvaluation(
        len(a),
        len(b),
        exact([(name,) for name in names]),
        exact(list(itertools.combinations(names, 2))),
        exact(list(interest)),
    )


def refuse_protected(
    dataset: DatasetConfig,
    registered_datasets: Collection[str],
    registered_populations: Collection[str],
    declared_public: bool,
) -> None:
    """Refuse data that the ledger protects; called before any row is read.

    Raises:
        ProtectedDataError: the data are registered, or not declared public.

    Privacy: ledger only.
    """
    if dataset.dataset in registered_datasets:
        raise ProtectedDataError(
            f"{dataset.dataset} is registered in the ledger: exact figures about it are refused; "
            "the report of each release states its errors from the noise."
        )
    protected = sorted(set(dataset.populations) & set(registered_populations))
    if protected:
        raise ProtectedDataError(
            f"{dataset.dataset} is about {protected[0]}, a population the ledger protects: exact "
            "figures about it are refused under any name."
        )
    if not declared_public:
        raise ProtectedDataError(
            f"{dataset.dataset} is not declared public; state that it is only if the table is "
            "already published or everybody in it has agreed."
        )


def _distance(a: NDArray[Any], b: NDArray[Any], schema: Schema, clique: tuple[str, ...]) -> float:
    import numpy as np

    first, second = _share(a, schema, clique), _share(b, schema, clique)
    if not len(a) or not len(b):
        return 0.0 if len(a) == len(b) else 1.0
    return float(0.5 * np.abs(first - second).sum())


def _share(codes: NDArray[Any], schema: Schema, clique: tuple[str, ...]) -> NDArray[np.float64]:
    import numpy as np

    names = list(schema.domain)
    index, cells = np.zeros(len(codes), dtype=np.int64), 1
    for name in clique:
        size = schema.domain[name]
        index = index * size + codes[:, names.index(name)]
        cells *= size
    return np.bincount(index, minlength=cells) / max(1, len(codes))


def _name(error: ExactError) -> str:
    return " x ".join(error.clique)
