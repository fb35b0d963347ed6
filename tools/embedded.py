"""The embedded default: Airflow on SQLite, the ledger in the same file, everything under `var/`.

For one trusted operator on one machine. Production sets the same variables to PostgreSQL, an
object store and a secrets backend (docs/operations.md).
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def environment(var_dir: Path, *, port: int = 8080) -> dict[str, str]:
    """Return the variables under which Airflow and `include/` find each other.

    Args:
        var_dir: the folder that holds all that is written.
        port: TCP port of the Airflow UI on 127.0.0.1.

    Privacy: ledger only.
    """
    home = var_dir / "airflow"
    database = home / "airflow.db"
    return {
        # A library of Airflow's says this once a task, in the auditor's log.
        "PYTHONWARNINGS": "ignore:GitWildMatchPattern:DeprecationWarning",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
        "CUSYN_PROJECT_ROOT": str(ROOT),
        "CUSYN_VAR_DIR": str(var_dir),
        "CUSYN_LEDGER_URL": f"sqlite:///{database}",
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "2",  # the default forks 32 workers
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,viewer:viewer",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{database}",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS": "cusyn_airflow.connect_args.SQLITE",
        "AIRFLOW__DATABASE__EXTERNAL_DB_MANAGERS": "cusyn_airflow.db_manager.LedgerDBManager",
        "AIRFLOW__API__HOST": "127.0.0.1",  # the default listens to the world
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        "AIRFLOW_CONN_PRIVACY_LEDGER": json.dumps({"conn_type": "sqlite", "host": str(database)}),
    }


def enter(var_dir: Path) -> None:
    """Set the environment for this process; to be called before Airflow is imported.

    Raises:
        SystemExit: with one sentence, where the folder cannot be made.
    """
    for entry in (str(ROOT / "plugins"), str(ROOT)):
        if entry not in sys.path:
            sys.path.insert(0, entry)
    from include.folders import FolderError, make_folder

    try:
        make_folder(var_dir / "airflow")
    except FolderError as fault:
        raise SystemExit(str(fault)) from None
    os.environ.update(environment(var_dir))


def exports(var_dir: Path) -> str:
    """Write the same variables for a shell, a line each, so that `airflow` itself can be called.

    Privacy: ledger only.
    """
    wanted = environment(var_dir).items()
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in wanted)


def migrate() -> None:
    """Run `airflow db migrate`: Airflow's own tables and the ledger's.

    Raises:
        SystemExit: with what the command said, where it fails.
    """
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(
            f"airflow db migrate failed:\n{done.stderr[-2000:] or done.stdout[-2000:]}"
        )


if __name__ == "__main__":
    print(exports(ROOT / "var"))
