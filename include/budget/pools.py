"""Building blocks of declarations: what a new pool and a new limit look like in the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from include.accounting.accountant import Accounting
from include.accounting.amounts import format_amount
from include.accounting.zcdp import rho_from_epsilon
from include.budget.errors import DeclarationMismatch, UnknownName
from include.budget.journal import AVAILABLE, ISSUED, Change, Draft, move
from include.budget.models import require_pico, require_text
from include.budget.store.rows import PoolRow
from include.budget.store.transaction import Transaction
from include.budget.words import plain


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


def lane_change(
    parent: PoolRow,
    dataset: str,
    value: str,
    *,
    generation: int | None = None,
    epsilon_pico: int | None = None,
) -> tuple[Change, int]:
    """Describe the pool of one partition, as large as its parent's. Privacy: ledger only."""
    number = generation or parent.generation
    return pool_change(
        f"partition:{parent.owner}:{parent.accounting}:{number}:{dataset}:{value}",
        kind="partition",
        subject=parent.subject,
        owner=parent.owner,
        dataset=dataset,
        partition=value,
        accounting=parent.accounting,
        delta_exponent=parent.delta_exponent,
        generation=number,
        epsilon_pico=epsilon_pico or parent.epsilon_pico,
        limit_pico=None,
    )


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


def current_pools(pools: Sequence[PoolRow]) -> list[PoolRow]:
    """Keep the youngest generation of each pool, the first currency first.

    Privacy: ledger only.
    """
    newest = max((pool.generation for pool in pools), default=0)
    whole = [pool for pool in pools if pool.generation == newest and pool.kind != "partition"]
    return sorted(whole, key=lambda pool: pool.accounting, reverse=True)


def open_pools(
    tx: Transaction,
    pools: Sequence[tuple[Change, int]],
    *,
    kind: str,
    actor: str,
    words: str,
    changes: Sequence[Change],
) -> None:
    """Write the entry that opens pools and issues their caps. Privacy: ledger only."""
    tx.append(
        Draft(
            kind=kind,
            actor=require_text(actor, name="actor"),
            words=words,
            changes=[*changes, *(change for change, _ in pools)],
            postings=move({change.key: cap for change, cap in pools}, ISSUED, AVAILABLE),
        )
    )


def require_equal(
    what: str,
    declared: Mapping[str, object],
    registered: Mapping[str, object],
    fix: Callable[[str], str],
) -> None:
    """Refuse a declaration that differs from what is registered, naming both.

    Args:
        what: What is declared, in words.
        declared: What the file says, by key.
        registered: What the ledger holds.
        fix: What to do about a key that differs.

    Raises:
        DeclarationMismatch: It does.

    Privacy: ledger only.
    """
    for name in sorted({*declared, *registered}):
        mine, theirs = declared.get(name, "nothing"), registered.get(name, "nothing")
        if mine != theirs:
            raise DeclarationMismatch(
                f"{what}: {name} is declared as {plain(mine)} and registered as {plain(theirs)}: "
                f"{fix(name)}."
            )


def budget_fix(subject: str, key: str) -> str:
    """Say how a figure of budgets.yaml that differs from the registered one is put right.

    Privacy: ledger only.
    """
    restore = "restore it in budgets.yaml"
    if key.startswith("per_"):
        act = f"admin limit {subject} EPSILON --reason WHY"
    elif key.startswith("epsilon"):
        act = f"admin generation {subject} EPSILON --authorised-by NAME --reason WHY"
    else:
        return f"{restore}, since it is fixed for a population's life"
    return f"{restore}, or enter the change with `python -m include.cli {act}`"


def optional_pico(value: int | None, name: str) -> int | None:
    """Check an amount that may be left out. Privacy: ledger only."""
    return None if value is None else require_pico(value, name=name)


def limit_in_words(limit_pico: int | None) -> str:
    """Write a limit for a reader. Privacy: ledger only."""
    return "no limit" if limit_pico is None else format_amount(limit_pico)


def required_pools(tx: Transaction, subject: str) -> list[PoolRow]:
    """Lock a subject's pools and return its youngest generation.

    Raises:
        UnknownName: It has none.

    Privacy: ledger only.
    """
    pools = current_pools(tx.pools_about(subject))
    if not pools:
        raise UnknownName(f"{subject} has no budget pool: register it first.")
    return pools
