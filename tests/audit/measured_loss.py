"""How much privacy many runs on two neighbours have lost for certain (up to 1e-6)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence

RISK = 1e-6
Features = tuple[Hashable, ...]


def upper(hits: int, runs: int) -> float:
    """Bound a probability from above, Clopper-Pearson, wrong with probability at most RISK."""
    from scipy.stats import beta

    return 1.0 if hits == runs else float(beta.ppf(1 - RISK, hits + 1, runs - hits))


def lower(hits: int, runs: int) -> float:
    """Bound a probability from below."""
    return 1.0 - upper(runs - hits, runs)


def certain_loss(one: Sequence[Features], other: Sequence[Features], delta: float = 0.0) -> float:
    """Find an event on half of the runs and bound its loss on the other half.

    Args:
        one: Features of each run on one table: an event is "feature i has value v".
        other: The same on the neighbour, as many.
        delta: The delta of the claim.

    Returns:
        Epsilon that was lost for certain, in either direction; 0 where nothing shows.
    """
    half = len(one) // 2
    worst = 0.0
    for first, second in ((one, other), (other, one)):
        event = _best_event(first[:half], second[:half])
        if event is None:
            continue
        hits = [sum(run[event[0]] == event[1] for run in runs[half:]) for runs in (first, second)]
        top = lower(hits[0], len(first) - half) - delta
        if top > 0:
            worst = max(worst, math.log(top / upper(hits[1], len(second) - half)))
    return worst


def _best_event(
    first: Sequence[Features], second: Sequence[Features]
) -> tuple[int, Hashable] | None:
    """Choose the event whose bound is best on these runs."""
    best, chosen = 0.0, None
    for place in range(len(first[0])):
        here = Counter(run[place] for run in first)
        there = Counter(run[place] for run in second)
        for value, hits in here.items():
            low = lower(hits, len(first))
            if low <= 0:
                continue
            loss = math.log(low / upper(there[value], len(second)))
            if loss > best:
                best, chosen = loss, (place, value)
    return chosen
