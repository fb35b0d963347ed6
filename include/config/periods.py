"""Periods of one resolution: counting them, and the moments they begin at."""

from __future__ import annotations

import datetime as dt


def period_index(moment: dt.date, resolution: str) -> int:
    """Return the number of whole periods between a fixed origin and a moment.

    Args:
        moment: a date, or a datetime for the resolutions hour and minute.
        resolution: minute, hour, day, month, quarter or year.

    Privacy: ledger only.
    """
    months = moment.year * 12 + moment.month - 1
    coarse = {"month": months, "quarter": months // 3, "year": moment.year}
    if resolution in coarse:
        return coarse[resolution]
    if resolution == "day" or not isinstance(moment, dt.datetime):
        return moment.toordinal()
    hours = moment.toordinal() * 24 + moment.hour
    return hours if resolution == "hour" else hours * 60 + moment.minute


def count_periods(low: dt.date, high: dt.date, resolution: str) -> int:
    """Return how many periods two moments span, both ends counted.

    Privacy: ledger only.
    """
    return period_index(high, resolution) - period_index(low, resolution) + 1


def period_begin(moment: dt.datetime, resolution: str) -> dt.datetime:
    """Return the first moment of the period that holds a moment.

    Privacy: ledger only.
    """
    if resolution == "minute":
        return moment.replace(second=0, microsecond=0)
    if resolution == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    day = dt.datetime(moment.year, moment.month, moment.day)
    if resolution == "day":
        return day
    month = {"month": moment.month, "quarter": (moment.month - 1) // 3 * 3 + 1, "year": 1}
    return day.replace(month=month[resolution], day=1)


def next_period(moment: dt.datetime, resolution: str) -> dt.datetime:
    """Return the first moment of the period after one that begins at a moment.

    Privacy: ledger only.
    """
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
