"""`python -m include.cli COMMAND`: reads the ledger, plans, verifies; `--json` for scripts."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence

from include.cli.actions import add_actions
from include.cli.answer import Answer
from include.errors import CuSynError
from include.settings import Settings, load_settings


def parser() -> argparse.ArgumentParser:
    """Return the parser; every command is documented in README.md under its name."""
    top = argparse.ArgumentParser(prog="python -m include.cli", description=__doc__)
    subs = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        sub = subs.add_parser(name, help=text, description=text)
        sub.add_argument("--json", action="store_true", help="print JSON")
        return sub

    add("pools", "budget pools: spent, held, remaining, the largest release still possible")
    charges = add("charges", "requests for budget and what became of them, newest first")
    charges.add_argument("--limit", type=int, default=50, help="at most so many")
    add("releases", "published releases, newest first")
    release = add("release", "one release, its charge and its journal in words")
    release.add_argument("release_id")
    release.add_argument("--audit", action="store_true", help="re-cost the plan, check the sums")
    plan = add("plan", "what a release file would cost and how exact it would be; spends nothing")
    plan.add_argument("file", help="a release file, e.g. include/config/releases/x.yaml")
    add("register", "enter declared populations, datasets and user pools into the ledger")
    verify = add("verify", "replay the journal, and compare it with balances and anchors")
    verify.add_argument("--manifest", action="append", default=[], help="a datapackage.json")
    export = add("export", "write the ledger as JSON Lines for tools/verify_export.py")
    export.add_argument("file", nargs="?", default="-", help="a file, or - for the screen")
    package = add("package", "check a release package without Airflow or a database")
    package.add_argument("action", choices=["verify"])
    package.add_argument("path")
    package.add_argument("--key", help="the publisher's public key (PEM), got by another way")
    add("forecast", "how many releases of each schedule still fit, and when one is refused")
    add_actions(add("admin", "withdraw, limits, generations, freeze and reconcile; with a reason"))
    internal = add("internal-evaluation", "exact figures; public data only, refused for the rest")
    internal.add_argument("dataset", help="declared `public_data: true` and not registered")
    internal.add_argument("synthetic", help="a synthetic table, .parquet or .csv")
    schema = add("schema", "draft a dataset file from public knowledge: names and types only")
    schema.add_argument("action", choices=["draft"])
    schema.add_argument("path")
    return top


def command(name: str) -> Callable[[argparse.Namespace, Settings], Answer]:
    """Return what does a command; the recipient's without importing the ledger's libraries."""
    if name == "package":
        from include.cli.recipient import package

        return package
    from include.cli import commands

    found: Callable[[argparse.Namespace, Settings], Answer]
    found = getattr(commands, name.replace("-", "_"))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 when all is well, 1 when something was found or refused, 2 for a wrong call or when not
        all could be checked.
    """
    args = parser().parse_args(argv)
    try:
        answer = command(args.command)(args, load_settings())
    except CuSynError as error:
        print(json.dumps({"error": str(error)}) if args.json else str(error), file=sys.stderr)
        return 1
    try:
        print(json.dumps(answer.data, indent=1, ensure_ascii=False) if args.json else answer.text)
        sys.stdout.flush()
    except BrokenPipeError:  # `... | head` has read enough; what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return answer.exit_code


if __name__ == "__main__":
    sys.exit(main())
