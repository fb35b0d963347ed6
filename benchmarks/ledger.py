"""How fast the ledger is, as ratios to a bare INSERT+COMMIT on the same server in the same run.

    python -m benchmarks.ledger [--seconds 5] [--entries 10 10000 100000] [--only postgresql]

One population's pool takes every charge: the worst case. A complete charge is reserve, open, seal
and publish; `begin_publishing`, which a pipeline also needs, is timed beside them. Results go to
benchmarks/results/ledger.csv and the figures of docs/ledger.md.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import re
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Engine, Table, select, text, update

from include.accounting.amounts import ONE
from include.budget.journal import entry_hash
from include.budget.ledger import Ledger
from include.budget.models import Request
from include.budget.store import connect
from include.budget.store.engine import writing
from include.budget.store.tables import CHARGE, ENTRY, HEAD, POOL, POSTING, RELEASE
from include.budget.verify import verify
from tests.budget.servers import PostgresServer, SqliteFiles, unguarded
from tests.budget.world import DIGEST, World, zcdp

FORK = multiprocessing.get_context("fork")
STEPS = ("reserve", "open", "seal", "publish")
RESULTS = Path(__file__).with_name("results") / "ledger.csv"
WRITERS = {"postgresql": (1, 16), "sqlite": (1, 4)}
GOALS = {"postgresql": 8.0, "sqlite": 10.0}
Times = dict[str, list[float]]


def bare(url: URL, seconds: float, number: int, times: Times) -> None:
    """Insert one row and commit, as often as possible, through the same library."""
    engine = connect(url)
    statement = text("INSERT INTO bare (writer, n) VALUES (:writer, :n)")
    until, n = time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        n += 1
        begun = time.perf_counter()
        with writing(engine) as connection:
            connection.execute(statement, {"writer": number, "n": n})
        times["bare"].append(time.perf_counter() - begun)
    engine.dispose()


def charges(url: URL, seconds: float, number: int, times: Times) -> None:
    """Take charges from request to release, as often as possible."""
    engine = connect(url)
    until, n = time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        n += 1
        one_charge(engine, f"{os.getpid()}-{n}", number, times)
    engine.dispose()


def one_charge(engine: Engine, name: str, number: int, times: Times) -> None:
    """Take one charge from request to release and time each step.

    BudgetEval, the measurement and publishing are tasks of their own: none of them remembers what
    another has done.
    """
    budget_eval, measurement, publishing = (Ledger(engine) for _ in range(3))
    request = Request(
        key=name,
        dataset="survey",
        requester=f"user{number % 4}",
        actor="benchmark",
        release="benchmark",
        period=name,
        mechanism="mwem_pgm",
        epsilon_pico=ONE // 1000,
        accept_at_least_pico=ONE // 1000,
        parameters={"rounds": 10},
    )
    timed = _timer(times)
    charge = timed("reserve", lambda: budget_eval.reserve(request, zcdp))
    plan = {"rounds": 10, "sigma": 31.5}
    opened = timed(
        "open",
        lambda: measurement.open(
            charge.charge_id, plan=plan, cost=charge.planned, events=[], attempt="1"
        ),
    )
    timed("seal", lambda: measurement.seal(opened, DIGEST))
    timed("begin_publishing", lambda: publishing.begin_publishing(charge.charge_id))
    timed(
        "publish",
        lambda: publishing.publish(
            charge.charge_id, manifest_digest=DIGEST, uri="x", release_id=f"release-{name}"
        ),
    )
    times["charge"].append(sum(times[step][-1] for step in STEPS))


def _timer(times: Times) -> Callable[[str, Callable[[], Any]], Any]:
    def timed(step: str, work: Callable[[], Any]) -> Any:
        begun = time.perf_counter()
        answer = work()
        times[step].append(time.perf_counter() - begun)
        return answer

    return timed


def together(work: Callable[..., None], url: URL, writers: int, seconds: float) -> Times:
    """Run several writers at once and gather their times."""
    results = FORK.Queue()

    def run(number: int) -> None:
        times: Times = defaultdict(list)
        work(url, seconds, number, times)
        results.put(dict(times))

    processes = [FORK.Process(target=run, args=(number,)) for number in range(writers)]
    for process in processes:
        process.start()
    gathered: Times = defaultdict(list)
    for _ in processes:
        for step, found in results.get().items():
            gathered[step] += found
    for process in processes:
        process.join()
    return gathered


def declare(url: URL, entries: int) -> None:
    """Declare a small world and give it a history of so many entries."""
    engine = connect(url)
    with writing(engine) as connection:
        connection.execute(text("CREATE TABLE bare (writer INTEGER, n INTEGER)"))
    world = World(engine)
    world.population("people", epsilon_pico=900_000 * ONE, per_operation_limit_pico=None)
    world.dataset("survey", "people")
    for number in range(4):
        world.user(f"user{number}", "survey", "900000", None)
    if entries > 100:
        one_charge(engine, "template", 0, defaultdict(list))
        repeat(engine, (entries - world.reader.head()["seq"]) // 5)
    if engine.dialect.name == "postgresql":  # a history of years, but none of its upkeep is due now
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
            connection.execute(text("CHECKPOINT"))
    engine.dispose()


def repeat(engine: Engine, times: int) -> None:
    """Copy the last charge many times, as if it had happened so often; `verify` is content."""
    with unguarded(engine) as connection:
        charge = dict(connection.execute(select(CHARGE)).mappings().one())
        release = dict(connection.execute(select(RELEASE)).mappings().one())
        after = charge["decided_seq"] - 1
        query = select(ENTRY).where(ENTRY.c.seq > after).order_by(ENTRY.c.seq)
        entries = [dict(row) for row in connection.execute(query).mappings()]
        moved = select(POSTING).where(POSTING.c.seq > after)
        postings = [dict(row) for row in connection.execute(moved).mappings()]
        last = entries[-1]["hash"]
        for start in range(1, times + 1, 500):
            rows: dict[Table, list[dict[str, Any]]] = defaultdict(list)
            for copy in range(start, min(start + 500, times + 1)):
                swap = _Swap(charge["charge_id"], copy, len(entries) * copy)
                rows[CHARGE].append(swap.row(charge))
                rows[RELEASE].append(swap.row(release))
                rows[POSTING] += [swap.row(posting) for posting in postings]
                for entry in entries:
                    made = swap.row(entry) | {"prev_hash": last}
                    made["hash"] = last = entry_hash(made["seq"], last, made["body"])
                    rows[ENTRY].append(made)
            for table in (CHARGE, RELEASE, ENTRY, POSTING):
                connection.execute(table.insert(), rows[table])
        connection.execute(update(POOL).values(spent_pico=POOL.c.spent_pico * (times + 1)))
        connection.execute(update(HEAD).values(seq=rows[ENTRY][-1]["seq"], hash=last))


@dataclass
class _Swap:
    """Renames the template charge and moves its sequence numbers."""

    charge_id: str
    copy: int
    shift: int

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        return {name: self.value(name, value) for name, value in row.items()}

    def value(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            named = value.replace(self.charge_id, f"ch_{self.copy:020x}")
            named = named.replace("template", f"copy-{self.copy}")
            return re.sub(r'(seq":)([0-9]+)', self._moved, named) if name == "body" else named
        return value + self.shift if name.endswith("seq") and value is not None else value

    def _moved(self, found: re.Match[str]) -> str:
        return f"{found.group(1)}{int(found.group(2)) + self.shift}"


@contextmanager
def places(kind: str) -> Iterator[Callable[[int], URL]]:
    """Give a maker of ledgers with a history, on a real disk."""
    folder = Path(tempfile.mkdtemp(prefix="cusyn-benchmark-"))
    if kind == "sqlite":
        files, quick = SqliteFiles(folder), SqliteFiles()

        def make(entries: int) -> URL:
            url = quick.fresh()
            declare(url, entries)
            target = files.folder / f"{entries}.db"
            shutil.copy(str(url.database), target)
            return url.set(database=str(target))

        yield make
        shutil.rmtree(quick.folder)
        shutil.rmtree(folder)
        return
    server = PostgresServer(folder)

    def fresh(entries: int) -> URL:
        url = server.fresh()
        declare(url, entries)
        return url

    yield fresh
    server.stop()


def percentile(times: list[float], share: float) -> float:
    """Return a percentile in milliseconds."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))] * 1000


