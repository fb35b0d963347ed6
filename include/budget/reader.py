"""What anybody may read of the ledger: pools, charges, releases, the journal. No writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine

from include.accounting.accountant import MIN_ZCDP_CHARGE_PICO
from include.accounting.amounts import ONE, format_amount, format_delta
from include.accounting.zcdp import epsilon_from_rho, rho_from_epsilon
from include.budget.errors import UnknownName
from include.budget.models import Charge
from include.budget.partitions import AtMost, figure
from include.budget.store import queries
from include.budget.store.engine import reading
from include.budget.store.rows import PoolRow

MICRO = ONE // 10**6


@dataclass(frozen=True)
class Pool:
    """A budget pool as a person reads it; epsilons are derived, rounded against the reader.

    Args:
        held_pico, spent_pico, remaining_pico, cap_pico: In the pool's currency, units of 1e-12; for
            a population with registered partitions the figure that counts against the cap.
        spent_epsilon, held_epsilon, remaining_epsilon: Decimal text at the pool's delta.
        largest_release_epsilon: The largest single release still possible, decimal text.

    Privacy: ledger only.
    """

    pool_id: str
    kind: str
    owner: str
    dataset: str | None
    partition: str | None
    accounting: str
    delta: str
    generation: int
    status: str
    epsilon: str
    limit_epsilon: str | None
    cap_pico: int
    held_pico: int
    spent_pico: int
    remaining_pico: int
    spent_epsilon: str
    held_epsilon: str
    remaining_epsilon: str
    largest_release_epsilon: str

    def to_dict(self) -> dict[str, Any]:
        """Describe the pool in JSON types."""
        return asdict(self)


@dataclass(frozen=True)
class Release:
    """A published release and where its budget stands in the journal.

    Privacy: ledger only.
    """

    release_id: str
    charge_id: str
    manifest_digest: str
    uri: str
    published_at: str
    withdrawn_at: str | None
    withdrawn_reason: str | None
    release: str
    period: str
    dataset: str
    requester: str
    mechanism: str
    granted_pico: int
    sealed_seq: int
    sealed_hash: str

    def to_dict(self) -> dict[str, Any]:
        """Describe the release in JSON types."""
        return asdict(self) | {"granted_epsilon": format_amount(self.granted_pico)}


@dataclass(frozen=True)
class Entry:
    """One entry of the journal.

    Privacy: ledger only.
    """

    seq: int
    at: str
    kind: str
    actor: str
    words: str
    charge_id: str | None
    postings: tuple[tuple[str, str, int], ...]
    facts: dict[str, Any]
    prev_hash: str
    hash: str

    def to_dict(self) -> dict[str, Any]:
        """Describe the entry in JSON types."""
        return asdict(self)


class LedgerReader:
    """Reads the ledger; each method sees one consistent state.

    Args:
        engine: From `store.engine.connect`.

    Privacy: ledger only.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def pools(self, *, owner: str | None = None, dataset: str | None = None) -> list[Pool]:
        """List budget pools, of an owner or (user pools) a dataset when given."""
        with reading(self.engine) as connection:
            rows = queries.pools(connection)
            claims = {
                str(row["claim"]): int(row["at_most"])
                for row in queries.projection(connection, "claim")
            }
        return [
            _pool(row, rows, claims)
            for row in rows
            if owner in (None, row.owner) and (dataset is None or row.dataset == dataset)
        ]

    def charges(self, *, limit: int | None = None, offset: int = 0, **equal: str) -> list[Charge]:
        """List charges, newest first.

        Args:
            limit: At most so many.
            offset: How many of the newest are passed over; they are not loaded.
            equal: Columns and values, for example state="denied" or run_id="...".
        """
        with reading(self.engine) as connection:
            return queries.charges(connection, limit=limit, offset=offset, **equal)

    def occupied(self) -> set[tuple[str, str]]:
        """List the periods that are taken, each as (release, period)."""
        with reading(self.engine) as connection:
            return queries.occupied(connection)

    def charge(self, charge_id: str) -> Charge:
        """Read one charge.

        Raises:
            UnknownName: There is none of that id.
        """
        found = self.charges(charge_id=charge_id)
        if not found:
            raise UnknownName(f"charge {charge_id} is not in the ledger: check its id.")
        return found[0]

    def find_charge(
        self, key: str | None = None, release: str | None = None, period: str | None = None
    ) -> Charge | None:
        """Find the charge of a key, else the one that occupies a period of a release."""
        with reading(self.engine) as connection:
            if key is not None:
                return next(iter(queries.charges(connection, key=key)), None)
            if release is None or period is None:
                return None
            return queries.occupying(connection, release, period)

    def dataset(self, name: str) -> dict[str, Any] | None:
        """Read what is registered of a dataset: populations with bindings, schema digest, reuse."""
        with reading(self.engine) as connection:
            known = {row["name"]: row for row in queries.projection(connection, "dataset")}
            links = list(queries.projection(connection, "dataset_population"))
        if name not in known:
            return None
        return {
            "schema_digest": known[name]["schema_digest"],
            "reuse": known[name]["reuse"],
            "populations": {
                row["population"]: {"id_column": row["id_column"], "max_rows": row["max_rows"]}
                for row in links
                if row["dataset"] == name
            },
        }

    def units(self) -> dict[str, str]:
        """Name the registered unit of each population."""
        with reading(self.engine) as connection:
            rows = list(queries.projection(connection, "population"))
        return {row["name"]: row["privacy_unit"] for row in rows}

    def releases(self, *, limit: int | None = None) -> list[Release]:
        """List releases, newest first, at most so many."""
        with reading(self.engine) as connection:
            return [Release(**row) for row in queries.releases(connection, limit=limit)]

    def release(self, release_id: str) -> Release:
        """Read one release.

        Raises:
            UnknownName: There is none of that id.
        """
        with reading(self.engine) as connection:
            found = queries.releases(connection, release_id)
        if not found:
            raise UnknownName(f"release {release_id} is not in the ledger: check its id.")
        return Release(**found[0])

    def entries(self, charge_id: str | None = None, *, after: int = 0) -> list[Entry]:
        """List journal entries in order, of one charge when given."""
        with reading(self.engine) as connection:
            rows = list(queries.entries(connection, charge_id=charge_id, after=after))
        return [_entry(row) for row in rows]

    def signed_checkpoints(self) -> int:
        """Count the checkpoints that were signed here; each was exported as well."""
        with reading(self.engine) as connection:
            return len(queries.checkpoints(connection))

    def head(self) -> dict[str, Any]:
        """Read where the journal ends: ledger_id, seq, hash."""
        with reading(self.engine) as connection:
            return queries.head(connection)

    def limits(self, subject: str | None = None) -> list[dict[str, Any]]:
        """List the history of limits, of one subject when given."""
        with reading(self.engine) as connection:
            rows = list(queries.projection(connection, "limit"))
        return [row for row in rows if subject in (None, row["subject"])]


