"""Rows drawn by private-pgm's default from a model in which all columns are independent.

The model is fitted on uniform pairs (a, b), (a, c), (a, d): every correlation should be about 0.
Prints the largest, as JSON.
"""

from __future__ import annotations

import itertools
import json

import numpy as np
from mbi import Domain, LinearMeasurement, estimation, marginal_oracles

ROWS, CELLS = 20_000, 10


def main() -> None:
    """Fit, draw and correlate."""
    sizes = {"a": 2} | dict.fromkeys("bcd", CELLS)
    uniform = np.full(2 * CELLS, ROWS / (2 * CELLS))
    model = estimation.mirror_descent(
        Domain(list(sizes), list(sizes.values())),
        [LinearMeasurement(uniform, ("a", child), 1.0) for child in "bcd"],
        iters=500,
        marginal_oracle=marginal_oracles.message_passing_stable,
    )
    drawn = model.synthetic_data(ROWS).df
    pairs = itertools.combinations(sizes, 2)
    found = [np.corrcoef(np.asarray(drawn[a]), np.asarray(drawn[b]))[0, 1] for a, b in pairs]
    print(json.dumps({"value": float(np.abs(found).max()), "should_be": "about 0"}))


if __name__ == "__main__":
    main()
