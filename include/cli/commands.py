"""One function a command; each takes the parsed arguments and the settings."""

from __future__ import annotations

import argparse
import datetime as dt
import getpass
from dataclasses import replace
from pathlib import Path

from include.accounting import format_amount
from include.budget.ledger import Ledger
from include.budget.models import Charge
from include.budget.reader import LedgerReader
from include.budget.store import connect
from include.cli.answer import Answer, table
from include.errors import CuSynError
from include.settings import Settings
from include.stages.ledger import open_ledger as guarded_ledger

SMALLER = "Smaller epsilon is more private."


def open_ledger(settings: Settings) -> Ledger:
    """Open the ledger's writer.

    Privacy: ledger only.
    """
    return guarded_ledger(settings, settings.ledger_url)


def open_reader(settings: Settings) -> LedgerReader:
    """Open the ledger's reader.

    Privacy: ledger only.
    """
    return LedgerReader(connect(settings.ledger_url))


def pools(args: argparse.Namespace, settings: Settings) -> Answer:
    """List the budget pools."""
    found = open_reader(settings).pools()
    header = ["pool", "cap", "spent", "held", "largest release still possible", "status"]
    rows = [
        (
            pool.pool_id,
            f"{pool.epsilon} ({pool.accounting})",
            pool.spent_epsilon,
            pool.held_epsilon,
            pool.largest_release_epsilon,
            pool.status,
        )
        for pool in found
    ]
    empty = "No budget pool is registered yet: run `python -m include.cli register`."
    text = table(header, rows, empty=empty)
    return Answer([pool.to_dict() for pool in found], f"{text}\n\nIn epsilon. {SMALLER}")


def charges(args: argparse.Namespace, settings: Settings) -> Answer:
    """List the charges, newest first."""
    if args.limit < 1:
        raise CuSynError(f"--limit is {args.limit}; write a whole number of at least 1")
    found = open_reader(settings).charges(limit=args.limit)
    header = ["charge", "release", "period", "for", "by", "asked", "granted", "bound by", "state"]
    rows = [
        (
            charge.charge_id,
            charge.release,
            charge.period,
            charge.requester,
            charge.actor,
            format_amount(charge.requested_pico),
            format_amount(charge.granted_pico),
            charge.binding,
            charge.state,
        )
        for charge in found
    ]
    empty = "No release has been asked for yet: trigger a DAG, or run `make demo`."
    return Answer([charge.to_dict() for charge in found], table(header, rows, empty=empty))


def releases(args: argparse.Namespace, settings: Settings) -> Answer:
    """List the published releases, newest first."""
    found = open_reader(settings).releases()
    header = ["release", "period", "epsilon", "published", "where"]
    rows = [
        (
            one.release_id,
            one.period,
            format_amount(one.granted_pico),
            one.published_at + (" (withdrawn)" if one.withdrawn_at else ""),
            one.uri,
        )
        for one in found
    ]
    empty = "Nothing is published yet: trigger a release DAG, or run `make demo`."
    return Answer([one.to_dict() for one in found], table(header, rows, empty=empty))


def release(args: argparse.Namespace, settings: Settings) -> Answer:
    """Show one release with its charge and journal, or audit it."""
    reader = open_reader(settings)
    if args.audit:
        return _audit(args.release_id, settings)
    found = reader.release(args.release_id)
    charge = reader.charge(found.charge_id)
    entries = reader.entries(charge.charge_id)
    data = {
        "release": found.to_dict(),
        "charge": charge.to_dict(),
        "entries": [entry.to_dict() for entry in entries],
    }
    lines = [f"{found.release_id} at {found.uri}", _charge_words(charge), ""]
    lines += [f"{entry.seq:>6}  {entry.at}  {entry.words}" for entry in entries]
    return Answer(data, "\n".join(lines))


def plan(args: argparse.Namespace, settings: Settings) -> Answer:
    """Say what a release file would cost and how exact it would be."""
    from include.cli.planning import plan_file

    return plan_file(Path(args.file), settings, open_reader(settings))


def register(args: argparse.Namespace, settings: Settings) -> Answer:
    """Enter what the steward has declared into the ledger."""
    ledger = open_ledger(settings)
    register_all(ledger, settings, actor=getpass.getuser())
    return pools(args, settings)


def register_all(ledger: Ledger, settings: Settings, *, actor: str) -> None:
    """Register every declared population, dataset and user pool; repeating changes nothing.

    Raises:
        CuSynError: a file is broken, or a figure differs from the registered one.

    Privacy: ledger only.
    """
    from include.config.errors import ConfigError, did_you_mean
    from include.config.loader import list_dataset_names, load_budgets, load_dataset
    from include.stages.register import register as register_declared

    names = list_dataset_names(settings.config_dir)
    datasets = [load_dataset(name, settings.config_dir) for name in names]
    budgets, reader = load_budgets(settings.config_dir), LedgerReader(ledger.engine)
    for user, config in budgets.users.items():
        for name in config.datasets:
            if name not in names and reader.dataset(name) is None:
                raise ConfigError(
                    "budgets.yaml",
                    f"users.{user}.datasets.{name}",
                    f"no file declares this dataset; {did_you_mean(name, names)}",
                )
    register_declared(ledger, budgets, datasets, actor=actor)


