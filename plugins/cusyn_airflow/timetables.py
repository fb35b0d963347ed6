"""A schedule that is a list of dates, none lost and none run for ever after.

Airflow's EventsTimetable with catchup off never runs a date that is already past, and a restart
around a date can lose it. A release calendar wants neither: after a downtime the latest unreleased
date is due, once; older ones are the steward's to trigger by hand.
"""

from __future__ import annotations

from typing import Any

import pendulum
from airflow.timetables.base import DagRunInfo, DataInterval, TimeRestriction, Timetable


class ReleaseDatesTimetable(Timetable):
    """Runs on each listed date; of the past ones only the latest, and that once.

    Args:
        dates: ISO dates (`YYYY-MM-DD`, midnight UTC), in any order, duplicates ignored.
    """

    def __init__(self, dates: list[str]) -> None:
        self.dates = sorted(set(dates))

    @property
    def summary(self) -> str:
        """What the UI shows as the schedule."""
        return f"{len(self.dates)} release dates"

    @property
    def description(self) -> str:  # type: ignore[override]
        """The same with its first and last date."""
        if not self.dates:
            return "no release dates"
        return f"{len(self.dates)} release dates from {self.dates[0]} to {self.dates[-1]}"

    def _events(self) -> list[pendulum.DateTime]:
        return [pendulum.DateTime.fromisoformat(d).replace(tzinfo=pendulum.UTC) for d in self.dates]

    def next_dagrun_info(
        self,
        *,
        last_automated_data_interval: DataInterval | None,
        restriction: TimeRestriction,
    ) -> DagRunInfo | None:
        """Return the latest past date that has not run, otherwise the next date to come.

        With catchup on, which is also how a backfill asks for its range, every date from
        `restriction.earliest` runs in order. Otherwise that bound is the DAG's start date, which
        says nothing about which wave of data is due, and is ignored.
        """
        last = last_automated_data_interval.end if last_automated_data_interval else None
        due = [event for event in self._events() if last is None or event > last]
        if restriction.catchup:
            first = restriction.earliest
            due = [event for event in due if first is None or event >= first]
        else:
            past = [event for event in due if event <= pendulum.now("UTC")]
            due = past[-1:] + [event for event in due if event not in past]
        if not due or (restriction.latest is not None and due[0] > restriction.latest):
            return None
        return DagRunInfo.exact(due[0])

    def infer_manual_data_interval(self, *, run_after: pendulum.DateTime) -> DataInterval:
        """A manual run is for the moment it names."""
        return DataInterval.exact(run_after)

    def serialize(self) -> dict[str, Any]:
        """For Airflow's serialized DAGs."""
        return {"dates": self.dates}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> ReleaseDatesTimetable:
        """The inverse of `serialize`."""
        return cls(data["dates"])
