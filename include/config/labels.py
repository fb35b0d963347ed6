"""The levels of a column as a person reads them: values, bins and periods."""

from __future__ import annotations

import datetime as dt
import itertools

from include.config.columns import (
    BooleanColumn,
    CategoryColumn,
    ColumnConfig,
    DateColumn,
    DateTimeColumn,
    FloatColumn,
    IntegerColumn,
)
from include.config.periods import count_periods, next_period, period_begin, period_label


def level_labels(config: ColumnConfig) -> list[str]:
    """Return the declared levels of a column as text, without `other` and missing.

    Raises:
        ValueError: the column is a key and has no levels.

    Privacy: ledger only.
    """
    if isinstance(config, CategoryColumn):
        return list(config.values)
    if isinstance(config, BooleanColumn):
        return ["false", "true"]
    if isinstance(config, IntegerColumn):
        return _bin_labels(config)
    if isinstance(config, FloatColumn):
        ends = [*config.lower_ends, config.max]
        return [f"{a:.12g} to {b:.12g}" for a, b in itertools.pairwise(ends)]
    if isinstance(config, DateColumn | DateTimeColumn):
        return [period_label(m, config.resolution) for m in period_starts(config)]
    raise ValueError("a key has no levels")


def _bin_labels(config: IntegerColumn) -> list[str]:
    lower = config.lower_ends
    upper = [*(end - 1 for end in lower[1:]), config.max]
    return [str(a) if a == b else f"{a} to {b}" for a, b in zip(lower, upper, strict=True)]


def period_starts(config: DateColumn | DateTimeColumn) -> list[dt.datetime]:
    """Return the first moment of each period between the declared bounds.

    Privacy: ledger only (declared text).
    """
    moment = dt.datetime(config.min.year, config.min.month, config.min.day)
    if isinstance(config.min, dt.datetime):
        moment = config.min
    moment = period_begin(moment, config.resolution)
    starts = []
    for _ in range(count_periods(config.min, config.max, config.resolution)):
        starts.append(moment)
        moment = next_period(moment, config.resolution)
    return starts
