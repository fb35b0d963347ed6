"""How long the declared schedules can go on: all of them together, on the pools as they stand.

A simulation on public figures: schedules, prices and what the pools have left. Whoever asks in
between by hand shortens it.
"""

from __future__ import annotations

import datetime as dt
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from include.errors import CuSynError
from include.stages.planning import charges_pool, price_in

if TYPE_CHECKING:
    from include.budget.reader import LedgerReader, Pool
    from include.settings import Settings
    from include.stages.run import ReleaseRun

MOST_RUNS = 5_000  # of all schedules together; a daily release reaches thirteen years
PRESETS = {
    "@quarterly": "0 0 1 */3 *",
    "@once": None,
}


@dataclass(frozen=True)
class Outlook:
    """What a schedule can expect.

    Args:
        release: its name; of a file that cannot be read, the file's.
        runs: releases that still fit, one after the other.
        refused_on: the first date that would be refused; None where none is foreseen.
        last_date: the last date that was looked at; None for a release without a schedule.
        fault: why nothing was foreseen; empty where something was.

    Privacy: ledger only.
    """

    release: str
    runs: int
    refused_on: str | None
    last_date: str | None
    fault: str = ""

    @property
    def words(self) -> str:
        """The same in one sentence."""
        if self.fault:
            return f"{self.release}: left out of the forecast: {self.fault}"
        if self.last_date is None:
            return f"{self.release}: no date is scheduled; {self.runs} releases of its size fit now"
        if self.refused_on is None:
            return f"{self.release}: all {self.runs} releases up to {self.last_date} fit"
        return (
            f"{self.release}: {self.runs} releases fit; the next would be refused on "
            f"{self.refused_on}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Describe the outlook in JSON types."""
        return asdict(self) | {"words": self.words}


@dataclass
class _Line:
    """One schedule on its way."""

    release: str
    dates: Iterator[dt.date]
    prices: list[dict[str, int]]  # what each pool pays, as asked for, then for the smallest grant
    runs: int = 0
    last: dt.date | None = None
    refused: dt.date | None = None
    fault: str = ""


def forecast_files(settings: Settings, reader: LedgerReader, today: dt.date) -> list[Outlook]:
    """Simulate the schedules of all release files that can be read, and name the others.

    Args:
        settings: says where the files are.
        reader: the ledger.
        today: the first day that counts.

    Returns:
        One outlook a file; those that cannot be read come last.

    Privacy: ledger only.
    """
    from include.config.loader import list_release_files
    from include.stages.planning import run_of_file

    runs, broken = [], []
    for path in list_release_files(settings.config_dir):
        try:
            runs.append(run_of_file(path, settings))
        except CuSynError as fault:
            broken.append(Outlook(path.stem, 0, None, None, str(fault)))
    return forecast(runs, reader, today) + broken


def forecast(runs: Sequence[ReleaseRun], reader: LedgerReader, today: dt.date) -> list[Outlook]:
    """Simulate all schedules together, date by date, until each is refused or its dates end.

    Args:
        runs: one for each release file.
        reader: the ledger.
        today: the first day that counts.

    Returns:
        One outlook a release, in the order given.

    Privacy: ledger only.
    """
    pools = {pool.pool_id: pool for pool in reader.pools() if pool.status == "open"}
    left = {pool_id: pool.remaining_pico for pool_id, pool in pools.items()}
    taken = reader.occupied()
    lines = [_line(run, pools, taken, today) for run in runs]
    _simulate([line for line in lines if not line.fault and _is_scheduled(line)], left)
    return [_outlook(line, left) for line in lines]


def _line(
    run: ReleaseRun, pools: dict[str, Pool], taken: set[tuple[str, str]], today: dt.date
) -> _Line:
    from include.stages.task import delta_exponent_of, synthesis_task
    from include.synthesis import cost_of

    release, delta = run.release, delta_exponent_of(run)
    try:
        price = cost_of(synthesis_task(run), release.mechanism, delta)
        costs = [price(release.epsilon_pico), price(release.accept_at_least_pico)]
    except CuSynError as fault:  # no plan exists for what the file asks
        return _Line(release.release, iter(()), [], fault=str(fault))
    mine = [pool for pool in pools.values() if charges_pool(pool, run)]
    prices = [{pool.pool_id: price_in(pool, cost, delta) for pool in mine} for cost in costs]
    dates = (day for day in _dates(run, today) if (release.release, str(day)) not in taken)
    return _Line(release.release, dates, prices)


def _dates(run: ReleaseRun, today: dt.date) -> Iterator[dt.date]:
    """Yield the dates still to come; of a list of dates also the past ones not yet released."""
    schedule = run.release.schedule
    if schedule is None:
        return
    if not isinstance(schedule, str):
        yield from sorted(schedule.dates)
        return
    cron = PRESETS.get(schedule, schedule)
    if cron is None:
        return
    from croniter import croniter

    start = dt.datetime.combine(today, dt.time(), tzinfo=dt.UTC)
    times = croniter(cron, start, ret_type=dt.datetime)
    yield from (time.date() for time in islice(times, MOST_RUNS))


def _is_scheduled(line: _Line) -> bool:
    line.last = next(line.dates, None)
    return line.last is not None


def _simulate(lines: Sequence[_Line], left: dict[str, int]) -> None:
    queue = [(line.last, i) for i, line in enumerate(lines) if line.last]
    heapq.heapify(queue)
    for _ in range(MOST_RUNS):
        if not queue:
            return
        day, i = heapq.heappop(queue)
        line = lines[i]
        line.last = day
        if not _pay(line, left):
            line.refused = day
            continue
        line.runs += 1
        if (later := next(line.dates, None)) is not None:
            heapq.heappush(queue, (later, i))


def _pay(line: _Line, left: dict[str, int]) -> bool:
    """Take a release's price from its pools, all or nothing.

    Where the price asked for does not fit and the smallest grant does, BudgetEval grants all that
    is left: the pool that binds ends empty.
    """
    asked, smallest = line.prices
    if not smallest or any(left[pool] < amount for pool, amount in smallest.items()):
        return False
    for pool, amount in asked.items():
        left[pool] -= min(amount, left[pool])
    return True


def _outlook(line: _Line, left: dict[str, int]) -> Outlook:
    if line.fault:
        return Outlook(line.release, 0, None, None, line.fault)
    if line.last is None:
        fits = (left[pool] // amount for pool, amount in line.prices[0].items() if amount)
        return Outlook(line.release, min(fits, default=0), None, None)
    refused = None if line.refused is None else line.refused.isoformat()
    return Outlook(line.release, line.runs, refused, line.last.isoformat())
