"""What a steward declares: populations, datasets, users' budgets. Declaring the same twice is fine.

Declaring something else is not: a budget is never refilled by editing a file. Raising it is a new
generation (see `amendments`), a lower or higher limit for one request a new line of history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from include.accounting.accountant import Accounting
from include.accounting.amounts import DELTA_EXPONENTS, format_amount, format_delta
from include.accounting.zcdp import rho_from_epsilon
from include.budget.errors import DeclarationMismatch, InvalidRequest, UnknownName
from include.budget.journal import AVAILABLE, ISSUED, Change, Draft, move
from include.budget.models import require_pico, require_text
from include.budget.policy import UNIT
from include.budget.store.rows import PoolRow
from include.budget.store.transaction import Transaction

NEIGHBOURING = "add or remove one privacy unit"


def other(accounting: Accounting) -> Accounting:
    """Name the currency a pool does not count in. Privacy: ledger only."""
    return "epsilon" if accounting == "zcdp" else "zcdp"


def cap_of(epsilon_pico: int, accounting: Accounting, delta_exponent: int) -> int:
    """Express a declared epsilon as the cap of a pool, rounded down.

    Args:
        epsilon_pico: Declared total, units of 1e-12.
        accounting: The pool's currency.
        delta_exponent: N of the pool's delta = 1e-N.

    Returns:
        The cap in units of 1e-12 of the currency.

    Privacy: ledger only.
    """
    return (
        epsilon_pico if accounting == "epsilon" else rho_from_epsilon(epsilon_pico, delta_exponent)
    )


def pool_change(
    pool_id: str,
    *,
    kind: str,
    subject: str,
    owner: str,
    dataset: str | None = None,
    partition: str | None = None,
    accounting: Accounting,
    delta_exponent: int,
    generation: int = 1,
    epsilon_pico: int,
    limit_pico: int | None,
) -> tuple[Change, int]:
    """Describe a new pool.

    Returns:
        The row, and its cap in units of 1e-12 of its currency.

    Privacy: ledger only.
    """
    cap_pico = cap_of(epsilon_pico, accounting, delta_exponent)
    row = {
        "kind": kind,
        "subject": subject,
        "owner": owner,
        "dataset": dataset,
        "partition": partition,
        "accounting": accounting,
        "delta_exponent": delta_exponent,
        "generation": generation,
        "epsilon_pico": epsilon_pico,
        "cap_pico": cap_pico,
        "limit_pico": limit_pico,
        "status": "open",
    }
    return Change("pool", pool_id, row), cap_pico


def limit_change(
    tx: Transaction, subject: str, limit_pico: int | None, actor: str, reason: str
) -> Change:
    """Describe a new line in the history of a subject's limit. Privacy: ledger only."""
    row = {
        "subject": subject,
        "value_pico": limit_pico,
        "actor": actor,
        "reason": reason,
        "at": tx.at,
    }
    return Change("limit", f"{subject}#{tx.turn().seq + 1}", row)


def population_subject(name: str) -> str:
    """Name what a population's limits and generations belong to. Privacy: ledger only."""
    return f"population:{name}"


def user_subject(user: str, dataset: str) -> str:
    """Name what a user's limits and generations belong to. Privacy: ledger only."""
    return f"user:{user}@{dataset}"


