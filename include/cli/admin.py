"""`admin`: what a steward does to the ledger itself, each act journalled with who and why."""

from __future__ import annotations

import argparse
import getpass
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from include.accounting import parse_amount
from include.budget.ledger import GUARD_ACTOR, Ledger
from include.budget.models import Charge
from include.budget.reader import LedgerReader
from include.cli.answer import Answer
from include.errors import CuSynError
from include.settings import Settings


def run(args: argparse.Namespace, settings: Settings, ledger: Ledger) -> Answer:
    """Do one act as the operating system's user.

    Raises:
        CuSynError: the ledger refused; nothing was changed.

    Privacy: ledger only.
    """
    acts: dict[str, Callable[[], str]] = {
        "withdraw": lambda: _withdraw(args, settings, ledger),
        "withhold": lambda: _said(ledger.withhold(args.charge_id, args.reason, actor=_actor())),
        "void": lambda: _said(ledger.void(args.charge_id, args.reason, actor=_actor())),
        "forfeit": lambda: _said(ledger.forfeit(args.charge_id, args.reason, actor=_actor())),
        "limit": lambda: _limit(args, ledger),
        "amend": lambda: _amend(args, settings, ledger),
        "generation": lambda: _generation(args, ledger),
        "partitions": lambda: _partitions(args, settings, ledger),
        "freeze": lambda: _freeze(args, ledger),
        "reconcile": lambda: _reconcile(args, settings, ledger),
    }
    said = acts[args.action]()
    return Answer({"action": args.action, "result": said}, f"{args.action}: {said}")


def _said(charge: Charge) -> str:
    """Tell the state, and whose reason counts where somebody was earlier."""
    if charge.replayed:
        return f"{charge.charge_id} was already {charge.state}; the earlier reason stays"
    return charge.state


def _withdraw(args: argparse.Namespace, settings: Settings, ledger: Ledger) -> str:
    from include.stages.run import Workplace
    from include.stages.withdraw import withdraw

    return withdraw(Workplace(settings, ledger), args.release_id, args.reason, _actor())


def _limit(args: argparse.Namespace, ledger: Ledger) -> str:
    limit = None if args.epsilon == "none" else parse_amount(args.epsilon, name="epsilon")
    ledger.change_limit(args.subject, limit, actor=_actor(), reason=args.reason)
    return f"the limit of {args.subject} is now {args.epsilon}"


def _amend(args: argparse.Namespace, settings: Settings, ledger: Ledger) -> str:
    """Enter what may change under a known name: columns, and populations that are new."""
    from include.config.loader import load_dataset
    from include.stages.declared import declaration, require_units

    dataset, reader = load_dataset(args.dataset, settings.config_dir), LedgerReader(ledger.engine)
    require_units(dataset, reader.units())
    declared, known = declaration(dataset), reader.dataset(args.dataset) or {"populations": {}}
    wanted, bound = declared["populations"], known["populations"]
    for population, binding in bound.items():
        if population not in wanted:
            raise CuSynError(
                f"{args.dataset}: population {population} is registered and missing in the file; "
                "none is ever taken away, so restore it"
            )
        if wanted[population] != binding:
            raise CuSynError(
                f"{args.dataset}: population {population} is registered with {_bound(binding)}, "
                f"the file says {_bound(wanted[population])}; releases were made under the first, "
                "so restore it or register the data under a new dataset name"
            )
    if known.get("reuse", declared["reuse"]) != declared["reuse"]:
        raise CuSynError(
            f"{args.dataset}: registered with reuse {known['reuse']}, the file says "
            f"{declared['reuse']}; restore it or register the data under a new dataset name"
        )
    ledger.amend_dataset(
        args.dataset,
        schema_digest=declared["schema_digest"],
        populations={name: one for name, one in wanted.items() if name not in bound},
        actor=_actor(),
        reason=args.reason,
    )
    return f"{args.dataset} is registered as its file declares it now"


def _bound(binding: dict[str, Any]) -> str:
    return f"id_column {binding['id_column'] or 'none'} and max_rows {binding['max_rows']}"


def _generation(args: argparse.Namespace, ledger: Ledger) -> str:
    ledger.new_generation(
        args.subject,
        parse_amount(args.epsilon, name="epsilon"),
        actor=_actor(),
        authorised_by=args.authorised_by,
        reason=args.reason,
    )
    return f"{args.subject} has a new generation of epsilon {args.epsilon}; the old one is retired"


