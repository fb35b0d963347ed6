"""Prepares a PostgreSQL database for Airflow and the ledger: logins, tables, grants, UI passwords.

What the `init` service of docker-compose.yaml runs, at the first start and after every upgrade; it
may run again at any time. Four logins of the ledger and one of Airflow, each able to do its own
job only (docs/operations.md, "Roles"). The superuser's URL is needed here and nowhere else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

OWNER, AIRFLOW = "dp_ledger_owner", "airflow"
# Login -> the variable that holds its password.
LOGINS = {
    OWNER: "CUSYN_DB_OWNER_PASSWORD",
    AIRFLOW: "CUSYN_DB_AIRFLOW_PASSWORD",
    "dp_ledger_writer": "CUSYN_LEDGER_WRITER_PASSWORD",
    "dp_ledger_admin": "CUSYN_LEDGER_ADMIN_PASSWORD",
    "dp_ledger_auditor": "CUSYN_LEDGER_AUDITOR_PASSWORD",
}
UI_USERS = {
    "admin": "CUSYN_UI_ADMIN_PASSWORD",
    "approver": "CUSYN_UI_APPROVER_PASSWORD",
    "viewer": "CUSYN_UI_VIEWER_PASSWORD",
}
LEDGER_TABLES = r"dp\_%"


def create_logins(connection: psycopg.Connection) -> None:
    """Create each login, or give it the password that stands in the environment now.

    Args:
        connection: of a superuser, to the database that Airflow uses.
    """
    known = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles")}
    for login, variable in LOGINS.items():
        verb = sql.SQL("ALTER" if login in known else "CREATE")
        connection.execute(
            sql.SQL("{} ROLE {} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD {}").format(
                verb, sql.Identifier(login), sql.Literal(os.environ[variable])
            )
        )
    # The ledger's migration makes the admin a writer as well; only an admin of that role may.
    connection.execute(f"GRANT dp_ledger_writer TO {OWNER} WITH ADMIN OPTION")
    database = sql.Identifier(connection.info.dbname)
    connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database))
    connection.execute(
        sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(
            database, sql.SQL(", ").join(map(sql.Identifier, LOGINS))
        )
    )
    connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    connection.execute(
        sql.SQL("GRANT USAGE, CREATE ON SCHEMA public TO {}").format(sql.Identifier(OWNER))
    )


def migrate() -> None:
    """Run `airflow db migrate` as the owner: Airflow's tables and the ledger's, with its grants."""
    subprocess.run([sys.executable, "-m", "airflow", "db", "migrate"], check=True)


def grant_airflow_its_own(connection: psycopg.Connection) -> None:
    """Let the runtime's login work on Airflow's rows, and on nothing of the ledger.

    Table by table, not by default privileges: those would hand it the ledger's tables as well.

    Args:
        connection: of the owner of the tables.
    """
    tables = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename NOT LIKE %s",
        [LEDGER_TABLES],
    ).fetchall()
    airflow = sql.Identifier(AIRFLOW)
    connection.execute(
        sql.SQL("GRANT SELECT, INSERT, UPDATE, DELETE ON {} TO {}").format(
            sql.SQL(", ").join(sql.Identifier("public", name) for (name,) in tables), airflow
        )
    )
    # Whatever the ledger numbers with a sequence would be numbered by its writer only; Airflow's
    # sequences are all others.
    sequences = connection.execute(
        "SELECT sequencename FROM pg_sequences"
        " WHERE schemaname = 'public' AND sequencename NOT LIKE %s",
        [LEDGER_TABLES],
    ).fetchall()
    connection.execute(
        sql.SQL("GRANT USAGE, SELECT ON SEQUENCE {} TO {}").format(
            sql.SQL(", ").join(sql.Identifier("public", name) for (name,) in sequences), airflow
        )
    )


def write_ui_passwords(target: Path) -> None:
    """Write the UI users' passwords where Airflow's simple auth manager looks, mode 0600.

    Without this Airflow would invent them and print them into its log.
    """
    passwords = {user: os.environ[variable] for user, variable in UI_USERS.items()}
    target.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(json.dumps(passwords) + "\n")


def main() -> None:
    """Do all of it, in order; each step may be repeated."""
    superuser = os.environ["CUSYN_SUPERUSER_URL"]
    with psycopg.connect(superuser) as connection:
        create_logins(connection)
        print("init: the five logins exist, each with the password of the environment.")
    migrate()
    owner = make_conninfo(superuser, user=OWNER, password=os.environ[LOGINS[OWNER]])
    with psycopg.connect(owner) as connection:
        grant_airflow_its_own(connection)
    write_ui_passwords(Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"]))
    print("init: tables are migrated and granted; Airflow may start.")


if __name__ == "__main__":
    main()
