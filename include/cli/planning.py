"""`plan FILE`: what a release would cost and how exact it would be, for a person."""

from __future__ import annotations

from pathlib import Path

from include.accounting import format_amount, format_delta
from include.budget.errors import LedgerUnavailable
from include.budget.reader import LedgerReader, Pool
from include.cli.answer import Answer, table
from include.config.loader import file_label
from include.settings import Settings
from include.stages.beforehand import require_budgets, require_delta, require_predecessor
from include.stages.planning import DryRun, dry_run, run_of_file
from include.synthesis.plan import Prediction


def plan_file(path: Path, settings: Settings, reader: LedgerReader) -> Answer:
    """Plan a release file at the epsilon it asks for.

    Raises:
        CuSynError: the file is broken, or no plan exists within its epsilon and memory bound.

    Privacy: ledger only.
    """
    run = run_of_file(path, settings)
    pools = _pools(reader)
    if pools:
        require_predecessor(run.release, reader, file_label(path))
        require_delta(run, reader)
        require_budgets(run, reader, only_planned=True)
    found = dry_run(run, pools)
    return Answer(found.to_dict(), _text(found))


def _pools(reader: LedgerReader) -> list[Pool]:
    try:
        return reader.pools()
    except LedgerUnavailable:  # planning needs no ledger; it then prices the plan alone
        return []


def _text(found: DryRun) -> str:
    release, planned = found.run.release, found.plan
    lines = [
        f"{release.release}: {planned.mechanism}, epsilon {release.epsilon} at delta "
        f"{format_delta(planned.delta_exponent)}, costs rho {format_amount(planned.cost.rho_pico)} "
        f"in {len(planned.events)} measurements and selections. Nothing is spent by planning.",
        "",
        table(
            ["pool", "would be charged", "fits", "such releases left"],
            [
                (
                    one.pool,
                    f"{one.cost} {one.currency}",
                    "yes" if one.fits else "NO",
                    one.releases_left,
                )
                for one in found.prices
            ],
            empty="No pool of this release is registered: run `python -m include.cli register`.",
        ),
    ]
    if planned.predictions:
        header = ["interest query", "cells", "noise", "expected error", "usable from epsilon"]
        lines += ["", table(header, map(_prediction, planned.predictions), empty="")]
    if found.workload_error is not None:
        error = f"{found.workload_error:.1%}"
        lines += ["", f"In a rehearsal on made-up rows the workload's mean error was {error}."]
    lines += ["", *planned.warnings] if planned.warnings else []
    return "\n".join(lines)


def _prediction(query: Prediction) -> tuple[object, ...]:
    error = "-" if query.expected_tv is None else f"{query.expected_tv:.1%}"
    name = " x ".join(query.clique)
    return (name, query.cells, f"{query.sigma:.4g}", error, query.usable_epsilon or "-")
