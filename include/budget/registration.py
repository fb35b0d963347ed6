"""What a steward declares: populations and users' budgets. Declaring the same twice is fine.

Declaring something else is not: a budget is never refilled by editing a file. Raising it is a new
generation (see `amendments`), a lower or higher limit for one request a new line of history.
"""

from __future__ import annotations

from include.accounting.accountant import Accounting
from include.accounting.amounts import DELTA_EXPONENTS, format_amount, format_delta
from include.budget.errors import InvalidRequest, UnknownName
from include.budget.journal import Change
from include.budget.models import require_pico, require_text
from include.budget.policy import UNIT
from include.budget.pools import (
    budget_fix,
    current_pools,
    limit_change,
    limit_in_words,
    open_pools,
    optional_pico,
    other,
    pool_change,
    population_subject,
    require_equal,
    user_subject,
)
from include.budget.store.transaction import Transaction

NEIGHBOURING = "add or remove one privacy unit"


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
    limit = optional_pico(per_operation_limit_pico, "per_operation_limit")
    totals: dict[Accounting, int] = {accounting: epsilon_pico}
    extra = optional_pico(additional_epsilon_pico, "additional cap")
    if extra is not None:
        totals[other(accounting)] = extra
    subject = population_subject(name)
    declared = {
        "privacy unit": privacy_unit,
        "accounting": accounting,
        "delta": format_delta(delta_exponent),
        "per_operation_limit": limit_in_words(limit),
    } | {f"epsilon ({UNIT[currency]})": format_amount(total) for currency, total in totals.items()}
    known = tx.row("population", name)
    if known is not None:
        current = current_pools(tx.pools_about(subject))
        registered = {
            "privacy unit": known["privacy_unit"],
            "accounting": known["accounting"],
            "delta": format_delta(known["delta_exponent"]),
            "per_operation_limit": limit_in_words(current[0].limit_pico),
        } | {f"epsilon ({UNIT[p.accounting]})": format_amount(p.epsilon_pico) for p in current}
        require_equal(
            f"population {name}", declared, registered, lambda key: budget_fix(subject, key)
        )
        return
    open_pools(
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
        f"{accounting}, at most {limit_in_words(limit)} for one operation.",
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
    limit = optional_pico(per_request_limit_pico, "per_request")
    links = tx.rows("dataset_population", dataset=dataset)
    if not links:
        raise UnknownName(f"dataset {dataset} is not registered: register it before its users.")
    subject = user_subject(user, dataset)
    known = current_pools(tx.pools_about(subject))
    if known:
        require_equal(
            f"user {user}, dataset {dataset}",
            {"epsilon": format_amount(epsilon_pico), "per_request": limit_in_words(limit)},
            {
                "epsilon": format_amount(known[0].epsilon_pico),
                "per_request": limit_in_words(known[0].limit_pico),
            },
            lambda key: budget_fix(subject, key),
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
    open_pools(
        tx,
        [pool],
        kind="register_user_pool",
        actor=actor,
        words=f"{actor} gave {user} epsilon {format_amount(epsilon_pico)} of dataset {dataset}, at "
        f"most {limit_in_words(limit)} for one request.",
        changes=[limit_change(tx, subject, limit, actor, "registered")],
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