def register_population(
    tx: Transaction,
    name: str,
    *,
    privacy_unit: str,
    epsilon_pico: int,
    delta_exponent: int,
    accounting: Accounting,
    per_operation_limit_pico: int | None,
    actor: str,
    additional_epsilon_pico: int | None = None,
) -> None:
    """Register a set of privacy units and the budget that protects it.

    Args:
        tx: The transaction.
        name: Name of the population; datasets about the same people share it.
        privacy_unit: What one unit is, for example "person".
        epsilon_pico: Total epsilon at the population's delta, units of 1e-12.
        delta_exponent: N of delta = 1e-N, a constant of the population.
        accounting: "zcdp" counts rho, "epsilon" adds epsilons.
        per_operation_limit_pico: The system's limit (alpha) in epsilon; None for none.
        actor: Who registers it.
        additional_epsilon_pico: A second cap, counted in the other currency.

    Raises:
        DeclarationMismatch: It is registered with other figures.
        InvalidRequest: A figure cannot be meant.

    Privacy: ledger only.
    """
    _check_population(name, privacy_unit, epsilon_pico, delta_exponent, accounting, actor)
    limit = _optional(per_operation_limit_pico, "per_operation_limit")
    totals: dict[Accounting, int] = {accounting: epsilon_pico}
    extra = _optional(additional_epsilon_pico, "additional cap")
    if extra is not None:
        totals[other(accounting)] = extra
    subject = population_subject(name)
    declared = {
        "privacy unit": privacy_unit,
        "accounting": accounting,
        "delta": format_delta(delta_exponent),
        "per_operation_limit": _shown(limit),
    } | {f"epsilon ({UNIT[currency]})": format_amount(total) for currency, total in totals.items()}
    known = tx.row("population", name)
    if known is not None:
        current = current_pools(tx.pools_about(subject))
        registered = {
            "privacy unit": known["privacy_unit"],
            "accounting": known["accounting"],
            "delta": format_delta(known["delta_exponent"]),
            "per_operation_limit": _shown(current[0].limit_pico),
        } | {f"epsilon ({UNIT[p.accounting]})": format_amount(p.epsilon_pico) for p in current}
        _require_equal(f"population {name}", declared, registered)
        return
    _open_pools(
        tx,
        [
            pool_change(
                f"dataset:{name}:{currency}:1",
                kind="dataset",
                subject=subject,
                owner=name,
                accounting=currency,
                delta_exponent=delta_exponent,
                epsilon_pico=total,
                limit_pico=limit,
            )
            for currency, total in totals.items()
        ],
        kind="register_population",
        actor=actor,
        words=f"{actor} registered population {name} (unit: {privacy_unit}) with epsilon "
        f"{format_amount(epsilon_pico)} at delta {format_delta(delta_exponent)}, accounting "
        f"{accounting}, at most {_shown(limit)} for one operation.",
        changes=[
            Change(
                "population",
                name,
                {
                    "privacy_unit": privacy_unit,
                    "neighbouring": NEIGHBOURING,
                    "accounting": accounting,
                    "delta_exponent": delta_exponent,
                },
            ),
            limit_change(tx, subject, limit, actor, "registered"),
        ],
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
        _require_equal(f"dataset {name}", declared, registered)
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


def register_user_pool(
    tx: Transaction,
    user: str,
    dataset: str,
    *,
    epsilon_pico: int,
    per_request_limit_pico: int | None,
    actor: str,
) -> None:
    """Give a user a budget for a dataset: access control and fairness, not privacy.

    Args:
        tx: The transaction.
        user: The requester.
        dataset: A registered dataset; the pool inherits currency and delta from its populations.
        epsilon_pico: Total epsilon, units of 1e-12.
        per_request_limit_pico: Limit for one request in epsilon; None for none.
        actor: Who registers it.

    Raises:
        UnknownName: The dataset is not registered.
        DeclarationMismatch: The pool is registered with other figures.

    Privacy: ledger only.
    """
    require_text(user, name="user")
    require_pico(epsilon_pico, name=f"user {user}: epsilon")
    limit = _optional(per_request_limit_pico, "per_request")
    links = tx.rows("dataset_population", dataset=dataset)
    if not links:
        raise UnknownName(f"dataset {dataset} is not registered: register it before its users.")
    subject = user_subject(user, dataset)
    known = current_pools(tx.pools_about(subject))
    if known:
        _require_equal(
            f"user {user}, dataset {dataset}",
            {"epsilon": format_amount(epsilon_pico), "per_request": _shown(limit)},
            {
                "epsilon": format_amount(known[0].epsilon_pico),
                "per_request": _shown(known[0].limit_pico),
            },
        )
        return
    first = tx.row("population", links[0]["population"])
    if first is None:
        raise UnknownName(f"population {links[0]['population']} is not registered.")
    accounting: Accounting = first["accounting"]
    pool = pool_change(
        f"user:{user}@{dataset}:{accounting}:1",
        kind="user",
        subject=subject,
        owner=user,
        dataset=dataset,
        accounting=accounting,
        delta_exponent=first["delta_exponent"],
        epsilon_pico=epsilon_pico,
        limit_pico=limit,
    )
    _open_pools(
        tx,
        [pool],
        kind="register_user_pool",
        actor=actor,
        words=f"{actor} gave {user} epsilon {format_amount(epsilon_pico)} of dataset {dataset}, at "
        f"most {_shown(limit)} for one request.",
        changes=[limit_change(tx, subject, limit, actor, "registered")],
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
            words=f"Snapshot {snapshot_id} of dataset {dataset} taken and committed to.",
            changes=[
                Change(
                    "snapshot",
                    snapshot_id,
                    {"dataset": dataset, "commitment": commitment},
                    aside={"mac": mac, "locator": locator},
                )
            ],
        )
    )
    return snapshot_id


def current_pools(pools: Sequence[PoolRow]) -> list[PoolRow]:
    """Keep the youngest generation of each pool, the first currency first.

    Privacy: ledger only.
    """
    newest = max((pool.generation for pool in pools), default=0)
    whole = [pool for pool in pools if pool.generation == newest and pool.kind != "partition"]
    return sorted(whole, key=lambda pool: pool.accounting, reverse=True)


def _open_pools(
    tx: Transaction,
    pools: Sequence[tuple[Change, int]],
    *,
    kind: str,
    actor: str,
    words: str,
    changes: Sequence[Change],
) -> None:
    tx.append(
        Draft(
            kind=kind,
            actor=require_text(actor, name="actor"),
            words=words,
            changes=[*changes, *(change for change, _ in pools)],
            postings=move({change.key: cap for change, cap in pools}, ISSUED, AVAILABLE),
        )
    )


def _check_population(
    name: str, unit: str, epsilon_pico: int, delta: int, accounting: str, actor: str
) -> None:
    require_text(name, name="population")
    require_text(unit, name="privacy_unit")
    require_text(actor, name="actor")
    require_pico(epsilon_pico, name=f"population {name}: epsilon")
    if isinstance(delta, bool) or delta not in DELTA_EXPONENTS:
        raise InvalidRequest(f"population {name}: delta is 1e-N with N from 5 to 15.")
    if accounting not in UNIT:
        raise InvalidRequest(f"population {name}: accounting is zcdp or epsilon.")


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


def _optional(value: int | None, name: str) -> int | None:
    return None if value is None else require_pico(value, name=name)


def _shown(limit_pico: int | None) -> str:
    return "no limit" if limit_pico is None else format_amount(limit_pico)


def _require_equal(
    what: str, declared: Mapping[str, object], registered: Mapping[str, object]
) -> None:
    for name in sorted({*declared, *registered}):
        mine, theirs = declared.get(name, "nothing"), registered.get(name, "nothing")
        if mine != theirs:
            raise DeclarationMismatch(
                f"{what}: {name} is declared as {mine} and registered as {theirs}: restore the "
                "declaration, or have an administrator record the change with a reason."
            )
