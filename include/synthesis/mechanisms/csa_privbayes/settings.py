"""Options of the network mechanisms: read once, refused in one sentence before spending."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from include.synthesis.bins import QuantileBins
from include.synthesis.mechanisms.csa_privbayes.quantiles import read_quantile_bins
from include.synthesis.plan import PlanError
from include.synthesis.task import SynthesisTask, TaskError

DEFAULT_DEGREE = 3
DEFAULT_WEIGHT = Fraction(1, 2)
DEFAULT_THETA = 0.05
DEFAULT_BIN_SHARE = Fraction(1, 10)
LEAST_TABLE_SHARE = Fraction(1, 10)
"""Whatever the other shares are, the tables keep at least this part."""
MAX_TABLE_CELLS = 1 << 24
_CELLS_PER_MB = 1 << 17


@dataclass(frozen=True)
class Settings:
    """What a plan needs to know, checked.

    Args:
        task: The task, in the cells that are measured.
        degree: Most parents of a node, k.
        root: The first attribute, or None where it is selected.
        sensitive: The sensitive attribute S; None for PrivBayes.
        tagged: Further attributes of region A.
        forced: Whether S is a parent of every other attribute.
        weight: Weight r of region A's tables.
        theta: Threshold in nats where regions come from noisy tables, else None.
        shares: Shares of the budget: total, bins, root, structure, region (absent: none).
        public_rows: Public row count, or None.
        usefulness: theta_u.
        gaussian: Whether the tables get Gaussian noise.
        pgm: Whether a graphical model is fitted.
        max_model_mb: Memory bound.
        estimator: Engine of the graphical model.
        bins: Columns that get bins by private quantiles; their cells in `task` are these bins.

    Privacy: ledger only.
    """

    task: SynthesisTask
    degree: int
    root: str | None
    sensitive: str | None
    tagged: frozenset[str]
    forced: bool
    weight: Fraction
    theta: float | None
    shares: Mapping[str, Fraction]
    public_rows: int | None
    usefulness: float
    gaussian: bool
    pgm: bool
    max_model_mb: float
    estimator: str
    bins: Mapping[str, QuantileBins]

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes, in the order of the domain."""
        return tuple(self.task.domain)

    @property
    def max_cells(self) -> int:
        """Largest table within the memory bound."""
        return min(MAX_TABLE_CELLS, int(self.max_model_mb * _CELLS_PER_MB))


def read_settings(task: SynthesisTask, options: Mapping[str, Any], mechanism: str) -> Settings:
    """Check a task and its options for a network mechanism.

    Args:
        task: The task.
        options: Its options, types and ranges checked.
        mechanism: Registered name, for the sentences.

    Returns:
        The settings.

    Raises:
        TaskError: One sentence that names the key and the fix.
        PlanError: A table cannot fit the memory bound; the sentence has the number.

    Privacy: ledger only.
    """
    _check_task(task, mechanism)
    task, bins = read_quantile_bins(task, options)
    sensitive = _sensitive(task, options, mechanism) if "sensitive" in options else None
    settings = Settings(
        task=task,
        degree=_degree(task, options),
        root=_root(task, options, sensitive),
        sensitive=sensitive,
        tagged=_tagged(task, options),
        forced=bool(options.get("force_sensitive_parent")),
        weight=_weight(options, mechanism),
        theta=_theta(task, options, sensitive),
        shares=_shares(options),
        public_rows=options["public_rows"],
        usefulness=float(options["usefulness"]),
        gaussian=options["noise"] == "gaussian",
        pgm=options["fit"] == "pgm",
        max_model_mb=float(options["max_model_mb"]),
        estimator=options["estimator"],
        bins=bins,
    )
    if settings.forced and settings.root is None:
        raise TaskError(
            "options: force_sensitive_parent needs the sensitive attribute first; remove "
            "`root: selected`."
        )
    _check_memory(settings, asked=options["degree"])
    return _with_regions(settings, options)


def _check_task(task: SynthesisTask, mechanism: str) -> None:
    if len(task.domain) < 2:
        raise TaskError(
            f"columns: {mechanism} links attributes and this release models one; model at least "
            "two or use mwem_pgm."
        )
    if task.interest:
        raise TaskError(
            f"interest: {mechanism} measures the tables of its own network; remove the interest "
            "queries, or use mwem_pgm or aim."
        )
    if task.workload_text is None:
        raise TaskError(
            f"workload: {mechanism} measures the tables of its own network; remove the workload, "
            "or use mwem_pgm or aim."
        )


def _sensitive(task: SynthesisTask, options: Mapping[str, Any], mechanism: str) -> str:
    name = options["sensitive"]
    if name is None:
        raise TaskError(
            f"options: {mechanism} needs to know the sensitive attribute; add `sensitive: COLUMN` "
            "under options, or tag one column `sensitive: true` in the dataset."
        )
    if name not in task.domain:
        raise TaskError(
            f"options: the sensitive attribute {name!r} is not modelled; use one of "
            f"{', '.join(map(repr, task.domain))}."
        )
    if task.domain[name] < 2:
        raise TaskError(
            f"options: the sensitive attribute {name!r} has a single level; declare its levels or "
            "choose another."
        )
    return str(name)


