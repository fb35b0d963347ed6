"""Registers with Airflow what `cusyn_airflow` offers; nothing is defined here."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from cusyn_airflow.links import PAGES, ChargeLink
from cusyn_airflow.timetables import ReleaseDatesTimetable
from cusyn_airflow.ui.lazy import LazyApp


class CuSynPlugin(AirflowPlugin):
    """CuSyn's timetable, operator link and pages."""

    name = "cusyn"
    timetables = [ReleaseDatesTimetable]  # noqa: RUF012  (Airflow reads plain class attributes)
    operator_extra_links = [ChargeLink()]  # noqa: RUF012
    fastapi_apps = [  # noqa: RUF012
        {"app": LazyApp(), "url_prefix": PAGES, "name": "Privacy budget"}
    ]
    external_views = [  # noqa: RUF012
        {
            "name": "Privacy budget",
            "href": f"{PAGES}/",
            "destination": "nav",
            "url_route": "privacy-budget",
        }
    ]
