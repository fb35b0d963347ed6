"""Least privilege on PostgreSQL: four group roles that login users are made members of.

owner     owns tables and functions; migrations only
writer    Airflow tasks: appends to the journal, steps charges; cannot touch balances, caps, history
admin     the steward's registrations and limits, besides what a writer may
auditor   reads everything but what recognises protected content

SQLite knows no roles: embedded mode is for one trusted operator.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Engine

from include.budget.store.engine import run_script

ROLES = ("dp_ledger_owner", "dp_ledger_writer", "dp_ledger_admin", "dp_ledger_auditor")
_SQL = Path(__file__).resolve().parent / "migrations" / "sql"


def create_roles(engine: Engine, *, own: bool = False) -> tuple[str, ...]:
    """Create the group roles and give each what it needs, no more; repeating it is fine.

    Args:
        engine: Connected as a login that may create roles and owns the tables (or a superuser).
        own: Also hand tables and functions to dp_ledger_owner, so that Airflow's own login cannot
            disable a guard; later migrations must then run as a member of it.

    Returns:
        Names of the roles; empty on SQLite, which has none.

    Raises:
        LedgerRefused: The login may not create roles.

    Privacy: ledger only.
    """
    if engine.dialect.name != "postgresql":
        return ()
    run_script(engine, _SQL / "roles_postgresql.sql")
    for grants in sorted(_SQL.glob("*_grants_postgresql.sql")):
        run_script(engine, grants)
    if own:
        run_script(engine, _SQL / "own_postgresql.sql")
    return ROLES
