"""What one release takes: CPU seconds cold and warm, and the peak of memory, against the goals.

    python -m benchmarks.footprint [nltcs] [adult] [--seeds 3]

`cold` and `peak` are those of `python -m benchmarks.synthesize` in a fresh process as the operating
system counts them: interpreter, imports, reading the CSV and writing the rows included. `warm` is
a second release in one process, from the plan to the sampled rows. Each with and without ten
interest queries, AIM at epsilon 1 and delta 1e-9; the largest of the seeds is kept.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import random  # noqa: TID251 - draws queries, no noise
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.engine import DATA, ROOT
from benchmarks.machine import stamp
from benchmarks.tables import keep_rows

RESULT = ROOT / "benchmarks" / "results" / "footprint.csv"
QUERIES = 10


def queries(name: str, seed: int) -> list[list[str]]:
    """Draw interest queries from all pairs."""
    columns = json.loads((DATA / f"{name}-domain.json").read_text())
    pairs = list(itertools.combinations(columns, 2))
    return [list(pair) for pair in random.Random(seed).sample(pairs, QUERIES)]


def fresh(name: str, interest: list[list[str]]) -> tuple[float, float]:
    """Run the command in a process of its own; return its CPU seconds and its peak in MB."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "benchmarks.synthesize",
            "--csv",
            str(DATA / f"{name}.csv"),
        ]
        command += ["--domain", str(DATA / f"{name}-domain.json"), "--epsilon", "1"]
        command += ["--delta", "1e-9", "--mechanism", "aim", "--interest", json.dumps(interest)]
        command += ["--out", str(Path(folder) / "o.csv")]
        child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"benchmarks.synthesize failed on {name}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def warm(name: str, interest: list[list[str]]) -> float:
    """Make two releases in one process of its own; return the second one's CPU seconds."""
    code = (
        "import sys, json; from pathlib import Path; from benchmarks.runs import run_release;"
        "from benchmarks.tables import read_codes; from include.synthesis import SynthesisTask;"
        "folder, name, asked = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]);"
        "codes, domain = read_codes(folder / f'{name}.csv', folder / f'{name}-domain.json');"
        "task = SynthesisTask.build(domain, interest=asked);"
        "runs = [run_release('aim', codes, task, 10**12, 9) for _ in range(2)];"
        "print(runs[1].cpu_total_s)"
    )
    command = [sys.executable, "-c", code, str(DATA), name, json.dumps(interest)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return float(done.stdout)


def measure(name: str, seeds: int) -> list[dict[str, Any]]:
    """Measure one table, without and with interest queries."""
    rows = []
    for asked in (0, QUERIES):
        drawn = [queries(name, seed) if asked else [] for seed in range(seeds)]
        cold = [fresh(name, interest) for interest in drawn]
        row = {"table": name, "queries": asked, "seeds": seeds}
        row["cold_cpu_s"] = round(max(seconds for seconds, _ in cold), 2)
        row["warm_cpu_s"] = round(max(warm(name, interest) for interest in drawn), 2)
        row["peak_mb"] = round(max(peak for _, peak in cold))
        print(",".join(map(str, row.values())), flush=True)
        rows.append(row)
    return rows


def page() -> str:
    """Write the stored figures as the table of docs/mechanisms.md."""
    lines = [
        "| AIM on | interest queries | CPU s cold | CPU s warm | peak |",
        "|---|---|---|---|---|",
    ]
    with RESULT.open(newline="") as file:
        for row in sorted(csv.DictReader(file), key=lambda row: row["table"], reverse=True):
            name = {"nltcs": "NLTCS", "adult": "Adult"}.get(row["table"], row["table"])
            figures = f"{row['cold_cpu_s']} | {row['warm_cpu_s']} | {row['peak_mb']} MB"
            lines.append(f"| {name} | {row['queries']} | {figures} |")
    return "\n".join(lines)


def main() -> int:
    """Measure the tables and keep the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.footprint")
    parser.add_argument("tables", nargs="*", default=["nltcs", "adult"])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if not DATA.is_dir():
        print("SKIPPED: no research data; set CUSYN_RESEARCH_DATA to the folder with the tables")
        return 0
    print("table,queries,seeds,cold_cpu_s,warm_cpu_s,peak_mb")
    marks = {"command": " ".join(["python -m benchmarks.footprint", *sys.argv[1:]]), **stamp()}
    for name in options.tables:
        keep_rows(RESULT, [{**row, **marks} for row in measure(name, options.seeds)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
