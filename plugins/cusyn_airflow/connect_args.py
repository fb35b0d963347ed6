"""How the metadata database is opened; imports nothing, since Airflow reads it while it starts."""

from __future__ import annotations

# Airflow's SQLite default waits 5 s for a lock; scheduler and dag-processor die on the sixth.
# Named in [database] sql_alchemy_connect_args by the embedded default.
SQLITE = {"timeout": 60}
