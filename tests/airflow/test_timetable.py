"""The release calendar: no date lost, none twice, whatever Airflow was doing at the time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pendulum
import pytest
from airflow.timetables.base import DataInterval, TimeRestriction

from cusyn_airflow.timetables import ReleaseDatesTimetable

DATES = ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"]
START = pendulum.datetime(1990, 1, 1, tz="UTC")


@contextmanager
def clock(now: str) -> Iterator[None]:
    """Let the timetable see this moment as the present."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pendulum, "now", lambda tz=None: day(now))
        yield


def day(text: str) -> pendulum.DateTime:
    moment = pendulum.parse(text, tz="UTC")
    assert isinstance(moment, pendulum.DateTime)
    return moment


def due(
    timetable: ReleaseDatesTimetable, now: str, last: str | None, *, catchup: bool = False
) -> str | None:
    """What the scheduler would create next, seen at `now`, after a run for `last`."""
    with clock(now):
        info = timetable.next_dagrun_info(
            last_automated_data_interval=DataInterval.exact(day(last)) if last else None,
            restriction=TimeRestriction(earliest=START, latest=None, catchup=catchup),
        )
    return None if info is None else info.run_after.to_date_string()


@pytest.mark.parametrize(
    ("now", "last", "expected"),
    [
        ("2023-12-01", None, "2024-01-31"),  # nothing has passed: the first is to come
        ("2024-01-31", None, "2024-01-31"),  # on the day
        ("2024-03-05", None, "2024-02-29"),  # unpaused late: the latest past one
        ("2024-03-05", "2024-02-29", "2024-03-31"),  # and that once
        ("2024-04-15", "2024-01-31", "2024-03-31"),  # down over two dates: the latest
        ("2024-04-15", "2024-03-31", "2024-04-30"),
        ("2030-01-01", "2024-04-30", None),  # the calendar has ended
        ("2030-01-01", None, "2024-04-30"),
    ],
)
def test_the_latest_unreleased_past_date_runs(now: str, last: str | None, expected: str) -> None:
    assert due(ReleaseDatesTimetable(DATES), now, last) == expected


def simulate(
    timetable: Callable[[], ReleaseDatesTimetable], looks: list[str], last: str | None = None
) -> list[str]:
    """Let a scheduler look at the calendar at some moments; return the runs it makes.

    The timetable is made anew at every look, as at a reparse or a restart.
    """
    made = []
    for now in looks:
        while (date := due(timetable(), now, last)) is not None and day(date) <= day(now):
            made.append(date)
            last = date
    return made


@pytest.mark.parametrize("every", [1, 7, 20, 45])
def test_a_scheduler_that_is_up_runs_every_date_once(every: int) -> None:
    days = [day("2024-01-01").add(days=n).to_date_string() for n in range(0, 150, every)]
    made = simulate(lambda: ReleaseDatesTimetable(DATES), days)
    assert len(made) == len(set(made)) and made == sorted(made)
    if every <= 20:
        assert made == DATES


@pytest.mark.parametrize("up", list(itertools.product([False, True], repeat=4)))
def test_downtimes_lose_no_latest_date_and_repeat_none(up: tuple[bool, ...]) -> None:
    looks = [date for date, is_up in zip(DATES, up, strict=True) if is_up] + ["2024-05-15"]
    made = simulate(lambda: ReleaseDatesTimetable(DATES), looks)
    assert len(made) == len(set(made))
    assert made[-1] == "2024-04-30"
    assert [d for d, is_up in zip(DATES, up, strict=True) if is_up and d not in made] == []


def test_a_date_added_later_is_due_and_a_removed_one_is_not_repeated() -> None:
    longer = ReleaseDatesTimetable([*DATES, "2024-05-31"])
    assert due(longer, "2024-06-01", "2024-04-30") == "2024-05-31"
    shorter = ReleaseDatesTimetable(DATES[:2])
    assert due(shorter, "2024-06-01", "2024-03-31") is None


def test_with_catchup_every_date_runs_in_order() -> None:
    timetable = ReleaseDatesTimetable(DATES)
    assert due(timetable, "2030-01-01", None, catchup=True) == "2024-01-31"
    assert due(timetable, "2030-01-01", "2024-01-31", catchup=True) == "2024-02-29"


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("2024-02-29", "2024-02-29", ["2024-02-29"]),
        ("2024-02-01", "2024-03-31", ["2024-02-29", "2024-03-31"]),
        ("2024-02-01", "2024-02-28", []),
        ("2020-01-01", "2030-01-01", DATES),
    ],
)
def test_a_backfill_gets_the_dates_of_its_range_and_no_other(
    airflow_db: Path, first: str, last: str, expected: list[str]
) -> None:
    """Each date outside the range would be a release, and a charge, that nobody asked for."""
    from airflow.sdk import DAG
    from airflow.serialization.serialized_objects import DagSerialization

    with DAG("calendar", schedule=ReleaseDatesTimetable(DATES), start_date=START) as dag:
        pass
    read = DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag))
    infos = read.iter_dagrun_infos_between(day(first), day(last))
    assert [info.run_after.to_date_string() for info in infos] == expected


def test_nothing_runs_after_the_dags_end() -> None:
    timetable = ReleaseDatesTimetable(DATES)
    restriction = TimeRestriction(earliest=START, latest=day("2024-02-01"), catchup=False)
    with clock("2024-02-15"):
        last = DataInterval.exact(day("2024-01-31"))
        assert (
            timetable.next_dagrun_info(last_automated_data_interval=last, restriction=restriction)
            is None
        )


def test_a_manual_run_is_for_the_moment_it_names() -> None:
    moment = day("2024-02-10")
    interval = ReleaseDatesTimetable(DATES).infer_manual_data_interval(run_after=moment)
    assert (interval.start, interval.end) == (moment, moment)


def test_dates_are_sorted_and_kept_once() -> None:
    timetable = ReleaseDatesTimetable(["2024-02-29", "2024-01-31", "2024-02-29"])
    assert timetable.dates == ["2024-01-31", "2024-02-29"]
    assert timetable.summary == "2 release dates"
    assert timetable.description == "2 release dates from 2024-01-31 to 2024-02-29"
    assert ReleaseDatesTimetable([]).description == "no release dates"


def test_it_survives_airflows_serialization(airflow_db: Path) -> None:
    from airflow.sdk import DAG
    from airflow.serialization.serialized_objects import DagSerialization

    with DAG("calendar", schedule=ReleaseDatesTimetable(DATES), start_date=START) as dag:
        pass
    stored = DagSerialization.serialize_dag(dag)
    read = DagSerialization.deserialize_dag(stored)
    assert isinstance(read.timetable, ReleaseDatesTimetable)
    assert read.timetable.dates == DATES
    assert DagSerialization.serialize_dag(dag) == stored
