"""`admin`: what a steward does to the ledger itself, each act journalled with who and why."""

from __future__ import annotations

import argparse
import getpass
import json
from collections.abc import Callable
from pathlib import Path

from include.accounting import parse_amount
from include.budget.ledger import Ledger
from include.cli.answer import Answer
from include.errors import CuSynError
from include.settings import Settings


def add_actions(parser: argparse.ArgumentParser) -> None:
    """Add the actions of `admin` to its parser."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")

    def add(name: str, text: str, *arguments: str) -> argparse.ArgumentParser:
        action = actions.add_parser(name, help=text, description=text)
        for argument in arguments:
            action.add_argument(argument)
        action.add_argument("--reason", required=True, help="why; it stays in the journal")
        return action

    add(
        "withdraw", "mark a published release as withdrawn, with a notice for readers", "release_id"
    )
    add("withhold", "keep a sealed charge from ever being published", "charge_id")
    add("void", "give back a reservation that nobody opened", "charge_id")
    add("forfeit", "give up an opened charge; what was spent stays spent", "charge_id")
    add("limit", "change a limit: population:NAME or user:NAME@DATASET", "subject", "epsilon")
    add("amend", "enter a dataset's changed schema and added populations", "dataset")
    two = [add("generation", "open a new generation of a budget pool", "subject", "epsilon")]
    add("freeze", "stop every budget pool until it is reconciled")
    two.append(add("reconcile", "charge what a restored backup has lost, and thaw the pools"))
    two[-1].add_argument("--checkpoint", help="the newest exported checkpoint")
    for action in two:
        action.add_argument("--authorised-by", required=True, help="a second person")


def run(args: argparse.Namespace, settings: Settings, ledger: Ledger) -> Answer:
    """Do one act as the operating system's user.

    Raises:
        CuSynError: the ledger refused; nothing was changed.

    Privacy: ledger only.
    """
    acts: dict[str, Callable[[], str]] = {
        "withdraw": lambda: _withdraw(args, settings, ledger),
        "withhold": lambda: ledger.withhold(args.charge_id, args.reason).state,
        "void": lambda: ledger.void(args.charge_id, args.reason).state,
        "forfeit": lambda: ledger.forfeit(args.charge_id, args.reason).state,
        "limit": lambda: _limit(args, ledger),
        "amend": lambda: _amend(args, settings, ledger),
        "generation": lambda: _generation(args, ledger),
        "freeze": lambda: _freeze(args, ledger),
        "reconcile": lambda: _reconcile(args, ledger),
    }
    said = acts[args.action]()
    return Answer({"action": args.action, "result": said}, f"{args.action}: {said}")


def _withdraw(args: argparse.Namespace, settings: Settings, ledger: Ledger) -> str:
    """Withdraw in the ledger first, then put the notice where readers look."""
    from include.budget.reader import LedgerReader
    from include.publishing.destinations import target_for
    from include.publishing.targets import prefix_of

    ledger.withdraw(args.release_id, args.reason, _actor())
    found = LedgerReader(ledger.engine).release(args.release_id)
    path = prefix_of(found.release, found.period, found.release_id)
    base, inside, _ = found.uri.partition(path)
    if not inside:
        raise CuSynError(
            f"{args.release_id} is withdrawn in the ledger; put a notice beside it at {found.uri}"
        )
    target_for(base, base=settings.project_root).withdraw(
        found.release,
        found.period,
        found.release_id,
        reason=args.reason,
        at=found.withdrawn_at or "",
    )
    return f"{args.release_id} is withdrawn; readers see the notice at {base}"


def _limit(args: argparse.Namespace, ledger: Ledger) -> str:
    limit = None if args.epsilon == "none" else parse_amount(args.epsilon, name="epsilon")
    ledger.change_limit(args.subject, limit, actor=_actor(), reason=args.reason)
    return f"the limit of {args.subject} is now {args.epsilon}"


def _amend(args: argparse.Namespace, settings: Settings, ledger: Ledger) -> str:
    from include.budget.reader import LedgerReader
    from include.config.loader import load_dataset
    from include.data.schema import Schema

    dataset = load_dataset(args.dataset, settings.config_dir)
    known = LedgerReader(ledger.engine).populations_of(args.dataset)
    added = {
        name: {"id_column": binding.id_column, "max_rows": binding.max_rows}
        for name, binding in dataset.bindings.items()
        if name not in known
    }
    ledger.amend_dataset(
        args.dataset,
        schema_digest=Schema.from_config(dataset).digest,
        populations=added,
        actor=_actor(),
        reason=args.reason,
    )
    return f"{args.dataset} is registered as its file declares it now"


def _generation(args: argparse.Namespace, ledger: Ledger) -> str:
    ledger.new_generation(
        args.subject,
        parse_amount(args.epsilon, name="epsilon"),
        actor=_actor(),
        authorised_by=args.authorised_by,
        reason=args.reason,
    )
    return f"{args.subject} has a new generation of epsilon {args.epsilon}; the old one is retired"


def _freeze(args: argparse.Namespace, ledger: Ledger) -> str:
    ledger.freeze(args.reason, actor=_actor())
    return "every budget pool is frozen"


def _reconcile(args: argparse.Namespace, ledger: Ledger) -> str:
    from include.budget.reconcile import Evidence

    seen = None
    if args.checkpoint:
        try:
            seen = json.loads(json.loads(Path(args.checkpoint).read_text("utf-8"))["body"])
        except (OSError, ValueError, KeyError, TypeError):
            raise CuSynError(
                f"{args.checkpoint}: not an exported checkpoint; name a checkpoint-*.json"
            ) from None
    charged = ledger.reconcile(
        Evidence(checkpoint=seen),
        actor=_actor(),
        authorised_by=args.authorised_by,
        reason=args.reason,
    )
    return f"{len(charged)} pools were charged what was lost; the pools are open again"


def _actor() -> str:
    return getpass.getuser()
