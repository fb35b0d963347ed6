"""Plain words for amounts and declarations, so that an entry or a fault reads as a sentence."""

from __future__ import annotations

from collections.abc import Mapping

from include.accounting.amounts import format_amount
from include.budget.policy import UNIT
from include.budget.store.rows import PoolRow


def amounts_in_words(amounts_pico: Mapping[str, int], pools: Mapping[str, PoolRow]) -> str:
    """List what several pools give or take, for example "rho 0.015 of population us_adults".

    Args:
        amounts_pico: Amount by pool id, units of 1e-12.
        pools: The pools by id.

    Returns:
        One phrase.

    Privacy: ledger only.
    """
    phrases = []
    for pool_id, amount in sorted(amounts_pico.items()):
        pool = pools[pool_id]
        unit = UNIT[pool.accounting]
        phrases.append(f"{unit} {format_amount(amount)} of {pool_in_words(pool)}")
    return ", ".join(phrases) or "nothing"


def pool_in_words(pool: PoolRow) -> str:
    """Name a pool for a reader.

    Privacy: ledger only.
    """
    if pool.kind == "user":
        return f"{pool.owner}'s budget for dataset {pool.dataset}"
    if pool.kind == "partition":
        return f"population {pool.owner}, partition {pool.partition}"
    return f"population {pool.owner}"


def plain(declared: object) -> str:
    """Write one declared fact for a reader, a dataset's populations among them.

    Args:
        declared: Text, a number, or for each population its `id_column` and `max_rows`.

    Privacy: ledger only.
    """
    if not isinstance(declared, Mapping):
        return str(declared)
    return ", ".join(_bound(name, facts) for name, facts in sorted(declared.items()))


def _bound(population: str, facts: Mapping[str, object]) -> str:
    column, rows = facts["id_column"], facts["max_rows"]
    found_by = "no id column" if column is None else f"id column {column}"
    return f"{population} ({found_by}, max_rows {rows})"
