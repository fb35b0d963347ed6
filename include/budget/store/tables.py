"""The ledger's tables, the same on PostgreSQL and SQLite.

Every table but the journal is a projection of the journal: `verify` rebuilds it and compares.
A prefix, not a schema, keeps them apart from Airflow's: SQLite has no schemas and Airflow's own
migration check reads plain table names. Keys are text; nothing points into Airflow's tables.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.schema import SchemaItem

METADATA = MetaData()
PREFIX = "dp_"
VERSION_TABLE = "dp_ledger_alembic_version"

Whole = BigInteger().with_variant(Integer(), "sqlite")


def _table(name: str, *items: SchemaItem) -> Table:
    # STRICT on SQLite: otherwise an integer column there would keep 0.1 and 'x' as given.
    return Table(name, METADATA, *items, sqlite_strict=True)


POPULATION = _table(
    "dp_population",
    Column("name", Text, primary_key=True),
    Column("privacy_unit", Text, nullable=False),
    Column("neighbouring", Text, nullable=False),
    Column("accounting", Text, nullable=False),
    Column("delta_exponent", Whole, nullable=False),
    CheckConstraint("delta_exponent BETWEEN 5 AND 15", name="dp_population_delta"),
)

DATASET = _table(
    "dp_dataset",
    Column("name", Text, primary_key=True),
    Column("schema_digest", Text, nullable=False),
    Column("reuse", Text, nullable=False),
)

DATASET_POPULATION = _table(
    "dp_dataset_population",
    Column("link", Text, primary_key=True),
    Column("dataset", Text, ForeignKey("dp_dataset.name"), nullable=False),
    Column("population", Text, ForeignKey("dp_population.name"), nullable=False),
    Column("id_column", Text),
    Column("max_rows", Whole, nullable=False),
    UniqueConstraint("dataset", "population", name="dp_dataset_population_pair"),
    CheckConstraint("max_rows >= 1", name="dp_dataset_population_rows"),
)

SNAPSHOT = _table(
    "dp_snapshot",
    Column("snapshot_id", Text, primary_key=True),
    Column("dataset", Text, ForeignKey("dp_dataset.name"), nullable=False),
    Column("commitment", Text, nullable=False),
    # The two below recognise and find protected content: they are never journalled or exported.
    Column("mac", Text, nullable=False),
    Column("locator", Text, nullable=False),
    Column("partition", Text),  # as a charge names it; None for all rows
    UniqueConstraint("dataset", "mac", name="dp_snapshot_content"),
)

POOL = _table(
    "dp_pool",
    Column("pool_id", Text, primary_key=True),
    Column("kind", Text, nullable=False),  # dataset | partition | user
    Column("subject", Text, nullable=False),  # what its limits and generations belong to
    Column("owner", Text, nullable=False),  # a population or a requester
    Column("dataset", Text),  # user pools and partitions are narrowed to one
    Column("partition", Text),
    Column("accounting", Text, nullable=False),
    Column("delta_exponent", Whole, nullable=False),
    Column("generation", Whole, nullable=False),
    Column("epsilon_pico", Whole, nullable=False),
    Column("cap_pico", Whole, nullable=False),
    Column("limit_pico", Whole),  # the limit in force; dp_limit keeps the history
    Column("status", Text, nullable=False),
    Column("held_pico", Whole, nullable=False, server_default=text("0")),
    Column("spent_pico", Whole, nullable=False, server_default=text("0")),
    CheckConstraint("held_pico >= 0", name="dp_pool_held"),
    CheckConstraint("spent_pico >= 0", name="dp_pool_spent"),
    CheckConstraint("held_pico + spent_pico <= cap_pico", name="dp_pool_cap"),
    CheckConstraint("status IN ('open', 'frozen', 'retired')", name="dp_pool_status"),
    CheckConstraint("kind IN ('dataset', 'partition', 'user')", name="dp_pool_kind"),
    CheckConstraint("accounting IN ('zcdp', 'epsilon')", name="dp_pool_accounting"),
    Index("dp_pool_owner", "owner", "dataset"),
)

CLAIM = _table(
    "dp_claim",
    Column("claim", Text, primary_key=True),
    Column("population", Text, ForeignKey("dp_population.name"), nullable=False),
    Column("dataset", Text, ForeignKey("dp_dataset.name"), nullable=False),
    Column("rule", Text, nullable=False),
    Column("at_most", Whole, nullable=False),  # partitions one unit may be in
    CheckConstraint("at_most >= 1", name="dp_claim_at_most"),
)

LIMIT = _table(
    "dp_limit",
    Column("limit_id", Text, primary_key=True),
    Column("subject", Text, nullable=False),
    Column("value_pico", Whole),
    Column("actor", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", Text, nullable=False),
    Index("dp_limit_subject", "subject"),
)

OCCUPIES = text("state NOT IN ('denied', 'void')")
"""Whether a charge occupies its period; written once, since SQLite uses a partial index only for
the very same words."""

CHARGE = _table(
    "dp_charge",
    Column("charge_id", Text, primary_key=True),
    Column("key", Text, nullable=False, unique=True),
    Column("request_digest", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("requester", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("release", Text, nullable=False),
    Column("period", Text, nullable=False),
    Column("partition", Text),
    Column("mechanism", Text, nullable=False),
    Column("parameters", Text, nullable=False),
    Column("snapshot_id", Text),
    Column("requested_pico", Whole, nullable=False),
    Column("accept_at_least_pico", Whole, nullable=False),
    Column("granted_pico", Whole, nullable=False),
    Column("planned_rho_pico", Whole),
    Column("planned_epsilon_pure_pico", Whole),
    Column("binding", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("dag_id", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("task_id", Text, nullable=False),
    Column("map_index", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("expires_at", Text),
    Column("decided_seq", Whole, nullable=False),
    # From here on the columns that arrows may change.
    Column("state", Text, nullable=False),
    Column("fence", Whole, nullable=False),
    Column("attempt", Text),
    Column("amounts", Text, nullable=False),
    Column("rounds_begun", Whole, nullable=False),
    Column("rounds_closed", Whole, nullable=False),
    Column("rounds_answered", Whole, nullable=False),
    Column("cost_rho_pico", Whole),
    Column("cost_epsilon_pure_pico", Whole),
    Column("plan", Text),
    Column("plan_digest", Text),
    Column("events", Text, nullable=False),
    Column("transcript_digest", Text),
    Column("manifest_digest", Text),
    Column("release_id", Text),
    Column("uri", Text),
    Column("note", Text),
    Column("sealed_seq", Whole),
    CheckConstraint("requested_pico > 0", name="dp_charge_requested"),
    CheckConstraint(
        "granted_pico >= 0 AND granted_pico <= requested_pico", name="dp_charge_granted"
    ),
    CheckConstraint(
        "granted_pico = 0 OR granted_pico >= accept_at_least_pico", name="dp_charge_floor"
    ),
    CheckConstraint("(state = 'denied') = (granted_pico = 0)", name="dp_charge_denied"),
    CheckConstraint(
        "state IN ('denied', 'reserved', 'opened', 'sealed', 'publishing', 'published', 'void', "
        "'forfeited', 'withheld')",
        name="dp_charge_state",
    ),
    # One release per name and period; a refused or voided request leaves the period free.
    Index(
        "dp_charge_period",
        "release",
        "period",
        unique=True,
        postgresql_where=OCCUPIES,
        sqlite_where=OCCUPIES,
    ),
    Index("dp_charge_pending", "state", "expires_at"),
)
CHARGE_MUTABLE = tuple(
    column.name
    for column in list(CHARGE.columns)[[c.name for c in CHARGE.columns].index("state") :]
)

RELEASE = _table(
    "dp_release",
    Column("release_id", Text, primary_key=True),
    Column("charge_id", Text, ForeignKey("dp_charge.charge_id"), nullable=False, unique=True),
    Column("manifest_digest", Text, nullable=False),
    Column("uri", Text, nullable=False),
    Column("published_at", Text, nullable=False),
    Column("withdrawn_at", Text),
    Column("withdrawn_reason", Text),
)

ENTRY = _table(
    "dp_entry",
    Column("seq", Whole, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("charge_id", Text),
    Column("prev_hash", Text, nullable=False),
    Column("hash", Text, nullable=False, unique=True),
    Column("body", Text, nullable=False),
    CheckConstraint("seq >= 1", name="dp_entry_seq"),
    Index("dp_entry_charge", "charge_id", "seq"),
)

POSTING = _table(
    "dp_posting",
    Column("seq", Whole, primary_key=True, autoincrement=False),
    Column("line", Whole, primary_key=True, autoincrement=False),
    Column("pool_id", Text, nullable=False),
    Column("account", Text, nullable=False),
    Column("amount_pico", Whole, nullable=False),
    CheckConstraint(
        "account IN ('issued', 'available', 'held', 'spent')", name="dp_posting_account"
    ),
    CheckConstraint("account <> 'spent' OR amount_pico > 0", name="dp_posting_spent_grows"),
    Index("dp_posting_pool", "pool_id", "seq"),
)

HEAD = _table(
    "dp_head",
    Column("id", Whole, primary_key=True, autoincrement=False),
    Column("ledger_id", Text, nullable=False),
    Column("seq", Whole, nullable=False),
    Column("hash", Text, nullable=False),
    Column("declared", Whole, nullable=False, server_default="0"),
    CheckConstraint("id = 1", name="dp_head_one"),
)

CHECKPOINT = _table(
    "dp_checkpoint",
    Column("seq", Whole, primary_key=True, autoincrement=False),
    Column("body", Text, nullable=False),
    Column("key_id", Text, nullable=False),
    Column("signature", Text, nullable=False),
)

PROJECTIONS = {
    table.name.removeprefix(PREFIX): table
    for table in (
        POPULATION,
        DATASET,
        DATASET_POPULATION,
        SNAPSHOT,
        POOL,
        CLAIM,
        LIMIT,
        CHARGE,
        RELEASE,
    )
}
"""Tables rebuilt from the journal, by the name entries call them."""
