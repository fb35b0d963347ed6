"""quality-check: judges the synthetic table and the noisy measurements, never the raw data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from include.errors import CuSynError
from include.stages import facts
from include.stages.asked import require_as_asked
from include.stages.desk import Desk
from include.stages.run import ReleaseRun, Workplace, paid_charge
from include.stages.sealed import sealed_transcript
from include.stages.stated import report_as_stated, require_stated
from include.stages.task import schema_of

if TYPE_CHECKING:
    from include.budget.models import Charge
    from include.quality.fidelity import MarginalFidelity
    from include.quality.report import ReportInput
    from include.synthesis.errors import InterestError


NOT_OVER = ("sealed", "publishing")
"""States in which a report still has an effect."""


class Withheld(CuSynError):
    """The release does not pass the steward's gate; what was spent stays spent."""


@dataclass(frozen=True)
class Checked:
    """What the stage found.

    Privacy: post-processing.
    """

    charge_id: str
    words: str


def quality_check(run: ReleaseRun, place: Workplace) -> Checked:
    """Check the synthetic table, write the report, and withhold what fails the declared gate.

    A report in the work folder is believed only if the journal names it last; any other is made
    again, and named before its verdict has any effect. The verdict depends on the sealed transcript
    and the stated table only, so making a report again is no second try at the gate.

    Returns:
        The charge and a line for the log.

    Raises:
        Withheld: the gate said no; the ledger records why.
        DeclarationChanged: a file says something else now than was asked.
        CuSynError: the table is missing.
        DigestMismatch: the table is not the one the journal names, or publishing has begun with
            a report that is lost and does not come out the same again.
        WrongState: the gate was edited after the table did not pass it.

    Privacy: post-processing.
    """
    charge = paid_charge(run, place)
    if charge.transcript_digest is None:
        raise CuSynError(
            f"charge {charge.charge_id} is {charge.state}: no sealed measurement to judge; "
            "run synthesize first"
        )
    require_as_asked(run, place, charge)
    desk = Desk(place.desk(charge.charge_id))
    made = require_stated(place, charge, desk) if charge.state in NOT_OVER else desk.made()
    report = _report(run, place, charge, desk, made)
    if not report.verdict.passed:
        reason = "; ".join(report.verdict.reasons)
        if charge.state == "sealed":
            place.ledger.withhold(charge.charge_id, reason[:500].strip())
        raise Withheld(f"charge {charge.charge_id}: withheld, what was spent stays spent: {reason}")
    words = (
        f"charge {charge.charge_id}: {sum(check.passed for check in report.checks)} of "
        f"{len(report.checks)} rules hold on the synthetic table; "
        f"{_interest_words(report)}."
    )
    return Checked(charge.charge_id, words)


def _report(
    run: ReleaseRun, place: Workplace, charge: Charge, desk: Desk, made: dict[str, bytes]
) -> ReportInput:
    from include.quality.report import parse_report, render_html, render_json

    stated = report_as_stated(place, charge, desk)
    if stated is not None:
        return parse_report(stated[1][desk.report_json.name])
    report = _judge(run, place, charge, desk, made)
    if charge.state not in NOT_OVER:
        return report  # the charge is over: its report is the stated one, or none
    html = desk.write(desk.report_html, render_html(report).encode())
    twin = desk.write(desk.report_json, render_json(report).encode())
    place.ledger.state_report(
        charge.charge_id,
        twin,
        beside={desk.report_html.name: html},
        passed=report.verdict.passed,
    )
    return report


def _judge(
    run: ReleaseRun, place: Workplace, charge: Charge, desk: Desk, made: dict[str, bytes]
) -> ReportInput:
    """Judge the very bytes that were held against the journal; they are let go once read."""
    import io

    import numpy as np
    import pandas as pd

    from include.data.own_rules import check_own
    from include.quality.checks import check_synthetic
    from include.quality.facts import CheckOutcome
    from include.quality.fidelity import Thresholds, assess, gate
    from include.quality.gather import (
        codes_in_bins,
        columns_from,
        dataset_from,
        interest_from,
        measurements_from,
    )
    from include.quality.report import ReportInput
    from include.synthesis import synthesizer
    from include.synthesis.plan import Plan

    if not {desk.table.name, desk.codes.name, desk.errors.name} <= made.keys():
        raise CuSynError(
            f"charge {charge.charge_id}: its synthetic table is missing; run synthesize again, "
            "which costs nothing"
        )
    assert charge.plan is not None
    plan = Plan.from_dict(charge.plan)
    transcript = sealed_transcript(charge, desk)
    schema = schema_of(run)
    bins = synthesizer(plan.mechanism).bins(transcript, plan)
    columns = columns_from(schema, bins)
    drawn = np.load(io.BytesIO(made.pop(desk.codes.name)), allow_pickle=False)
    codes = codes_in_bins(drawn, schema, bins)
    interest = interest_from(_errors(made.pop(desk.errors.name)), plan)
    frame = pd.read_parquet(io.BytesIO(made.pop(desk.table.name)))
    checks = check_synthetic(frame, columns, expected_rows=len(codes))
    # The steward's own expectations are reported, not gated on: a model that draws one odd row
    # among thousands would otherwise withhold what is already paid for.
    own = [
        CheckOutcome(found.column or None, found.rule, found.passed, found.raised)
        for found in check_own(frame, run.dataset)
    ]
    fidelity = assess(codes, columns, measurements_from(transcript), interest)
    return ReportInput(
        release=facts.release_facts(run, _sealed_at(charge, place)),
        dataset=dataset_from(run.dataset),
        privacy=facts.privacy_facts(run, charge, plan, transcript),
        budget=facts.budget_facts(charge, place.reader, plan.events),
        columns=columns,
        fidelity=fidelity,
        checks=(*checks, *own),
        verdict=gate(fidelity, checks, Thresholds.from_mapping(run.release.gate)),
    )


def _errors(data: bytes) -> list[InterestError]:
    """Read back the reached errors that `synthesize` left, from the noise alone."""
    from include.synthesis.errors import InterestError

    return [
        InterestError(clique=tuple(error.pop("columns")), **error) for error in json.loads(data)
    ]


def _sealed_at(charge: Charge, place: Workplace) -> str:
    entries = place.reader.entries(charge.charge_id)
    return next(entry.at for entry in entries if entry.seq == charge.sealed_seq)


def _interest_words(report: ReportInput) -> str:
    queries = report.fidelity.interest
    if not queries:
        return "no interest query was named"
    shown = ", ".join(_query_words(query) for query in queries)
    return (
        f"share of rows that noise moves to a wrong cell, at most, in 95 of 100 releases: {shown}"
    )


def _query_words(query: MarginalFidelity) -> str:
    """Say how far noise alone moves a query; a swamped one is called so."""
    from include.synthesis.plan import USABLE_TV

    name = " x ".join(query.clique)
    if query.typical_tv is None:
        return f"{name} was not measured"
    swamped = query.typical_tv > USABLE_TV
    return f"{name} {query.bound95_tv:.1%}{' (swamped by noise: NOT usable)' if swamped else ''}"
