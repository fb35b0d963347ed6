"""The dry run of a release: exact cost, expected error, what would bind. Spends nothing."""

from __future__ import annotations

from pathlib import Path

from include.accounting import Accounting, cost_in_currency, format_amount
from include.budget.errors import LedgerUnavailable
from include.budget.reader import Pool
from include.cli.answer import Answer, table
from include.settings import Settings
from include.stages.run import ReleaseRun
from include.stages.task import delta_exponent_of, synthesis_task
from include.synthesis import synthesizer
from include.synthesis.plan import Plan


def plan_file(path: Path, settings: Settings) -> Answer:
    """Plan a release file at the epsilon it asks for.

    Raises:
        CuSynError: the file is broken, or no plan exists within its epsilon and memory bound.

    Privacy: ledger only.
    """
    run = run_of_file(path, settings)
    delta = delta_exponent_of(run)
    mechanism = synthesizer(run.release.mechanism)
    planned = mechanism.plan(synthesis_task(run), run.release.epsilon_pico, delta)
    costs = _costs(run, planned, delta, settings)
    data = {"plan": planned.to_dict(), "costs": costs, "warnings": list(planned.warnings)}
    return Answer(data, _text(run, planned, costs))


def run_of_file(path: Path, settings: Settings) -> ReleaseRun:
    """Return a release file as a run that was never started.

    Raises:
        CuSynError: the file is broken.

    Privacy: ledger only.
    """
    from include.config.loader import load_checked

    checked = load_checked(path, settings.config_dir)
    return ReleaseRun(
        release=checked.release,
        dataset=checked.dataset,
        budgets=checked.budgets,
        period="plan",
        actor="plan",
        scheduled=False,
        dag_id="",
        run_id="",
    )


def _costs(
    run: ReleaseRun, planned: Plan, delta: int, settings: Settings
) -> list[dict[str, str | bool]]:
    """Price the plan in the currency of each pool it would charge, to the last digit."""
    requester, dataset = run.release.requester, run.dataset
    return [
        {
            "pool": pool.pool_id,
            "currency": "rho" if pool.accounting == "zcdp" else "epsilon",
            "cost": format_amount(
                amount := cost_in_currency(planned.cost, _accounting(pool), delta)
            ),
            "fits": amount <= pool.remaining_pico,
            "releases_left": str(pool.remaining_pico // amount),
        }
        for pool in _registered(settings)
        if (pool.kind == "dataset" and pool.owner in dataset.populations)
        or (pool.kind == "user" and pool.owner == requester and pool.dataset == dataset.dataset)
    ]


def _accounting(pool: Pool) -> Accounting:
    return "zcdp" if pool.accounting == "zcdp" else "epsilon"


def _registered(settings: Settings) -> list[Pool]:
    from include.cli.commands import open_reader

    try:
        return open_reader(settings).pools()
    except LedgerUnavailable:  # planning needs no ledger; it then prices the plan alone
        return []


def _text(run: ReleaseRun, planned: Plan, costs: list[dict[str, str | bool]]) -> str:
    release = run.release
    lines = [
        f"{release.release}: {planned.mechanism}, epsilon {release.epsilon} at delta "
        f"{planned.to_dict()['delta']}, costs rho {format_amount(planned.cost.rho_pico)} in "
        f"{len(planned.events)} measurements and selections. Nothing is spent by planning.",
        "",
    ]
    rows = [
        (
            c["pool"],
            f"{c['cost']} {c['currency']}",
            "yes" if c["fits"] else "NO",
            c["releases_left"],
        )
        for c in costs
    ]
    empty = "No pool of this release is registered: run `python -m include.cli register`."
    lines += [table(["pool", "would be charged", "fits", "such releases left"], rows, empty=empty)]
    if planned.predictions:
        shown = [
            (
                " x ".join(p.clique),
                p.cells,
                f"{p.sigma:.4g}",
                "-" if p.expected_tv is None else f"{p.expected_tv:.1%}",
                p.usable_epsilon or "-",
            )
            for p in planned.predictions
        ]
        header = [
            "interest query",
            "cells",
            "noise a cell",
            "expected error",
            "usable from epsilon",
        ]
        lines += ["", table(header, shown, empty="")]
    lines += ["", *planned.warnings] if planned.warnings else []
    return "\n".join(lines)
