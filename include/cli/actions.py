"""The actions of `admin` and their arguments; apart from what does them, so that help is quick."""

from __future__ import annotations

import argparse


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
    two[-1].add_argument("--checkpoint", help="a newest checkpoint kept elsewhere")
    two[-1].add_argument(
        "--key",
        nargs="*",
        default=[],
        help="public keys of the publisher, where they lie elsewhere",
    )
    two.append(
        add("partitions", "claim that rows of different values are different units", "dataset")
    )
    two[-1].add_argument("--population", required=True, help="whose units")
    two[-1].add_argument("--column", required=True, help="the column that selects a partition")
    two[-1].add_argument("--values", required=True, nargs="+", help="every partition's value")
    for action in two:
        action.add_argument("--authorised-by", required=True, help="a second person")
