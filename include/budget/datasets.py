"""Datasets, the populations whose people they hold, and snapshots of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from include.accounting.amounts import format_delta
from include.budget.errors import DeclarationMismatch, InvalidRequest, UnknownName
from include.budget.journal import Change, Draft
from include.budget.models import require_text
from include.budget.pools import require_equal
from include.budget.store.transaction import Transaction

_FIX = (
    "restore it in the dataset's file, or enter the change with `python -m include.cli admin amend "
    "{} --reason WHY`"
)


def register_dataset(
    tx: Transaction,
    name: str,
    *,
    populations: Mapping[str, Mapping[str, Any]],
    schema_digest: str,
    actor: str,
    reuse: str = "off",
) -> None:
    """Register a dataset and every population its rows come from.

    Args:
        tx: The transaction.
        name: Name of the dataset.
        populations: For each population its `id_column` (or None) and enforced `max_rows`.
        schema_digest: Digest of the declared schema.
        actor: Who registers it.
        reuse: Whether later releases may use earlier transcripts ("off", or the declared policy).

    Raises:
        UnknownName: A population is not registered.
        DeclarationMismatch: The populations count at different deltas, or the dataset is registered
            otherwise.

    Privacy: ledger only.
    """
    require_text(name, name="dataset")
    if not populations:
        raise InvalidRequest(f"dataset {name}: name at least one population.")
    _one_delta(tx, name, sorted(populations))
    links = {
        population: {
            "id_column": facts.get("id_column"),
            "max_rows": _rows(facts.get("max_rows", 1), name, population),
        }
        for population, facts in sorted(populations.items())
    }
    declared = {"schema": schema_digest, "reuse": reuse, "populations": links}
    known = tx.row("dataset", name)
    if known is not None:
        registered = {
            "schema": known["schema_digest"],
            "reuse": known["reuse"],
            "populations": {
                row["population"]: {"id_column": row["id_column"], "max_rows": row["max_rows"]}
                for row in tx.rows("dataset_population", dataset=name)
            },
        }
        require_equal(f"dataset {name}", declared, registered, lambda _: _FIX.format(name))
        return
    changes = [Change("dataset", name, {"schema_digest": schema_digest, "reuse": reuse})]
    changes += [
        Change("dataset_population", f"{name}/{population}", _link(name, population, facts))
        for population, facts in links.items()
    ]
    tx.append(
        Draft(
            kind="register_dataset",
            actor=require_text(actor, name="actor"),
            words=f"{actor} registered dataset {name} on {', '.join(links)}.",
            changes=changes,
        )
    )


def amend_dataset(
    tx: Transaction,
    name: str,
    *,
    schema_digest: str | None = None,
    populations: Mapping[str, Mapping[str, Any]] | None = None,
    actor: str,
    reason: str,
) -> None:
    """Change a dataset's schema or add populations it draws on; none is ever taken away.

    Args:
        tx: The transaction.
        name: A registered dataset.
        schema_digest: Digest of the new schema.
        populations: Populations to add, each with `id_column` and `max_rows`.
        actor: Who changes it.
        reason: Why.

    Raises:
        UnknownName: The dataset or a population is not registered.

    Privacy: ledger only.
    """
    known = tx.row("dataset", name)
    if known is None:
        raise UnknownName(f"dataset {name} is not registered: register it first.")
    changes = []
    if schema_digest is not None:
        was = {"schema_digest": known["schema_digest"]}
        changes.append(Change("dataset", name, {"schema_digest": schema_digest}, was=was))
    for population, facts in sorted((populations or {}).items()):
        if tx.row("population", population) is None:
            raise UnknownName(f"population {population} is not registered: register it first.")
        link = {
            "dataset": name,
            "population": population,
            "id_column": facts.get("id_column"),
            "max_rows": facts.get("max_rows", 1),
        }
        changes.append(Change("dataset_population", f"{name}/{population}", link))
    tx.append(
        Draft(
            kind="amend_dataset",
            actor=require_text(actor, name="actor"),
            words=f"{actor} amended dataset {name}: {require_text(reason, name='reason')}.",
            changes=changes,
        )
    )


def register_snapshot(
    tx: Transaction,
    snapshot_id: str,
    *,
    dataset: str,
    commitment: str,
    mac: str,
    locator: str,
    actor: str,
    partition: str | None = None,
) -> str:
    """Record a snapshot of the protected data, or recognise a known one.

    Args:
        tx: The transaction.
        snapshot_id: A fresh random id.
        dataset: Its dataset.
        commitment: SHA-256 of (nonce, digest); the nonce stays in the protected store.
        mac: Keyed MAC of the content; stays in this table, is never journalled or exported.
        locator: Where it lies; likewise.
        actor: Who took it.
        partition: The partition it holds, as charges name it (`partition_name`); None for all rows.

    Returns:
        The id of the snapshot: the known one when the content is known.

    Raises:
        UnknownName: The dataset is not registered.

    Privacy: ledger only.
    """
    if tx.row("dataset", dataset) is None:
        raise UnknownName(f"dataset {dataset} is not registered: register it first.")
    known = tx.rows("snapshot", dataset=dataset, mac=mac)
    if known:
        return str(known[0]["snapshot_id"])
    tx.append(
        Draft(
            kind="register_snapshot",
            actor=require_text(actor, name="actor"),
            words=f"Snapshot {snapshot_id} of dataset {dataset}"
            f"{f', partition {partition},' if partition else ''} taken and committed to.",
            changes=[
                Change(
                    "snapshot",
                    snapshot_id,
                    {"dataset": dataset, "partition": partition, "commitment": commitment},
                    aside={"mac": mac, "locator": locator},
                )
            ],
        )
    )
    return snapshot_id


def _one_delta(tx: Transaction, dataset: str, populations: Sequence[str]) -> None:
    deltas: dict[str, str] = {}
    for population in populations:
        row = tx.row("population", population)
        if row is None:
            raise UnknownName(
                f"dataset {dataset}: population {population} is not registered: register it first."
            )
        deltas[population] = format_delta(row["delta_exponent"])
    if len(set(deltas.values())) > 1:
        told = ", ".join(f"{population} {delta}" for population, delta in deltas.items())
        raise DeclarationMismatch(
            f"dataset {dataset}: its populations count at different deltas ({told}): a release "
            "needs one."
        )


def _link(dataset: str, population: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    return {"dataset": dataset, "population": population, **facts}


def _rows(value: object, dataset: str, population: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidRequest(
            f"dataset {dataset}, population {population}: max_rows is a whole number from 1."
        )
    return value
