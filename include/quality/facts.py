"""The facts a report and a package are written from: plain data, filled by the operator.

Nothing here knows the ledger, the mechanisms or the loaders, so that a report can be rebuilt from
its own JSON and a package from its own files. Amounts are decimal text (to read) and integers of
1e-12 of the pool's currency (to draw); no arithmetic on privacy happens behind this line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class ColumnFacts:
    """One released column as the steward declared it.

    Privacy: post-processing.
    """

    name: str
    type: str  # category | boolean | integer | float | date | datetime | key (surrogate numbers)
    cells: tuple[str, ...]  # the label of each code, in code order; none for a key
    nullable: bool = False
    values: tuple[str, ...] | None = None  # the permitted values of a category
    minimum: str | None = None
    maximum: str | None = None
    description: str = ""
    domain_source: str = "declared by the data steward; not learnt from the data"
    decimals: int | None = None  # the most that a float is written with; None: as many as it takes


@dataclass(frozen=True)
class Measurement:
    """One noisy marginal of the sealed transcript.

    Privacy: post-processing.
    """

    clique: tuple[str, ...]
    sigma: float  # scale of the noise of one cell, in rows
    counts: tuple[int, ...]  # noisy counts, C-order over the clique, may be negative
    purpose: str = "selected"  # interest | selected | one-way | total
    round: int = 0


@dataclass(frozen=True)
class InterestQuery:
    """A query the data user named, with its error as known from the noise alone.

    Privacy: post-processing.
    """

    clique: tuple[str, ...]
    sigma: float | None  # None, as the two errors: an interruption left the query unmeasured
    typical_tv: float | None  # expected total variation of the noisy measurement from the truth
    bound95_tv: float | None  # exceeded in at most 5 of 100 releases
    predicted_tv: float | None = None  # what the plan said before anything was spent
    warning: str = ""  # the plan's sentence where noise was expected to swamp the query


@dataclass(frozen=True)
class CheckOutcome:
    """One rule on the synthetic table and whether it held.

    Privacy: post-processing.
    """

    column: str | None  # None: a rule on the whole table
    rule: str
    passed: bool
    raised: bool = False


@dataclass(frozen=True)
class BurnPoint:
    """What a budget pool had spent after one release.

    Privacy: ledger only.
    """

    label: str
    spent_pico: int
    spent_epsilon: str


@dataclass(frozen=True)
class PoolFacts:
    """One budget pool as it stood when this release was charged.

    Privacy: ledger only.
    """

    name: str
    kind: str  # dataset | user
    accounting: str  # zcdp | epsilon
    cap_pico: int
    spent_before_pico: int
    release_pico: int
    total_epsilon: str
    spent_before_epsilon: str
    spent_after_epsilon: str
    remaining_epsilon: str  # the largest single release still possible
    held_pico: int = 0
    history: tuple[BurnPoint, ...] = ()


@dataclass(frozen=True)
class Share:
    """The part of the release's budget that one purpose took.

    Privacy: ledger only.
    """

    purpose: str  # interest | general | selection | one-way | row count
    amount_pico: int
    amount: str


@dataclass(frozen=True)
class BudgetFacts:
    """The decision on this release and the pools it charged.

    Privacy: ledger only.
    """

    requested_epsilon: str
    granted_epsilon: str
    accept_at_least_epsilon: str
    binding: str  # the constraint that decided the grant; "request" when granted in full
    reason: str
    pools: tuple[PoolFacts, ...]
    shares: tuple[Share, ...] = ()


@dataclass(frozen=True)
class ColumnBinsFacts:
    """The bins of one column whose edges were selected privately.

    Privacy: post-processing.
    """

    column: str
    bins: tuple[str, ...]  # the label of each, rising
    grid: str  # the declared levels the edges were selected from, in words
    selected: bool = True  # False: an interruption lost the selection, and the bins are equal


@dataclass(frozen=True)
class PrivateBins:
    """Bins that were not declared but selected privately, and what the release paid for them.

    Privacy: post-processing.
    """

    columns: tuple[ColumnBinsFacts, ...]
    rho: str
    epsilon_pure: str | None  # None where the release claims no pure epsilon
    meaning: str = (
        "The bounds and a grid were declared. Which edges of the grid part the bins was selected "
        "by the exponential mechanism: the edges are private outputs that this release has paid "
        "for, like every other noisy answer, and no declared fact about the data."
    )


@dataclass(frozen=True)
class UnitBound:
    """How one population's units are found in the data, and how many rows of one are kept.

    Privacy: ledger only.
    """

    population: str
    max_rows: int
    id_columns: tuple[str, ...] = ()  # none: every row is another unit

    @property
    def words(self) -> str:
        """The bound for a reader."""
        if not self.id_columns:
            return f"{self.population} (every row is another unit)"
        rows = "1 row" if self.max_rows == 1 else f"{self.max_rows} rows"
        return f"{self.population} (at most {rows} of one {' with '.join(self.id_columns)})"


@dataclass(frozen=True)
class PrivacyFacts:
    """The claim: what is protected, how strongly, by what.

    Privacy: ledger only.
    """

    epsilon: str
    delta: str  # decimal text such as "1e-9"; "0" for pure differential privacy
    privacy_unit: str
    mechanism: str
    rho: str | None = None
    epsilon_pure: str | None = None
    max_rows: int = 1
    mechanism_words: str = ""
    noise_source: str = (
        "integers from OpenDP's exact discrete samplers, driven by the operating system's entropy"
    )
    trust_model: str = (
        "Central: the steward holds the raw data and is trusted with them; everybody who sees a "
        "package, the public included, is not trusted and may collude."
    )
    composition: str = (
        "Sequential, in zero-concentrated differential privacy, over every release that draws on "
        "the same people: their costs add up inside the budget pools named here."
    )
    unprotected: tuple[str, ...] = ()  # quantities outside the guarantee
    row_count_rule: str = "from the noisy measurements"
    attribute_level: dict[str, str] | None = None  # of one sensitive attribute, after the fact
    private_bins: PrivateBins | None = None  # None: all bins are the declared ones
    bounds: tuple[UnitBound, ...] = ()  # of each population the data are about

    @property
    def neighbouring(self) -> str:
        """The relation the guarantee is stated for."""
        if len({(one.max_rows, one.id_columns) for one in self.bounds}) > 1:
            return (
                "Two datasets are neighbours when one has one more unit than the other of any one "
                f"population: {'; '.join(one.words for one in self.bounds)}. The noise covers a "
                f"change of {self.max_rows} rows, the most that adding or removing one unit makes. "
                "How many units there are is itself protected."
            )
        return (
            f"Two datasets are neighbours when one has one more {self.privacy_unit} than the other "
            f"(add or remove one {self.privacy_unit} with at most {self.max_rows} "
            f"row{'' if self.max_rows == 1 else 's'}). How many there are is itself protected."
        )


@dataclass(frozen=True)
class DatasetFacts:
    """Where the data come from, in the steward's words.

    Privacy: ledger only.
    """

    name: str
    title: str = ""
    description: str = ""
    licence: str = ""
    licence_url: str = ""
    citation: str = ""
    publisher: str = ""
    contact: str = ""
    region: str = ""
    populations: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReleaseFacts:
    """Which release this is.

    Privacy: ledger only.
    """

    release: str
    period: str
    requester: str
    created: str  # RFC 3339 UTC time at which the charge was sealed: the same on every retry
    title: str = ""
    description: str = ""
    intended_use: str = ""
    supersedes: str | None = None
    changes: str = ""  # what changed since the last release, one paragraph


def to_plain(facts: object) -> Any:
    """Turn facts into JSON-safe values.

    Args:
        facts: any dataclass of this room.

    Returns:
        Dicts, lists, texts and numbers only.

    Privacy: post-processing.
    """
    from pydantic import TypeAdapter

    return TypeAdapter(type(facts)).dump_python(facts, mode="json")


def from_plain(kind: type[T], plain: object) -> T:
    """Rebuild facts from what `to_plain` wrote.

    Args:
        kind: the dataclass to build.
        plain: its JSON-safe form.

    Returns:
        The same facts.

    Raises:
        pydantic.ValidationError: the values do not fit the dataclass.

    Privacy: post-processing.
    """
    from pydantic import TypeAdapter

    return TypeAdapter(kind).validate_python(plain)
