"""Registers with Airflow what `cusyn_airflow` offers; nothing is defined here."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from cusyn_airflow import listeners as run_notes
from cusyn_airflow.links import PAGES, ChargeLink
from cusyn_airflow.timetables import ReleaseDatesTimetable
from cusyn_airflow.ui.lazy import LazyApp


class CuSynPlugin(AirflowPlugin):
    """CuSyn's timetable, operator link, run notes and pages."""

    name = "cusyn"
    timetables = [ReleaseDatesTimetable]  # noqa: RUF012  (Airflow reads plain class attributes)
    operator_extra_links = [ChargeLink()]  # noqa: RUF012
    listeners = [run_notes]  # noqa: RUF012
    fastapi_apps = [  # noqa: RUF012
        {"app": LazyApp(), "url_prefix": PAGES, "name": "Privacy budget"}
    ]
    # No `url_route`: Airflow would show the page in a frame whose sandbox lets no link out, and an
    # auditor could not get from a charge to its run and log. In a menu, since Airflow 3.3 draws a
    # link of the navigation itself as a button that leads nowhere.
    external_views = [  # noqa: RUF012
        {
            "name": "Privacy budget",
            "href": f"{PAGES}/",
            "destination": "nav",
            "category": "browse",
        }
    ]
