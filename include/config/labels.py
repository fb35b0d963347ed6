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
    count_periods,
)


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
    moment = _floor(moment, config.resolution)
    starts = []
    for _ in range(count_periods(config.min, config.max, config.resolution)):
        starts.append(moment)
        moment = _next(moment, config.resolution)
    return starts


def _floor(moment: dt.datetime, resolution: str) -> dt.datetime:
    if resolution == "minute":
        return moment.replace(second=0, microsecond=0)
    if resolution == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    day = dt.datetime(moment.year, moment.month, moment.day)
    if resolution == "day":
        return day
    month = {"month": moment.month, "quarter": (moment.month - 1) // 3 * 3 + 1, "year": 1}
    return day.replace(month=month[resolution], day=1)


def _next(moment: dt.datetime, resolution: str) -> dt.datetime:
    step = {"minute": dt.timedelta(minutes=1), "hour": dt.timedelta(hours=1)}
    if resolution in step or resolution == "day":
        return moment + step.get(resolution, dt.timedelta(days=1))
    months = (
        moment.year * 12 + moment.month - 1 + {"month": 1, "quarter": 3, "year": 12}[resolution]
    )
    return dt.datetime(months // 12, months % 12 + 1, 1)


def period_label(moment: dt.datetime, resolution: str) -> str:
    """Return a period's name: 2024, 2024-Q2, 2024-05, 2024-05-31 or 2024-05-31T14:00.

    Privacy: ledger only (declared text).
    """
    if resolution == "year":
        return f"{moment.year}"
    if resolution == "quarter":
        return f"{moment.year}-Q{(moment.month - 1) // 3 + 1}"
    if resolution in ("month", "day"):
        return moment.strftime("%Y-%m" if resolution == "month" else "%Y-%m-%d")
    return moment.strftime("%Y-%m-%dT%H:%M")