def rows(kind: str, entries: int, url: URL, seconds: float) -> Iterator[dict[str, Any]]:
    """Measure one ledger with every number of writers."""
    for writers in WRITERS[kind]:
        plain = together(bare, url, writers, seconds)["bare"]
        found = together(charges, url, writers, seconds)
        base50, base99 = percentile(plain, 0.5), percentile(plain, 0.99)
        base = statistics.fmean(plain) * 1000
        for step in ("bare", *STEPS, "begin_publishing", "charge"):
            times = plain if step == "bare" else found[step]
            yield {
                "database": kind,
                "entries": entries,
                "writers": writers,
                "step": step,
                "p50_ms": round(percentile(times, 0.5), 2),
                "p99_ms": round(percentile(times, 0.99), 2),
                "mean_ratio": round(statistics.fmean(times) * 1000 / base, 2),
                "p50_ratio": round(percentile(times, 0.5) / base50, 2),
                "p99_ratio": round(percentile(times, 0.99) / base99, 2),
                "per_second": round(len(times) / seconds, 1),
            }


def time_verify(url: URL) -> dict[str, Any]:
    """Time a verification of the whole ledger."""
    engine = connect(url)
    begun, worked = time.perf_counter(), time.process_time()
    report = verify(engine)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - worked
    engine.dispose()
    assert report.ok, report.problems
    return {"entries": report.entries, "seconds": round(seconds, 2), "cpu": round(cpu, 2)}


def main() -> None:
    """Run the benchmark and write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--entries", type=int, nargs="+", default=[10, 10_000, 100_000])
    parser.add_argument("--only", choices=sorted(WRITERS))
    told = parser.parse_args()
    table: list[dict[str, Any]] = []
    for kind in [told.only] if told.only else list(WRITERS):
        with places(kind) as make:
            for entries in told.entries:
                url = make(entries)
                for row in rows(kind, entries, url, told.seconds):
                    print("  ".join(f"{name}={value}" for name, value in row.items()), flush=True)
                    table.append(row)
                print(f"verify {kind}: {time_verify(url)}", flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, table[0].keys())
        writer.writeheader()
        writer.writerows(table)
    for row in table:
        if row["step"] == "charge":
            goal = GOALS[row["database"]]
            met = "met" if row["mean_ratio"] <= goal else "MISSED"
            where = f"{row['database']}, {row['writers']} writers, {row['entries']} entries"
            print(f"complete charge, {where}: {row['mean_ratio']}x (goal {goal}x: {met})")


if __name__ == "__main__":
    main()