def _tagged(task: SynthesisTask, options: Mapping[str, Any]) -> frozenset[str]:
    names = options.get("also_sensitive") or []
    for name in names:
        if name not in task.domain:
            raise TaskError(f"options: also_sensitive names {name!r}, which is not modelled.")
    return frozenset(names)


def _degree(task: SynthesisTask, options: Mapping[str, Any]) -> int:
    most = len(task.domain) - 1
    degree: int | None = options["degree"]
    if degree is not None and degree > most:
        raise TaskError(
            f"options: degree is {degree}, and of {len(task.domain)} attributes each has at most "
            f"{most} others; lower it."
        )
    return min(DEFAULT_DEGREE, most) if degree is None else degree


def _root(task: SynthesisTask, options: Mapping[str, Any], sensitive: str | None) -> str | None:
    if options["root"] == "selected":
        return None
    return sensitive or next(iter(task.domain))


def _weight(options: Mapping[str, Any], mechanism: str) -> Fraction:
    weight = options.get("sensitive_weight")
    if weight is None:
        return Fraction(1) if mechanism == "privbayes" else DEFAULT_WEIGHT
    return Fraction(str(weight))


def _theta(task: SynthesisTask, options: Mapping[str, Any], sensitive: str | None) -> float | None:
    theta = options.get("theta")
    if sensitive is None or options["regions"] == "structure":
        if theta is not None:
            raise TaskError("options: theta needs `regions: noisy_information`; add it.")
        return None
    theta = DEFAULT_THETA if theta is None else float(theta)
    others = max(cells for name, cells in task.domain.items() if name != sensitive)
    most = math.log(min(task.domain[sensitive], others))
    if theta > most:
        raise TaskError(
            f"options: theta is {theta:g} and no attribute can tell more than {most:.3g} nats of "
            f"{sensitive!r}: all would be in region B; lower theta."
        )
    return theta


def _shares(options: Mapping[str, Any]) -> dict[str, Fraction]:
    structure = options["structure_share"]
    if structure is None:
        structure = 0.3 if options["noise"] == "laplace" else 0.1
    shares = {"structure": Fraction(str(structure))}
    if options["public_rows"] is None:
        shares["total"] = Fraction(str(options["count_share"]))
    if options["quantile_bins"]:
        share = options["bin_share"]
        shares["bins"] = DEFAULT_BIN_SHARE if share is None else Fraction(str(share))
    if options["root"] == "selected":
        shares["root"] = Fraction(str(options["root_share"]))
    if options.get("regions") == "noisy_information":
        shares["region"] = Fraction(str(options["region_share"]))
    if sum(shares.values()) > 1 - LEAST_TABLE_SHARE:
        told = ", ".join(f"{name} {float(share):g}" for name, share in shares.items())
        raise TaskError(
            f"options: the shares ({told}) leave less than {float(LEAST_TABLE_SHARE):g} for the "
            "tables; lower one."
        )
    return shares


def _check_memory(settings: Settings, *, asked: int | None) -> None:
    domain = settings.task.domain
    pairs: list[tuple[str, ...]] = [(name,) for name in domain]
    if settings.forced and settings.sensitive is not None:
        pairs = [(name, settings.sensitive) for name in domain if name != settings.sensitive]
    for clique in pairs:
        _require_fit(settings, clique, "coarsen it")
    if asked is not None:
        smallest = sorted(domain, key=domain.__getitem__)[: asked + 1]
        _require_fit(settings, tuple(smallest), f"lower degree from {asked}, or coarsen them")


def _require_fit(settings: Settings, clique: tuple[str, ...], fix: str) -> None:
    cells = settings.task.cells(clique)
    if cells > settings.max_cells:
        size, bound = cells / _CELLS_PER_MB, settings.max_cells / _CELLS_PER_MB
        raise PlanError(
            f"columns: the table {' x '.join(clique)} has {cells} cells ({size:.3g} MB) and the "
            f"bound is {bound:g} MB; {fix}, or raise max_model_mb."
        )


def _with_regions(settings: Settings, options: Mapping[str, Any]) -> Settings:
    """Refuse a weight that would set nothing apart; without one, weigh all tables alike."""
    if settings.sensitive is None:
        return settings
    why = ""
    others = set(settings.columns) - {settings.sensitive}
    if len(others) == 1 or settings.degree == len(others):
        why = "a table may hold every attribute"
    elif settings.forced:
        why = "force_sensitive_parent puts the sensitive attribute into every table"
    elif others <= settings.tagged:
        why = "every attribute is tagged sensitive"
    elif settings.theta == 0:
        why = "every attribute reaches theta 0"
    if not why or settings.weight == 1:
        return settings
    if options["sensitive_weight"] is not None or settings.theta == 0:
        raise TaskError(
            f"options: {why}, so everything is in region A and sensitive_weight sets nothing "
            "apart; remove it."
        )
    from dataclasses import replace

    return replace(settings, weight=Fraction(1))
