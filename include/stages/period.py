"""A release file applied to one period: its dates are checked, its partition is filled in.

The partition follows from the period alone, never from when or how the run was started: one period,
one part of the data.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from typing import TYPE_CHECKING

from include.errors import CuSynError

if TYPE_CHECKING:
    from include.config.requests import ReleaseConfig


# A period is a folder, a part of the release id and a name in sentences: no mark in it may need
# another spelling there. A moment is written 2026-11-30T14 or 2026-11-30T1430.
PERIOD_PATTERN = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,62}[A-Za-z0-9])?"


class PeriodError(CuSynError):
    """The period named for a run does not fit its release."""


def check_period(period: str) -> str:
    """Return a period's name, or refuse it; none at all is for the stages to judge.

    Args:
        period: e.g. `1994-12-31`, `2026-Q4` or `spring`.

    Raises:
        PeriodError: it holds another character, or is too long.

    Privacy: ledger only.
    """
    if period and not re.fullmatch(PERIOD_PATTERN, period):
        raise PeriodError(
            f"period {_shown(period)}: use at most 64 letters (a-z), digits, '.', '_' and '-', "
            "with a letter or digit first and last, such as 2026-11-30 or 2026-Q4"
        )
    return period


def _shown(period: str) -> str:
    """Quote the start of a name, with what would break a line or hide written out."""
    return ascii(period if len(period) <= 40 else period[:40] + "...")


def for_period(release: ReleaseConfig, period: str) -> ReleaseConfig:
    """Check a period against the schedule's dates and fill in the partition's value.

    Args:
        release: the release file.
        period: e.g. `1994-12-31`.

    Returns:
        The release with its partition's value for this period. In the file it may be a template
        over `period`, `ds` and, where the period is a date, `logical_date`.

    Raises:
        PeriodError: the period is none of the declared dates, or the template does not fit it.

    Privacy: ledger only.
    """
    dates = getattr(release.schedule, "dates", None)
    if dates is not None and period not in {date.isoformat() for date in dates}:
        known = ", ".join(date.isoformat() for date in dates)
        raise PeriodError(
            f"release {release.release}: period {period or '(none)'} is none of its dates "
            f"({known}); trigger it with one of them as logical date or period"
        )
    if release.partition is None or "{" not in release.partition.value:
        return release
    value = _fill(release, release.partition.value, period)
    if not value.strip():
        raise PeriodError(
            f"release {release.release}: partition.value {release.partition.value!r} is empty for "
            f"period {period!r}; correct the template"
        )
    partition = release.partition.model_copy(update={"value": value})
    return release.model_copy(update={"partition": partition})


def _fill(release: ReleaseConfig, template: str, period: str) -> str:
    from jinja2 import StrictUndefined, TemplateError
    from jinja2.sandbox import SandboxedEnvironment

    names: dict[str, object] = {"period": period, "ds": period}
    with contextlib.suppress(ValueError):  # a template that needs the date then says so below
        names["logical_date"] = dt.datetime.fromisoformat(period)
    environment = SandboxedEnvironment(undefined=StrictUndefined)
    environment.globals.clear()  # no lipsum, no range: the value follows from the period alone
    environment.filters.pop("random", None)
    try:
        return environment.from_string(template).render(names)
    except Exception as fault:
        why = str(fault) if isinstance(fault, TemplateError) else type(fault).__name__
    raise PeriodError(
        f"release {release.release}: partition.value {template!r} cannot be filled in for "
        f"period {period!r} ({why}); use logical_date only with periods that are dates"
    )
