"""The only way a task reaches the ledger: an Airflow connection of its own.

Airflow blocks its own database session inside tasks on purpose. The ledger lies in the same
database, reached through a connection whose login may be narrower (on PostgreSQL: the writer role).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseHook

from include.errors import CuSynError
from include.settings import load_settings

if TYPE_CHECKING:
    from include.budget.ledger import Ledger
    from include.budget.reader import LedgerReader

DEFAULT_CONN_ID = "privacy_ledger"


class PrivacyLedgerHook(BaseHook):
    """Opens the privacy ledger named by an Airflow connection.

    Args:
        ledger_conn_id: Airflow connection of type `sqlite` (host = absolute path of the file) or
            `postgres`.

    Privacy: ledger only.
    """

    conn_name_attr = "ledger_conn_id"
    default_conn_name = DEFAULT_CONN_ID
    hook_name = "Privacy ledger"

    def __init__(self, ledger_conn_id: str = DEFAULT_CONN_ID) -> None:
        super().__init__()
        self.ledger_conn_id = ledger_conn_id

    def url(self) -> str:
        """Return the ledger's SQLAlchemy URL."""
        return connection_url(self.ledger_conn_id)

    def get_ledger(self) -> Ledger:
        """Return the ledger's writer, which refuses to reserve on a rewound ledger."""
        from include.stages.ledger import open_ledger

        return open_ledger(load_settings(), self.url())

    def get_reader(self) -> LedgerReader:
        """Return the ledger's reader."""
        from include.budget.reader import LedgerReader
        from include.budget.store import connect

        return LedgerReader(connect(self.url()))


def connection_url(conn_id: str) -> str:
    """Return the SQLAlchemy URL of an Airflow connection to SQLite or PostgreSQL.

    Built here, since `Connection.get_uri` mangles absolute SQLite paths.

    Raises:
        CuSynError: the connection is of another type.

    Privacy: ledger only.
    """
    from sqlalchemy import URL

    conn = BaseHook.get_connection(conn_id)
    if conn.conn_type == "sqlite":
        return f"sqlite:///{conn.host}"
    if conn.conn_type in ("postgres", "postgresql"):
        url = URL.create(
            "postgresql+psycopg",
            username=conn.login,
            password=conn.password,
            host=conn.host,
            port=conn.port,
            database=conn.schema,
        )
        return url.render_as_string(hide_password=False)
    raise CuSynError(
        f"connection {conn_id}: only SQLite and PostgreSQL are supported, not {conn.conn_type!r}; "
        "set its type to sqlite or postgres"
    )
