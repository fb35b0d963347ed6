"""Time the parts of a release apart: counting, selection, noise, fit, filter, scoring, sampling.

    python -m benchmarks.engine [nltcs] [titanic] [adult] [salary] [--skip-reference]

The rounds are AIM's in shape: every one chooses with the exponential mechanism and measures with
the discrete Gaussian, both exact, but no ledger is charged. `counting` is all columns and pairs in
one pass, `scoring` the model's marginals of the candidates, `selection` their exact integer scores
and the choice. `cold` is a fresh process, imports and first fit included; `warm` is the same work
once more in the same process. The last part fits one middle round with both backends and prints
their ratio.

The tables are public research data beside the project (`../shared/data`, or the folder named by
CUSYN_RESEARCH_DATA): a CSV of integer codes and a JSON of cells per column each.
"""

from __future__ import annotations

import time

BEGUN = time.process_time()  # before the heavy imports: a cold start pays for them

import argparse  # noqa: E402
import csv  # noqa: E402
import datetime  # noqa: E402
import importlib.metadata  # noqa: E402
import itertools  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import platform  # noqa: E402
import resource  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
from collections import Counter  # noqa: E402
from pathlib import Path  # noqa: E402

import numpy as np  # noqa: E402

from include.data.marginals import count_many  # noqa: E402
from include.synthesis import noise, selection  # noqa: E402
from include.synthesis.estimation import Measurement, ModelSizer, estimate  # noqa: E402
from include.synthesis.mechanisms.common import noise_l1  # noqa: E402

IMPORTED = time.process_time() - BEGUN
ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CUSYN_RESEARCH_DATA", ROOT.parent / "shared" / "data"))
RESULT = ROOT / "benchmarks" / "results" / "engine.json"
ROUNDS = {"nltcs": 60, "titanic": 12, "adult": 40, "salary": 22}
RHO = 0.014967  # epsilon 1 at delta 1e-9
MEASURE_PART = 0.9
MAX_MODEL_MB = 80.0
TOLERANCE = 0.1


def load(name: str) -> tuple[dict[str, int], dict[str, np.ndarray]]:
    """Read a table: cells of each column, and its codes."""
    with (DATA / f"{name}.csv").open() as file:
        reader = csv.reader(file)
        names = next(reader)
        codes = np.array([[int(cell) for cell in row] for row in reader], dtype=np.uint16).T
    cells = json.loads((DATA / f"{name}-domain.json").read_text())
    domain = {column: int(cells[column]) for column in names}
    return domain, {column: np.ascontiguousarray(codes[i]) for i, column in enumerate(names)}


class Clock:
    """CPU seconds by part."""

    def __init__(self) -> None:
        self.parts: Counter[str] = Counter()

    def __call__(self, part, call, *args, **kwargs):
        """Run a call and book its CPU time."""
        begun = time.process_time()
        result = call(*args, **kwargs)
        self.parts[part] += time.process_time() - begun
        return result


