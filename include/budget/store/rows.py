"""From database rows to plain records."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import select

from include.accounting.accountant import Accounting, Cost
from include.budget.models import Charge
from include.budget.store.tables import CHARGE, ENTRY

_DECIDED, _SEALED = ENTRY.alias("decided"), ENTRY.alias("sealed")
CHARGE_WITH_HASHES = (
    select(CHARGE, _DECIDED.c.hash.label("decided_hash"), _SEALED.c.hash.label("sealed_hash"))
    .join_from(CHARGE, _DECIDED, _DECIDED.c.seq == CHARGE.c.decided_seq)
    .outerjoin(_SEALED, _SEALED.c.seq == CHARGE.c.sealed_seq)
)


@dataclass(frozen=True)
class PoolRow:
    """A budget pool as stored; amounts in units of 1e-12 of its currency.

    Privacy: ledger only.
    """

    pool_id: str
    kind: str
    subject: str
    owner: str
    dataset: str | None
    partition: str | None
    accounting: Accounting
    delta_exponent: int
    generation: int
    epsilon_pico: int
    cap_pico: int
    limit_pico: int | None
    status: str
    held_pico: int
    spent_pico: int

    @property
    def used_pico(self) -> int:
        """What is held or spent."""
        return self.held_pico + self.spent_pico

    @property
    def label(self) -> str:
        """How the pool is called when it binds: "dataset_pool:us_adults"."""
        return f"{'user' if self.kind == 'user' else 'dataset'}_pool:{self.owner}"


_POOL_FIELDS = tuple(PoolRow.__dataclass_fields__)


def pool_of(row: Mapping[Any, Any]) -> PoolRow:
    """Read a pool. Privacy: ledger only."""
    return PoolRow(**{name: row[name] for name in _POOL_FIELDS})


def charge_of(row: Mapping[Any, Any]) -> Charge:
    """Read a charge, with its JSON columns opened. Privacy: ledger only."""
    fields = cast(dict[str, Any], dict(row))
    planned = _cost(fields.pop("planned_rho_pico"), fields.pop("planned_epsilon_pure_pico"))
    cost = _cost(fields.pop("cost_rho_pico"), fields.pop("cost_epsilon_pure_pico"))
    amounts, plan = fields.pop("amounts"), fields["plan"]
    return Charge.of(
        fields
        | {
            "parameters": json.loads(fields["parameters"]),
            "events": json.loads(fields["events"]),
            "plan": None if plan is None else json.loads(plan),
            "amounts_pico": json.loads(amounts),
            "planned": planned,
            "cost": cost,
        }
    )


def _cost(rho_pico: int | None, epsilon_pure_pico: int | None) -> Cost | None:
    return None if rho_pico is None else Cost(rho_pico, epsilon_pure_pico)