def _partitions(args: argparse.Namespace, settings: Settings, ledger: Ledger) -> str:
    _require_column(args, settings)
    ledger.register_partitions(
        args.population,
        args.dataset,
        column=args.column,
        values=args.values,
        actor=_actor(),
        authorised_by=args.authorised_by,
        reason=args.reason,
    )
    return f"{len(args.values)} partitions of {args.dataset} by {args.column} compose in parallel"


def _require_column(args: argparse.Namespace, settings: Settings) -> None:
    """Refuse a column that the dataset's file lacks; a claim on it would stand for ever."""
    from include.config.checks import partition_fault
    from include.config.errors import ConfigError
    from include.config.loader import load_dataset

    try:
        dataset = load_dataset(args.dataset, settings.config_dir)
    except ConfigError as fault:
        if fault.file != "datasets":
            raise
        return  # registered, but declared in no file of this machine
    unknown = partition_fault(args.column, dataset)
    if unknown:
        raise CuSynError(f"partitions of {args.dataset}: --column: {unknown}")


def _freeze(args: argparse.Namespace, ledger: Ledger) -> str:
    ledger.freeze(args.reason, actor=_actor())
    return "every budget pool is frozen; `admin reconcile` opens them again"


def _reconcile(args: argparse.Namespace, settings: Settings, ledger: Ledger) -> str:
    """Charge up to the most that any signed checkpoint has seen, and account for each of them."""
    from include.budget.anchors import CHECKPOINT_PATTERN
    from include.budget.reconcile import Evidence

    reader, folder = LedgerReader(ledger.engine), settings.checkpoints_dir
    ledger_id, keys = str(reader.head()["ledger_id"]), _public_keys(args, settings)
    files = sorted(folder.glob(CHECKPOINT_PATTERN))
    seen = {path.name: _signed(path, keys, ledger_id) for path in files}
    if not seen and not args.checkpoint and (reader.releases() or _noticed(reader)):
        raise CuSynError(
            f"{folder} holds no checkpoint although some were exported; restore them, since they "
            "are what remembers the loss"
        )
    if args.checkpoint:
        given = Path(args.checkpoint)
        facts = _signed(given, keys, ledger_id)
        for name, one in seen.items():
            if (one["at"], one["seq"]) > (facts["at"], facts["seq"]):
                raise CuSynError(
                    f"{given}: {name} in {folder} is newer; leave --checkpoint out to use them all"
                )
        seen[given.name] = facts
    charged = ledger.reconcile(
        Evidence(list(seen.values())),
        actor=_actor(),
        authorised_by=args.authorised_by,
        reason=args.reason,
    )
    return (
        f"{len(charged)} pools were charged what was lost, compared with {len(seen)} signed "
        "checkpoints; the pools are open again"
    )


def _noticed(reader: LedgerReader) -> bool:
    """Tell whether the ledger's guard has ever seen a checkpoint that the ledger lacks."""
    return any(one.kind == "freeze" and one.actor == GUARD_ACTOR for one in reader.entries())


def _public_keys(args: argparse.Namespace, settings: Settings) -> dict[str, bytes]:
    """Read the keys that may have signed: those kept here and those given, by id."""
    from include.publishing.signing import PUBLIC_FOLDER, key_id

    files = [*(settings.keys_dir / PUBLIC_FOLDER).glob("*.pem"), *map(Path, args.key)]
    try:
        pems = [path.read_bytes() for path in files]
    except OSError as fault:
        raise CuSynError(f"{fault.filename}: the public key cannot be read; check --key") from None
    return {key_id(pem): pem for pem in pems}


def _signed(path: Path, keys: dict[str, bytes], ledger_id: str) -> dict[str, Any]:
    """Open a checkpoint of this ledger that a known key has signed; anything else is no evidence.

    Raises:
        CuSynError: it is no checkpoint, of another ledger, or not signed by a known key.
    """
    from include.budget.checkpoint import message
    from include.publishing.signing import verify

    try:
        told = json.loads(path.read_text("utf-8"))
        body, signature = str(told["body"]), bytes.fromhex(told["signature"])
        facts: dict[str, Any] = json.loads(body)
        about, key = facts["ledger_id"], str(told["key_id"])
    except (OSError, ValueError, KeyError, TypeError):
        raise CuSynError(f"{path}: not an exported checkpoint; name a checkpoint-*.json") from None
    if key not in keys:
        raise CuSynError(
            f"{path}: signed with key {key}, which is unknown here; give its public half with --key"
        )
    if not verify(keys[key], signature, message(body)):
        raise CuSynError(
            f"{path}: its signature does not hold; restore the checkpoint from its copy"
        )
    if about != ledger_id:
        raise CuSynError(f"{path}: about ledger {about}, not {ledger_id}; keep it elsewhere")
    return facts


def _actor() -> str:
    return getpass.getuser()
