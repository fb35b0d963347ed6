"""When, with which packages and on what class of machine a figure was obtained; never which one."""

from __future__ import annotations

import datetime as dt
import os
import platform
from importlib.metadata import version

PACKAGES = ("numpy", "scipy", "opendp")


def stamp(*packages: str) -> dict[str, str]:
    """Return the date, the versions and the machine class for a row of results."""
    versions = [f"{name} {version(name)}" for name in (*PACKAGES, *packages)]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d"),
        "versions": f"python {platform.python_version()}; " + "; ".join(versions),
        "machine": f"{os.cpu_count()} cores; {memory:.0f} GB; {platform.machine()}",
    }


def one_thread() -> None:
    """Keep the linear algebra to one thread; to be called before numpy is imported.

    The tables are small: more threads only wait for each other, and CPU seconds would count that.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
