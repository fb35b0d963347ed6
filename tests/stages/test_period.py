"""One period, one part of the data: dates, templates, faults."""

from __future__ import annotations

import pytest

from include.stages.period import PeriodError, check_period, for_period


def release_with(make_run, value: str, *, dates: bool = True):
    release = make_run().release
    partition = release.partition.model_copy(update={"value": value})
    schedule = release.schedule if dates else None
    return release.model_copy(update={"partition": partition, "schedule": schedule})


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("2001", "2001"),
        ("{{ logical_date.year }}", "2001"),
        ("{{ ds }}", "2001-12-31"),
        ("y{{ period[:4] }}", "y2001"),
    ],
)
def test_the_partition_follows_from_the_period_alone(make_run, template, value):
    release = for_period(release_with(make_run, template), "2001-12-31")
    assert release.partition.value == value


@pytest.mark.parametrize("period", ["", "2001-12-30", "december"])
def test_a_period_that_is_none_of_the_dates_is_refused_with_the_dates(make_run, period):
    with pytest.raises(PeriodError, match="2001-12-31, 2002-12-31, 2003-12-31"):
        for_period(make_run().release, period)


@pytest.mark.parametrize(
    "template",
    [
        "{{ logical_date.year }}",
        "{{ nothing }}",
        "{{",
        "{{ ''.__class__.mro() }}",
        "{{ 1/0 }}",
        "{{ lipsum() }}",
    ],
)
def test_a_template_that_does_not_fit_is_one_sentence(make_run, template):
    release = release_with(make_run, template, dates=False)
    with pytest.raises(PeriodError, match="cannot be filled in for period 'december'"):
        for_period(release, "december")


@pytest.mark.parametrize(
    "period", ["1994-12-31", "2026-Q4", "spring", "2026-11-30T1430", "v1.2_b", "7", "x" * 64, ""]
)
def test_a_plain_name_is_a_period(period):
    assert check_period(period) == period


@pytest.mark.parametrize(
    "period",
    [
        "2026-11-30T14:00",
        "a b",
        "a/b",
        "../up",
        "-a",
        "a.",
        "été",
        "２０２６",
        "<b>1</b>",
        "a\nb",
        "a\u202eb",
        "x" * 65,
    ],
)
def test_another_mark_in_a_period_is_refused_in_one_printable_line(period):
    with pytest.raises(PeriodError, match="use at most 64 letters") as refused:
        check_period(period)
    assert str(refused.value).isprintable() and str(refused.value).isascii()
