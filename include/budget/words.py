"""Plain words for amounts, so that a journal entry reads as a sentence."""

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