def _entry(row: dict[str, Any]) -> Entry:
    body = queries.body_of(row)
    return Entry(
        seq=row["seq"],
        at=body["at"],
        kind=body["kind"],
        actor=body["actor"],
        words=body["words"],
        charge_id=body["charge_id"],
        postings=tuple((pool, account, amount) for pool, account, amount in body["postings"]),
        facts=body["facts"],
        prev_hash=row["prev_hash"],
        hash=row["hash"],
    )


def _pool(row: PoolRow, rows: Sequence[PoolRow], claims: AtMost) -> Pool:
    if row.kind == "dataset":
        used, spent = (figure(row, rows, claims, spent=only) for only in (False, True))
    else:
        used, spent = row.used_pico, row.spent_pico
    remaining = row.cap_pico - used
    used_epsilon, spent_epsilon = (
        _round(row, _epsilon(row, amount), up=True) for amount in (used, spent)
    )
    return Pool(
        pool_id=row.pool_id,
        kind=row.kind,
        owner=row.owner,
        dataset=row.dataset,
        partition=row.partition,
        accounting=row.accounting,
        delta=format_delta(row.delta_exponent),
        generation=row.generation,
        status=row.status,
        epsilon=format_amount(row.epsilon_pico),
        limit_epsilon=None if row.limit_pico is None else format_amount(row.limit_pico),
        cap_pico=row.cap_pico,
        held_pico=used - spent,
        spent_pico=spent,
        remaining_pico=remaining,
        spent_epsilon=format_amount(spent_epsilon),
        held_epsilon=format_amount(max(0, used_epsilon - spent_epsilon)),
        remaining_epsilon=format_amount(
            max(0, row.epsilon_pico - used_epsilon) if remaining > 0 else 0
        ),
        largest_release_epsilon=format_amount(_round(row, _largest(row, remaining), up=False)),
    )


def _epsilon(row: PoolRow, amount_pico: int) -> int:
    """Convert an amount of the pool's currency to epsilon, rounded up."""
    if row.accounting == "epsilon" or amount_pico == 0:
        return amount_pico
    return epsilon_from_rho(amount_pico, row.delta_exponent)


def _round(row: PoolRow, epsilon_pico: int, *, up: bool) -> int:
    """Shorten a derived epsilon to six digits, against the reader; exact ones stay as they are."""
    if row.accounting == "epsilon":
        return epsilon_pico
    return (-(-epsilon_pico // MICRO) if up else epsilon_pico // MICRO) * MICRO


def _largest(row: PoolRow, remaining_pico: int) -> int:
    """Find the largest epsilon of a zCDP release that the rest pays for, rounded down."""
    if row.status != "open" or remaining_pico <= 0:
        return 0
    largest = _epsilon(row, remaining_pico)
    if row.accounting == "zcdp":
        while rho_from_epsilon(largest, row.delta_exponent) > remaining_pico:
            largest -= 1
        if rho_from_epsilon(MIN_ZCDP_CHARGE_PICO, row.delta_exponent) <= remaining_pico:
            largest = max(largest, MIN_ZCDP_CHARGE_PICO)  # the way there and back rounds twice
    if row.limit_pico is not None:
        largest = min(largest, row.limit_pico)
    return largest if largest >= MIN_ZCDP_CHARGE_PICO else 0  # no smaller release is planned
