"""All pairs of a large snapshot: decoding and counting, with one worker and with two.

    python -m benchmarks.counting [rows] [columns]

Made-up rows are written as the protected store writes them. Each number of workers reads them in a
fresh process: CPU seconds, wall seconds (which other programs lengthen) and the peak of memory of
the whole process. The counts must be equal. The target is 10,000,000 rows x 16 columns, all 120
pairs, under 4 CPU seconds after decoding and under 600 MB.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.machine import stamp
from benchmarks.tables import keep_rows
from include.config.datasets import DatasetConfig
from include.data.content import GROUP_ROWS
from include.data.decoding import decode_snapshot
from include.data.marginals import joint_tables
from include.data.private import ProtectedTable
from include.data.schema import Schema
from include.data.snapshot_file import store_rows

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "counting.csv"
CELLS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 4, 9)
WORKERS = (1, 2)


def declare(columns: int) -> DatasetConfig:
    """Declare the table: texts and whole numbers by turns."""
    blocks: dict[str, Any] = {}
    for i in range(columns):
        cells = CELLS[i % len(CELLS)]
        texts = {"type": "category", "values": [f"level {k}" for k in range(cells)]}
        blocks[f"c{i}"] = {"type": "integer", "min": 0, "max": cells - 1} if i % 2 else texts
    return DatasetConfig.model_validate(
        {
            "dataset": "made_up",
            "populations": ["nobody"],
            "privacy_unit": {"max_rows": 1},
            "source": {"path": "none.parquet"},
            "columns": blocks,
        }
    )


def made_up(rows: int, columns: int) -> Iterator[pa.Table]:
    """Draw the rows, one group at a time."""
    rng = np.random.default_rng(0)
    for start in range(0, rows, GROUP_ROWS):
        count = min(GROUP_ROWS, rows - start)
        cells = {}
        for i in range(columns):
            levels = CELLS[i % len(CELLS)]
            codes = pa.array(rng.integers(0, levels, count))
            texts = pa.array([f"level {k}" for k in range(levels)])
            cells[f"c{i}"] = codes if i % 2 else texts.take(codes)
        yield pa.table(cells)


def measure(path: Path, columns: int, workers: int) -> dict[str, Any]:
    """Decode and count once in this process."""
    declared = declare(columns)
    schema = Schema.from_config(declared)
    marks = [(time.process_time(), time.perf_counter())]
    codes = decode_snapshot(path, schema, declared, bytes(32), workers)
    marks.append((time.process_time(), time.perf_counter()))
    table = ProtectedTable._sealed(codes, schema.domain, declared.max_rows)
    pairs = list(itertools.combinations(schema.domain, 2))
    with table.spending():
        counts = table.counts_many(pairs)
    marks.append((time.process_time(), time.perf_counter()))
    digest = hashlib.sha256(b"".join(one.tobytes() for one in counts)).hexdigest()[:16]
    decode, count = (np.subtract(after, before) for before, after in itertools.pairwise(marks))
    return {
        "rows": int(counts[0].sum()),
        "columns": columns,
        "pairs": len(pairs),
        "tables": len(joint_tables(schema.domain, pairs)[0]),
        "workers": workers,
        "decode_cpu_s": round(float(decode[0]), 2),
        "decode_wall_s": round(float(decode[1]), 2),
        "count_cpu_s": round(float(count[0]), 2),
        "count_wall_s": round(float(count[1]), 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "counts": digest,
    }


def main(arguments: list[str]) -> int:
    """Write the snapshot, read it with each number of workers, print CSV and keep it."""
    if arguments[:1] == ["--inside"]:
        print(json.dumps(measure(Path(arguments[1]), int(arguments[2]), int(arguments[3]))))
        return 0
    rows, columns = (int(a) for a in [*arguments, "10000000", "16"][:2])
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.parquet"
        store_rows(path, made_up(rows, columns), None, ())
        for workers in WORKERS:
            command = [sys.executable, "-m", "benchmarks.counting", "--inside", str(path)]
            command += [str(columns), str(workers)]
            done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
            found.append(json.loads(done.stdout.splitlines()[-1]))
    assert len({result["counts"] for result in found}) == 1, "the counts differ"
    writer = csv.DictWriter(sys.stdout, found[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    if not arguments:
        marks = {"command": "python -m benchmarks.counting", **stamp("pyarrow")}
        keep_rows(RESULT, [{**result, **marks} for result in found], key="rows")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