def verify(args: argparse.Namespace, settings: Settings) -> Answer:
    """Verify the ledger against itself and against published manifests."""
    from include.budget.anchors import manifest_anchor
    from include.budget.verify import verify as verify_ledger
    from include.stages.ledger import exported_anchors

    anchors, damaged = exported_anchors(settings)
    signed = open_reader(settings).signed_checkpoints()
    complete = bool(anchors or damaged) or not signed
    anchors += [manifest_anchor(Path(one)) for one in args.manifest]
    report = verify_ledger(connect(settings.ledger_url), anchors, damaged)
    said = [str(problem) for problem in report.problems] or ["Nothing is wrong."]
    if not complete:
        said.append(
            f"NOT CHECKED  whether the ledger was rewound: none of the {signed} checkpoints it has "
            f"exported is in {settings.checkpoints_dir}; restore that folder from its copy, or set "
            "CUSYN_CHECKPOINTS_DIR to where it lies."
        )
    text = [
        f"{report.entries} entries, {report.charges} charges, {report.releases} releases; head "
        f"{report.head_seq} {report.head_hash}; {report.anchors} anchors compared",
        *(f"note: {note}" for note in report.notes),
        *said,
    ]
    data = report.to_dict() | {"complete": complete}
    return Answer(data, "\n".join(text), ok=report.ok, complete=complete)


def export(args: argparse.Namespace, settings: Settings) -> Answer:
    """Write the ledger as JSON Lines."""
    import sys

    from include.budget.export import export as export_ledger

    engine = connect(settings.ledger_url)
    if args.file == "-":
        export_ledger(engine, sys.stdout)
        return Answer({"file": "-"}, "")
    try:
        with Path(args.file).open("w", encoding="utf-8") as file:
            export_ledger(engine, file)
    except OSError as fault:
        raise CuSynError(
            f"{args.file or 'an empty name'} cannot be written ({type(fault).__name__}): name a "
            "file in a folder that exists and has room"
        ) from None
    check = f"check it anywhere with: python tools/verify_export.py {args.file}"
    return Answer({"file": args.file}, f"The ledger is written to {args.file}; {check}")


def forecast(args: argparse.Namespace, settings: Settings) -> Answer:
    """Say how long the declared schedules can go on; a file that cannot be read is named."""
    from include.stages.forecast import forecast_files

    found = forecast_files(settings, open_reader(settings), dt.datetime.now(dt.UTC).date())
    text = "\n".join(outlook.words for outlook in found) or "No release file is declared."
    whole = not any(outlook.fault for outlook in found)
    return Answer([outlook.to_dict() for outlook in found], text, ok=whole)


def admin(args: argparse.Namespace, settings: Settings) -> Answer:
    """Act on the ledger itself."""
    from include.cli.admin import run

    return run(args, settings, open_ledger(settings))


def schema(args: argparse.Namespace, settings: Settings) -> Answer:
    """Draft a dataset file from names and types only."""
    from include.data.draft import draft_schema

    path = Path(args.path)
    if not path.exists():
        raise CuSynError(f"{path}: there is no such file; name the source to draft from")
    draft = draft_schema(path)
    return Answer({"draft": draft}, draft)


def internal_evaluation(args: argparse.Namespace, settings: Settings) -> Answer:
    """Print exact figures about public data."""
    from include.cli.internal import evaluate

    return evaluate(args, settings, open_reader(settings))


def _audit(release_id: str, settings: Settings) -> Answer:
    """Re-compute everything the ledger claims about one release, on one page."""
    from include.budget.audit import audit_release
    from include.stages.claim import claim_checks
    from include.synthesis.plan import Plan

    engine = connect(settings.ledger_url)
    report = audit_release(engine, release_id, lambda plan: Plan.from_dict(plan).cost)
    claims = claim_checks(release_id, LedgerReader(engine), settings)
    report = replace(report, checks=(*report.checks, *claims))
    return Answer(report.to_dict(), report.to_text(), ok=not report.wrong, complete=report.complete)


def _charge_words(charge: Charge) -> str:
    return (
        f"charge {charge.charge_id}: {charge.actor} asked epsilon "
        f"{format_amount(charge.requested_pico)} for {charge.requester}, granted "
        f"{format_amount(charge.granted_pico)}, bound by {charge.binding}; {charge.state}"
    )
