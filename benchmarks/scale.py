"""A large CSV released end to end: CPU seconds of each stage and the peak of memory.

    python -m benchmarks.scale [rows]

Five million rows by default, several rows a person, as many synthetic rows as the noisy total says.
All stages run in one process on a scratch ledger, so the peak is that of the whole pipeline; in
Airflow each stage is a process of its own. The target is 2 GB.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from include.config.loader import load_checked
from include.settings import Settings, load_settings

DATASET = """
dataset: visits
populations: [patients]
privacy_unit: {what: person, id_column: person, max_rows: 2}
source: {path: visits.csv}
columns:
  sex: {type: category, values: [f, m]}
  age: {type: integer, min: 0, max: 99, bins: 10}
  cost: {type: float, min: 0, max: 200000, bins: 12, decimals: 2}
  ward: {type: category, values: [w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11]}
  region: {type: category, values: [r0, r1, r2, r3, r4, r5, r6, r7, r8, r9]}
  kind: {type: category, values: [planned, urgent], nullable: true}
  day: {type: date, min: "2020-01-01", max: "2021-12-31", resolution: quarter}
  again: {type: boolean}
"""
BUDGETS = """
populations: {patients: {epsilon: "10", delta: "1e-9"}}
users: {team: {datasets: {visits: {epsilon: "10"}}}}
"""
RELEASE = """
release: visits
dataset: visits
requester: team
mechanism: mwem_pgm
epsilon: "1"
interest: [[ward, cost], [age, kind]]
options: {rounds: 6}
publish: {uri: releases}
"""
BLOCK = 500_000


def write_source(path: Path, rows: int) -> None:
    """Write made-up visits, block by block."""
    rng = np.random.default_rng(0)
    for start in range(0, rows, BLOCK):
        count = min(BLOCK, rows - start)
        age = rng.integers(0, 100, count)
        ward = rng.integers(0, 12, count)
        days = pd.to_timedelta(rng.integers(0, 700, count), "D")
        frame = pd.DataFrame(
            {
                "person": rng.integers(0, rows // 2 + 1, count),
                "sex": rng.choice(["f", "m"], count),
                "age": age,
                "cost": np.round(rng.gamma(2, 3000 + 900 * ward), 2),
                "ward": np.char.add("w", ward.astype(str)),
                "region": np.char.add("r", rng.integers(0, 10, count).astype(str)),
                "kind": np.where(age > 60, "urgent", rng.choice(["planned", ""], count)),
                "day": (pd.Timestamp("2020-01-01") + days).strftime("%Y-%m-%d"),
                "again": rng.random(count) < 0.3,
            }
        )
        frame.to_csv(path, index=False, mode="a", header=start == 0)


def places(root: Path) -> Settings:
    """Write the declarations and return settings below one folder."""
    config = root / "config"
    for name in ("datasets", "releases"):
        (config / name).mkdir(parents=True)
    (config / "datasets" / "visits.yaml").write_text(DATASET)
    (config / "budgets.yaml").write_text(BUDGETS)
    (config / "releases" / "visits.yaml").write_text(RELEASE)
    return replace(
        load_settings(),
        project_root=root,
        config_dir=config,
        var_dir=root,
        protected_dir=root / "protected",
        work_dir=root / "work",
        keys_dir=root / "keys",
        checkpoints_dir=root / "checkpoints",
        releases_uri=str(root / "releases"),
        ledger_url=f"sqlite:///{root / 'ledger.db'}",
    )


def stages(settings: Settings) -> dict[str, Callable[[], Any]]:
    """Return the six stages of one release, ready to be called in order."""
    from include.budget.migrations import migrate
    from include.budget.store import connect
    from include.stages.budget_eval import budget_eval
    from include.stages.ledger import open_ledger
    from include.stages.load import load
    from include.stages.publish import publish
    from include.stages.quality_check import quality_check
    from include.stages.register import register
    from include.stages.run import ReleaseRun, Workplace
    from include.stages.synthesize import synthesize
    from include.stages.validate import validate

    migrate(connect(settings.ledger_url, create=True))
    ledger = open_ledger(settings, settings.ledger_url)
    checked = load_checked(settings.config_dir / "releases" / "visits.yaml", settings.config_dir)
    register(ledger, checked.budgets, [checked.dataset], actor="benchmark")
    place = Workplace(settings, ledger)
    run = ReleaseRun(
        checked.release, checked.dataset, checked.budgets, period="2021", actor="scheduler",
        scheduled=True, dag_id="release__visits", run_id="benchmark",
    )  # fmt: skip
    loaded: list[str] = []
    return {
        "load": lambda: loaded.append(load(run, place)),
        "validate": lambda: validate(run, place, loaded[0]),
        "budget_eval": lambda: budget_eval(run, place, loaded[0]),
        "synthesize": lambda: synthesize(run, place),
        "quality_check": lambda: quality_check(run, place),
        "publish": lambda: publish(run, place),
    }


def cpu() -> float:
    """Return the CPU seconds of this process and of what it has started and waited for."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


def main() -> None:
    """Print a line of CSV for each stage."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    with tempfile.TemporaryDirectory() as folder:
        settings = places(Path(folder))
        write_source(settings.project_root / "visits.csv", rows)
        print("rows,stage,cpu_s,wall_s,peak_mb")
        for name, stage in stages(settings).items():
            begun, clock = cpu(), time.monotonic()
            stage()
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{rows},{name},{cpu() - begun:.1f},{time.monotonic() - clock:.1f},{peak:.0f}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
