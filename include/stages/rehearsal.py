"""A rehearsal of a release on made-up data: what error its workload can be expected to have.

Interest queries are predicted from their noise alone. The workload's error also depends on which
marginals get measured and how well the model fills in the rest, so the whole mechanism is run, with
real noise, on a table that was made up for the purpose: its size and domain are public, and its
structure (a mixture of a few kinds of rows) is nobody's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from include.accounting import Event
    from include.synthesis.plan import Plan

KINDS = 6  # kinds of rows in the mixture
MOST_MARGINALS = 200
MOST_ROWS = 200_000  # a larger table would show the same, later


class _Forgetful:
    """A round log for data that nobody needs to be protected from."""

    def begin(self, round: int, events: Sequence[Event]) -> None:
        """Nothing is charged for made-up rows."""

    def answer(self, round: int, payload: dict[str, Any]) -> None:
        """Nothing is kept."""


def expected_workload_error(plan: Plan) -> float | None:
    """Run a plan on made-up data and return the mean error of its workload.

    Args:
        plan: the plan; without a public row count nothing can be said.

    Returns:
        Mean total variation distance over the workload's marginals by their weights, 0 to 1, one
        draw of it; None without `expected_rows`.

    Privacy: ledger only (no protected row is read).
    """
    import numpy as np

    from include.data.private import ProtectedTable
    from include.synthesis import synthesizer

    rows = plan.task.expected_rows
    if not rows or rows > MOST_ROWS:
        return None
    codes = _made_up(list(plan.task.domain.values()), rows)
    table = ProtectedTable.from_codes(codes, plan.task.domain, plan.task.max_rows)
    mechanism = synthesizer(plan.mechanism)
    transcript = mechanism.measure(table, plan, _Forgetful())
    model = mechanism.fit(transcript, plan)
    place = {column: i for i, column in enumerate(plan.task.domain)}
    total = weights = 0.0
    for clique, weight in plan.task.workload[:MOST_MARGINALS]:
        cells = tuple(plan.task.domain[column] for column in clique)
        index = np.ravel_multi_index([codes[:, place[column]] for column in clique], cells)
        truth = np.bincount(index, minlength=math.prod(cells)) / rows
        guess = model.marginal(clique)
        total += weight * 0.5 * float(np.abs(truth - guess / max(guess.sum(), 1e-9)).sum())
        weights += weight
    return total / weights


def _made_up(cells: list[int], rows: int) -> npt.NDArray[np.int64]:
    """Draw rows of a few kinds; the same for the same domain and size."""
    import numpy as np

    rng = np.random.Generator(np.random.PCG64(rows))
    kind = rng.choice(KINDS, size=rows, p=rng.dirichlet(np.full(KINDS, 2.0)))
    columns = []
    for size in cells:
        shares = rng.dirichlet(np.full(size, 0.7), size=KINDS)
        bounds = shares.cumsum(axis=1)[kind]
        columns.append(np.minimum((rng.random((rows, 1)) > bounds).sum(axis=1), size - 1))
    return np.stack(columns, axis=1)