def run(name, domain, codes):
    """Count, measure, fit and choose for as many rounds as AIM takes; return the timings."""
    rounds, clock = ROUNDS[name], Clock()
    pairs = list(itertools.combinations(domain, 2))
    cliques = [*((column,) for column in domain), *pairs]
    counts = dict(zip(cliques, clock("counting", count_many, codes, domain, cliques), strict=True))
    sigma = float(np.sqrt((rounds + len(domain)) / (2 * MEASURE_PART * RHO)))
    epsilon = float(np.sqrt(8 * (1 - MEASURE_PART) * RHO / rounds))

    def measured(clique):
        noisy = clock("noise", noise.discrete_gaussian, counts[clique], sigma)
        return Measurement(clique, noisy.astype(np.float64), sigma)

    def chosen(fitting, answers):
        scores = [
            selection.l1_score(counts[p], answers[p], noise_l1(sigma, counts[p].size), 1)
            for p in fitting
        ]
        sensitivity = selection.score_sensitivity([1], 1)
        return fitting[noise.exponential_mechanism(np.array(scores), sensitivity, epsilon)]

    taken = [measured((column,)) for column in domain]
    sizer = ModelSizer(domain, [m.clique for m in taken])
    model = clock("fit", estimate, domain, taken, tolerance=TOLERANCE)
    iterations, middle = model.iterations, None
    for turn in range(rounds):
        limit = MAX_MODEL_MB * (turn + 1) / rounds
        sizes = clock("filter", sizer.sizes_with_mb, pairs)
        fitting = [pair for pair, size in zip(pairs, sizes, strict=True) if size <= limit]
        answers = clock("scoring", model.marginals, fitting)
        pair = clock("selection", chosen, fitting, answers)
        taken.append(measured(pair))
        clock("filter", sizer.add, pair)
        start = {"warm_start": model, "tolerance": TOLERANCE}
        model = clock("fit", estimate, domain, taken, **start)
        iterations += model.iterations
        if turn == rounds // 2:
            middle = list(taken)
    rows = len(next(iter(codes.values())))
    clock("sampling", model.sample, rows, np.random.default_rng(0))
    timings = {part: round(seconds, 3) for part, seconds in clock.parts.items()}
    timings["all"] = round(sum(clock.parts.values()), 3)
    gaps = [np.abs(counts[p] / rows - model.marginal(p) / model.total).sum() / 2 for p in pairs]
    facts = {"rounds": rounds, "iterations": iterations, "model_mb": round(model.size_mb, 3)}
    return timings, {**facts, "mean_pair_tv": round(float(np.mean(gaps)), 5)}, middle


def one_round(domain, measurements):
    """Fit the same measurements from scratch with both backends, each twice.

    The first fit of private-pgm compiles for the structure; the second finds it compiled, which a
    mechanism that measures something new in every round never does.
    """
    found = {}
    for backend in ("numpy", "private_pgm"):
        clock = Clock()
        for turn in ("first", "second"):
            model = clock(turn, estimate, domain, measurements, iterations=1000, backend=backend)
        seconds = {f"{turn}_cpu_s": round(clock.parts[turn], 3) for turn in ("first", "second")}
        found[backend] = {**seconds, "half_chi_square": model.loss}
    ratio = found["private_pgm"]["first_cpu_s"] / found["numpy"]["first_cpu_s"]
    return {**found, "private_pgm_over_numpy": round(ratio, 1)}


def measure(name: str, reference: bool) -> dict[str, object]:
    """Time one table in this process: cold first, then warm."""
    domain, codes = load(name)
    cold, facts, middle = run(name, domain, codes)
    cold["import"] = round(IMPORTED, 3)
    cold["all"] = round(cold["all"] + IMPORTED, 3)
    warm, _, _ = run(name, domain, codes)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    result = {"table": name, **facts, "cold_cpu_s": cold, "warm_cpu_s": warm}
    result["peak_mb"] = round(peak)
    if reference:
        result["one_round_from_scratch"] = one_round(domain, middle)
    return result


def main() -> int:
    """Run each table in a process of its own and keep the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine")
    parser.add_argument("tables", nargs="*", default=["nltcs", "titanic", "adult"])
    parser.add_argument("--skip-reference", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(measure(options.tables[0], not options.skip_reference)))
        return 0
    if not DATA.is_dir():
        print("SKIPPED: no research data; set CUSYN_RESEARCH_DATA to the folder with the tables")
        return 0
    results = []
    for name in options.tables:
        command = [sys.executable, "-m", "benchmarks.engine", name, "--inside"]
        command += ["--skip-reference"] * options.skip_reference
        done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
        results.append(json.loads(done.stdout.splitlines()[-1]))
        print(json.dumps(results[-1], indent=1))
    keep(results)
    return 0


def keep(results: list[dict[str, object]]) -> None:
    """Write the results with what is needed to repeat them."""
    packages = {
        p: importlib.metadata.version(p) for p in ("numpy", "scipy", "opendp", "mbi", "jax")
    }
    record = {
        "command": " ".join(["python -m benchmarks.engine", *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "packages": packages,
        "cpus": os.cpu_count(),
        "tolerance": TOLERANCE,
        "max_model_mb": MAX_MODEL_MB,
        "results": results,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
