"""Time the estimation engine apart from everything else: fit, size filter, scoring, sampling.

    python -m benchmarks.engine [nltcs] [titanic] [adult] [salary] [--skip-reference]

The rounds are AIM's in shape only: the worst pair is picked from the data in the clear and the
noise is NumPy's, so nothing here is a private release. `cold` is a fresh process, imports and
first fit included; `warm` is the same work once more in the same process. The last part fits one
middle round with both backends and prints their ratio.

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

from include.synthesis.estimation import Measurement, ModelSizer, estimate  # noqa: E402

IMPORTED = time.process_time() - BEGUN
ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CUSYN_RESEARCH_DATA", ROOT.parent / "shared" / "data"))
RESULT = ROOT / "benchmarks" / "results" / "engine.json"
ROUNDS = {"nltcs": 60, "titanic": 12, "adult": 40, "salary": 22}
RHO = 0.014967  # epsilon 1 at delta 1e-9: only for a realistic scale of the noise
MAX_MODEL_MB = 80.0
TOLERANCE = 0.1


def load(name: str) -> tuple[dict[str, int], dict[tuple[str, ...], np.ndarray]]:
    """Read a table and count its columns and pairs."""
    with (DATA / f"{name}.csv").open() as file:
        reader = csv.reader(file)
        names = next(reader)
        codes = np.array([[int(cell) for cell in row] for row in reader]).T
    cells = json.loads((DATA / f"{name}-domain.json").read_text())
    domain = {column: int(cells[column]) for column in names}
    cliques = [(c,) for c in names] + list(itertools.combinations(names, 2))
    counts = {}
    for clique in cliques:
        flat = np.zeros(codes.shape[1], dtype=np.int64)
        for column in clique:
            flat = flat * domain[column] + codes[names.index(column)]
        counts[clique] = np.bincount(flat, minlength=int(np.prod([domain[c] for c in clique])))
    return domain, counts


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


def run(name, domain, counts):
    """Measure, fit and choose for as many rounds as AIM takes; return timings and measurements."""
    rounds, rng, clock = ROUNDS[name], np.random.default_rng(0), Clock()
    sigma = float(np.sqrt((rounds + len(domain)) / (2 * 0.9 * RHO)))
    pairs = [clique for clique in counts if len(clique) == 2]

    def measured(clique):
        noise = rng.normal(0, sigma, counts[clique].size)
        return Measurement(clique, counts[clique] + noise, sigma)

    taken = [measured((column,)) for column in domain]
    sizer = ModelSizer(domain, [m.clique for m in taken])
    model = clock("fit", estimate, domain, taken, tolerance=TOLERANCE)
    iterations, middle = model.iterations, None
    for turn in range(rounds):
        limit = MAX_MODEL_MB * (turn + 1) / rounds
        sizes = clock("filter", sizer.sizes_with_mb, pairs)
        fitting = [pair for pair, size in zip(pairs, sizes, strict=True) if size <= limit]
        answers = clock("scoring", model.marginals, fitting)
        bias = np.sqrt(2 / np.pi) * sigma
        errors = {p: np.abs(counts[p] - answers[p]).sum() - bias * answers[p].size for p in fitting}
        chosen = max(fitting, key=errors.__getitem__)
        taken.append(measured(chosen))
        clock("filter", sizer.add, chosen)
        start = {"warm_start": model, "tolerance": TOLERANCE}
        model = clock("fit", estimate, domain, taken, **start)
        iterations += model.iterations
        if turn == rounds // 2:
            middle = list(taken)
    rows = int(counts[pairs[0]].sum())
    clock("sampling", model.sample, rows, rng)
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
    domain, counts = load(name)
    cold, facts, middle = run(name, domain, counts)
    cold["import"] = round(IMPORTED, 3)
    cold["all"] = round(cold["all"] + IMPORTED, 3)
    warm, _, _ = run(name, domain, counts)
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
    packages = {p: importlib.metadata.version(p) for p in ("numpy", "scipy", "mbi", "jax")}
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
