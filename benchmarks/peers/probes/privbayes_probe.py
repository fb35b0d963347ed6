"""The privacy loss of one selection of dpmm's PrivBayes between tables that differ in one row.

Three binary columns, 10,000 rows of zeros, one of which is (1, 1, 0) in one of the tables. Half of
a total epsilon of 1 pays for all selections, as its `select` calls its own exponential mechanism.
Prints the largest change of a log-probability, as JSON.
"""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
from dpmm.models.base.mbi import Dataset, Domain
from dpmm.models.priv_bayes import MI, ExponentialMechanism

ROWS, EPSILON = 10_000, 1.0
COLUMNS = ["s", "a", "b"]


def chances(rows: np.ndarray) -> np.ndarray:
    """Tell the probabilities with which (s -> a) and (s -> b) are selected."""
    data = Dataset(pd.DataFrame(rows, columns=COLUMNS), Domain(COLUMNS, np.array([2, 2, 2])))
    score = MI(data)
    mechanism = ExponentialMechanism(data, epsilon=EPSILON / 2)
    return mechanism(np.array([score(("s",), "a"), score(("s",), "b")]))


def main() -> None:
    """Compare the two tables."""
    without = np.zeros((ROWS - 1, 3), dtype=int)
    loss = np.abs(np.log(chances(np.vstack([[1, 1, 0], without]))) - np.log(chances(without)))
    print(json.dumps({"value": float(loss.max()), "should_be": f"at most {EPSILON:g}"}))


if __name__ == "__main__":
    main()
