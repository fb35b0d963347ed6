"""One release without Airflow or ledger, with its phases timed apart."""

from __future__ import annotations

import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from include.accounting import Event
from include.data.private import ProtectedTable
from include.synthesis import Plan, SynthesisTask, Transcript, noisy_rows, synthesizer


class NoJournal:
    """A charge's journal for comparisons: nothing is charged, nothing can be resumed."""

    def begin(self, round: int, events: Sequence[Event]) -> None:
        """Accept the round."""

    def answer(self, round: int, payload: dict[str, Any]) -> None:
        """Accept the answer."""


@dataclass
class Run:
    """What one release made and what it took."""

    plan: Plan
    transcript: Transcript
    model: Any
    rows: NDArray[Any]
    cpu_s: dict[str, float] = field(default_factory=dict)
    wall_s: float = 0.0

    @property
    def cpu_total_s(self) -> float:
        """CPU seconds from planning to sampled rows."""
        return sum(self.cpu_s.values())


def run_release(
    mechanism: str,
    codes: NDArray[Any],
    task: SynthesisTask,
    epsilon_pico: int,
    delta_exponent: int,
    *,
    rows: int | None = None,
    earlier: Sequence[Transcript] = (),
) -> Run:
    """Plan, measure with real noise, fit and sample."""
    maker = synthesizer(mechanism)
    table = ProtectedTable.from_codes(codes, task.domain, task.max_rows)
    marks = [time.process_time()]
    begun = time.perf_counter()
    plan = maker.plan(task, epsilon_pico, delta_exponent)
    marks.append(time.process_time())
    transcript = maker.measure(table, plan, NoJournal(), earlier=earlier)
    marks.append(time.process_time())
    model = maker.fit(transcript, plan, earlier=earlier)
    marks.append(time.process_time())
    count = noisy_rows(transcript) if rows is None else rows
    sampled = maker.sample(model, count, bytes.fromhex(transcript.digest))
    marks.append(time.process_time())
    spans = dict(zip(("plan", "measure", "fit", "sample"), np.diff(marks).tolist(), strict=True))
    return Run(plan, transcript, model, sampled, spans, time.perf_counter() - begun)


def peak_mb() -> float:
    """Peak resident memory of this process, in MB of 2^20 bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
