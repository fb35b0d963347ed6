"""Made-up research tables, small enough for a release in a fraction of a second."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

CELLS = {"a": 2, "b": 3, "c": 2, "d": 4}


@pytest.fixture(scope="session")
def research(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables under the names of the research tables, and their domains."""
    folder = tmp_path_factory.mktemp("research")
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 600)
    columns = [first, first + rng.integers(0, 2, 600), rng.integers(0, 2, 600), 2 * first + 1]
    for name in ("titanic", "nltcs", "adult", "salary"):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([list(CELLS), *zip(*columns, strict=True)])
        (folder / f"{name}-domain.json").write_text(json.dumps(CELLS))
    return folder
