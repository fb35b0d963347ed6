"""register: the steward's declared populations, datasets and user pools enter the ledger.

Registering is idempotent. A figure that differs from the registered one is an error that names
both: editing a YAML file never refills a pool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from include.stages.declared import declaration, require_units

if TYPE_CHECKING:
    from collections.abc import Iterable

    from include.budget.ledger import Ledger
    from include.config.datasets import DatasetConfig
    from include.config.requests import BudgetsConfig


def register(
    ledger: Ledger, budgets: BudgetsConfig, datasets: Iterable[DatasetConfig], *, actor: str
) -> None:
    """Enter what is declared and not yet registered.

    Args:
        ledger: the ledger, under a login that may register (on PostgreSQL: the admin role).
        budgets: the declared budgets.
        datasets: the declared datasets.
        actor: who registers.

    Raises:
        DeclarationMismatch: a declared figure differs from the registered one.
        NotAsRegistered: a dataset's unit is not its population's; nothing is entered.

    Privacy: ledger only.
    """
    from include.budget.reader import LedgerReader

    datasets = list(datasets)
    # Before anything is entered: a population's unit is registered once and for all.
    units = {name: one.privacy_unit or "person" for name, one in budgets.populations.items()}
    units |= LedgerReader(ledger.engine).units()
    for dataset in datasets:
        require_units(dataset, units)
    for name, population in budgets.populations.items():
        ledger.register_population(
            name,
            privacy_unit=population.privacy_unit or "person",
            epsilon_pico=population.epsilon_pico,
            delta_exponent=population.delta_exponent,
            accounting=population.accounting,
            per_operation_limit_pico=population.per_operation_limit_pico,
            actor=actor,
        )
    for dataset in datasets:
        _register_dataset(ledger, dataset, actor)
    for user, config in budgets.users.items():
        for name, pool in config.datasets.items():
            ledger.register_user_pool(
                user,
                name,
                epsilon_pico=pool.epsilon_pico,
                per_request_limit_pico=pool.per_request_pico,
                actor=actor,
            )


def _register_dataset(ledger: Ledger, dataset: DatasetConfig, actor: str) -> None:
    ledger.register_dataset(dataset.dataset, actor=actor, **declaration(dataset))
