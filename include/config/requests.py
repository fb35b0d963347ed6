"""Budgets and releases: who may spend how much, and what is asked for."""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, field_validator, model_validator

from include.accounting.amounts import parse_amount, parse_delta
from include.config.base import Amount, ColumnName, ConfigModel, Delta, Identifier, fault
from include.config.errors import did_you_mean, quoted
from include.config.scalars import WholeOrNone

MECHANISMS = ("mwem_pgm", "aim", "csa_privbayes", "privbayes")
PRESETS = ("@once", "@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_CRON_FIELD = re.compile(r"[0-9A-Za-z*/,#?-]+")


class PopulationConfig(ConfigModel):
    """The dataset pool of one population: the guarantee itself.

    Privacy: ledger only.
    """

    epsilon: Amount
    delta: Delta
    accounting: Literal["zcdp", "epsilon"] = "zcdp"
    per_operation_limit: Amount | None = None
    privacy_unit: str = "person"
    description: str | None = None

    @property
    def epsilon_pico(self) -> int:
        """The pool's total epsilon, in 1e-12."""
        return parse_amount(self.epsilon, name="epsilon")

    @property
    def delta_exponent(self) -> int:
        """N of delta = 1e-N."""
        return parse_delta(self.delta, name="delta")

    @property
    def per_operation_limit_pico(self) -> int | None:
        """Largest epsilon of a single request, in 1e-12; None for no limit."""
        return _optional_pico(self.per_operation_limit, "per_operation_limit")


class UserPoolConfig(ConfigModel):
    """What one user may spend on one dataset.

    Privacy: ledger only.
    """

    epsilon: Amount
    per_request: Amount | None = None

    @property
    def epsilon_pico(self) -> int:
        """The user's total on this dataset, in 1e-12."""
        return parse_amount(self.epsilon, name="epsilon")

    @property
    def per_request_pico(self) -> int | None:
        """Largest grant of one request, in 1e-12; None for no limit."""
        return _optional_pico(self.per_request, "per_request")


class UserConfig(ConfigModel):
    """A requester and the datasets it may ask for.

    Privacy: ledger only.
    """

    datasets: dict[Identifier, UserPoolConfig]


class BudgetsConfig(ConfigModel):
    """All pools, and which Airflow user may act for which requester (nobody unless listed).

    Privacy: ledger only.
    """

    populations: dict[Identifier, PopulationConfig]
    users: dict[Identifier, UserConfig] = Field(default_factory=dict)
    airflow_users: dict[str, list[Identifier]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _known_requesters(self) -> BudgetsConfig:
        for name, requesters in self.airflow_users.items():
            for requester in requesters:
                if requester not in self.users:
                    fault(
                        f"airflow_users.{name}: unknown requester {quoted(requester)}; "
                        f"{did_you_mean(requester, self.users)}"
                    )
        return self

    def may_act_for(self, airflow_user: str | None, requester: str) -> bool:
        """Tell whether an authenticated Airflow user may ask in a requester's name."""
        return airflow_user is not None and requester in self.airflow_users.get(airflow_user, [])


def _dates(value: Any) -> tuple[dt.date, ...]:
    if not isinstance(value, list) or not value:
        fault("dates is empty or not a list; write dates: [2024-12-31, ...]")
    dates = [_date(item) for item in value]
    for date in dates:
        if dates.count(date) > 1:
            fault(f"the date {date.isoformat()} is listed twice; remove one")
    return tuple(sorted(dates))


def _date(item: Any) -> dt.date:
    if isinstance(item, dt.datetime):
        item = item.date()
    if isinstance(item, dt.date):
        return item
    try:
        return dt.date.fromisoformat(str(item))
    except ValueError:
        fault(f"{quoted(item)} is not a date; write it as 2024-12-31")


class ScheduleDates(ConfigModel):
    """Named days on which a release is due.

    Privacy: ledger only.
    """

    dates: Annotated[tuple[dt.date, ...], BeforeValidator(_dates)]


def _schedule(value: Any) -> Any:
    if value is None or isinstance(value, dict | ScheduleDates):
        return value
    if isinstance(value, str) and (value in PRESETS or _is_cron(value)):
        return value
    if isinstance(value, str) and value.startswith("@"):
        fault(f"unknown preset {quoted(value)}; {did_you_mean(value, PRESETS)}")
    fault(
        f"{quoted(value)} is not a schedule; write a cron expression of five fields, "
        'a preset such as "@monthly", or {dates: [2024-12-31, ...]}'
    )


def _is_cron(text: str) -> bool:
    fields = text.split()
    return len(fields) == 5 and all(_CRON_FIELD.fullmatch(field) for field in fields)


def _partition_value(value: Any) -> str:
    if isinstance(value, bool | float) or value is None or not isinstance(value, str | int):
        fault("the value must be text or a whole number; write it in quotes")
    if not str(value).strip():
        fault("the value is empty; name the value whose rows are released, or remove partition")
    return str(value)


class PartitionConfig(ConfigModel):
    """Only the rows whose column equals a public value (a template over the logical date).

    Privacy: ledger only.
    """

    column: ColumnName
    value: Annotated[str, BeforeValidator(_partition_value)]


def _uri(value: Any) -> str:
    """A slip here must not be found only after the budget is spent: check it with the file."""
    fix = "write a folder such as var/releases, or s3://bucket/prefix"
    if not isinstance(value, str) or not value.strip():
        fault(f"empty or not text; {fix}")
    if value.startswith("~"):
        fault(f"{quoted(value)} begins with '~', which is not filled in; write the whole path")
    try:
        parts = urlsplit(value)
    except ValueError:
        fault(f"{quoted(value)} is no address; {fix}")
    if parts.scheme not in ("", "file", "s3"):
        fault(f"{quoted(value)} is no folder and no s3:// address; {fix}")
    if parts.scheme == "s3" and not _BUCKET.fullmatch(parts.netloc):
        fault(f"{quoted(value)} names no bucket; write s3://bucket/prefix")
    if parts.scheme == "file" and (parts.netloc or not parts.path.startswith("/")):
        fault(f"{quoted(value)} names no folder of this machine; write file:///folder")
    return value


class PublishConfig(ConfigModel):
    """Where the package goes: a folder or s3://bucket/prefix, by an Airflow connection.

    Privacy: ledger only.
    """

    uri: Annotated[str, BeforeValidator(_uri)]
    conn_id: str | None = None


def _interest(value: Any) -> Any:
    if value is None:
        return ()
    if not isinstance(value, list):
        fault("interest is not a list; write interest: [[a, b], [c, d]]")
    return tuple(tuple(_query(query)) for query in value)


def _query(query: Any) -> list[str]:
    if not isinstance(query, list | tuple) or not query:
        fault(f"the query {quoted(query)} is not a list of columns; write [[a, b], [c, d]]")
    names = [str(name) for name in query]
    if len(set(names)) != len(names):
        fault(f"the query [{', '.join(names)}] names a column twice; remove one")
    return names


def _workload(value: Any) -> Any:
    if value in ("all 1-way", "all 2-way", "all 3-way"):
        return value
    if isinstance(value, str):
        fault(
            f"unknown workload {quoted(value)}; use 'all 2-way', 'all 3-way' or a list of columns"
        )
    return tuple(map(_workload_query, value)) if isinstance(value, list) else value


def _workload_query(item: Any) -> Any:
    """Read one marginal of a workload: a list of columns, or a block with columns and a weight."""
    if isinstance(item, dict):
        return {**item, "columns": _query(item.get("columns"))}
    return {"columns": _query(item)}


class WorkloadQuery(ConfigModel):
    """One marginal of a workload and how much it counts beside the others.

    Privacy: ledger only.
    """

    columns: tuple[ColumnName, ...]
    weight: float = Field(default=1.0, ge=1e-6, le=1e6)


GATE_SHARES = ("max_interest_distance_tv", "max_interest_bound95_tv", "max_measured_distance_tv")
GATE_KEYS = ("require_checks", *GATE_SHARES)


def _gate(value: Any) -> Any:
    """A slip here must not be found only after the budget is spent: check it with the file."""
    if not isinstance(value, dict):
        fault("gate is not a block of keys; write gate: {max_interest_bound95_tv: 0.1}")
    for key, limit in value.items():
        if key not in GATE_KEYS:
            fault(f"unknown threshold {quoted(key)}; {did_you_mean(str(key), GATE_KEYS)}")
        if key == "require_checks":
            if not isinstance(limit, bool):
                fault("require_checks is not a truth value; write true or false")
        elif isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit <= 1:
            fault(f"{key} is {quoted(limit)}; write a share above 0, up to 1")
    return value


def _options(value: Any) -> Any:
    """Tell a block of counts that is none here, where its key can be named."""
    if not isinstance(value, dict) or "quantile_bins" not in value:
        return value
    counts = value["quantile_bins"]
    if not isinstance(counts, dict) or not counts:
        fault("quantile_bins is not a block; write quantile_bins: {age: 8}")
    for column, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int):
            fault(
                f"quantile_bins gives {quoted(str(column))} {quoted(count)} bins; write a whole "
                "number of at least 2"
            )
    return value


Queries = tuple[tuple[ColumnName, ...], ...]


class ReleaseConfig(ConfigModel):
    """One release as it is asked for.

    Privacy: ledger only.
    """

    release: Identifier
    dataset: Identifier
    requester: Identifier
    schedule: Annotated[str | ScheduleDates | None, BeforeValidator(_schedule)] = None
    partition: PartitionConfig | None = None
    mechanism: Literal["mwem_pgm", "aim", "csa_privbayes", "privbayes"] = "mwem_pgm"
    epsilon: Amount
    accept_at_least: Amount | None = None
    delta: Delta | None = None
    interest: Annotated[Queries, BeforeValidator(_interest)] = ()
    workload: Annotated[str | tuple[WorkloadQuery, ...], BeforeValidator(_workload)] = "all 2-way"
    options: Annotated[
        dict[str, int | float | str | bool | list[str] | dict[str, int]],
        BeforeValidator(_options),
    ] = Field(default_factory=dict)
    columns: tuple[ColumnName, ...] | None = None
    rows: WholeOrNone = Field(default=None, ge=1, le=100_000_000)
    approval: Literal["auto", "required"] = "auto"
    publish: PublishConfig
    supersedes: Identifier | None = None
    gate: Annotated[dict[str, bool | float], BeforeValidator(_gate)] = Field(default_factory=dict)
    title: str | None = None
    description: str | None = None

    @field_validator("interest")
    @classmethod
    def _no_query_twice(cls, value: Queries) -> Queries:
        seen = [tuple(sorted(query)) for query in value]
        for query in seen:
            if seen.count(query) > 1:
                fault(f"the query [{', '.join(query)}] is listed twice; remove one")
        return value

    @field_validator("columns")
    @classmethod
    def _no_column_twice(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and not value:
            fault("the list is empty; name columns or remove the key to model all")
        for name in value or ():
            if (value or ()).count(name) > 1:
                fault(f"the column {quoted(name)} is listed twice; remove one")
        return value

    @model_validator(mode="after")
    def _floor_below_request(self) -> ReleaseConfig:
        if self.accept_at_least_pico > self.epsilon_pico:
            fault(
                f"accept_at_least: {self.accept_at_least} is above epsilon {self.epsilon}; "
                "lower it, it is the smallest grant worth having"
            )
        return self

    @property
    def epsilon_pico(self) -> int:
        """The epsilon asked for, in 1e-12."""
        return parse_amount(self.epsilon, name="epsilon")

    @property
    def accept_at_least_pico(self) -> int:
        """The smallest grant worth having, in 1e-12; the request itself where not declared."""
        return _optional_pico(self.accept_at_least, "accept_at_least") or self.epsilon_pico

    @property
    def delta_exponent(self) -> int | None:
        """N of delta = 1e-N where the release states one; None takes the pool's."""
        return None if self.delta is None else parse_delta(self.delta, name="delta")


def _optional_pico(text: str | None, name: str) -> int | None:
    return None if text is None else parse_amount(text, name=name)
