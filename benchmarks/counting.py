"""Counting all pairs of a large table: CPU seconds and peak memory.

    python -m benchmarks.counting [rows] [columns]

The target of the release step is 10,000,000 rows x 16 columns, all 120 pairs, under 4 CPU seconds
after decoding and under 600 MB.
"""

from __future__ import annotations

import itertools
import resource
import sys
import time

import numpy as np

from include.data.private import ProtectedTable

CELLS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 4, 9)


def measure(rows: int, columns: int) -> dict[str, float]:
    """Count every pair of random columns once; return seconds of CPU and megabytes at the peak."""
    rng = np.random.default_rng(0)
    domain = {f"c{i}": CELLS[i % len(CELLS)] for i in range(columns)}
    codes = np.empty((rows, columns), dtype=np.uint8, order="F")
    for i, cells in enumerate(domain.values()):
        codes[:, i] = rng.integers(0, cells, rows, dtype=np.uint8)
    table = ProtectedTable.from_codes(codes, domain)
    pairs = list(itertools.combinations(domain, 2))
    begun = time.process_time()
    with table.spending():
        counts = table.counts_many(pairs)
    seconds = time.process_time() - begun
    assert all(int(count.sum()) == rows for count in counts)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "rows": rows,
        "columns": columns,
        "pairs": len(pairs),
        "cpu_s": seconds,
        "peak_mb": peak,
    }


def main() -> None:
    """Print one line of CSV with its header."""
    rows, columns = (int(a) for a in [*sys.argv[1:], "10000000", "16"][:2])
    result = measure(rows, columns)
    print(",".join(result))
    print(",".join(f"{value:g}" for value in result.values()))


if __name__ == "__main__":
    main()
