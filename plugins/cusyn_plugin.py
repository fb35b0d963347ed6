"""Registers with Airflow what `cusyn_airflow` offers; nothing is defined here."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from cusyn_airflow.links import ChargeLink
from cusyn_airflow.timetables import ReleaseDatesTimetable


class CuSynPlugin(AirflowPlugin):
    """CuSyn's timetable and operator link."""

    name = "cusyn"
    timetables = [ReleaseDatesTimetable]  # noqa: RUF012  (Airflow reads a plain class attribute)
    operator_extra_links = [ChargeLink()]  # noqa: RUF012
