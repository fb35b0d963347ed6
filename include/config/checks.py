"""Whether a release, its dataset and the budgets fit each other; known before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from include.config.columns import ORDERED_TYPES
from include.config.datasets import DatasetConfig
from include.config.errors import did_you_mean, quoted
from include.config.labels import level_labels
from include.config.requests import BudgetsConfig, ReleaseConfig
from include.options import OPTIONS, option_fault


def cross_check(
    release: ReleaseConfig, dataset: DatasetConfig, budgets: BudgetsConfig
) -> list[str]:
    """Return every mismatch between a release, its dataset and the budgets.

    A request above a limit is not listed: refusing or lowering it is the ledger's normal answer.

    Args:
        release: what is asked for.
        dataset: the dataset it names.
        budgets: all pools and users.

    Returns:
        One line "key: fault; fix" each; empty when all fit.

    Privacy: ledger only (declared text, never rows).
    """
    return [
        *_columns(release, dataset),
        *_sensitive(release, dataset),
        *_quantile_bins(release, dataset),
        *_options(release),
        *_requester(release, budgets),
        *_pools(release, dataset, budgets),
    ]


def release_columns(release: ReleaseConfig, dataset: DatasetConfig) -> list[str]:
    """Return the columns a release models, in the dataset's declared order.

    Privacy: ledger only.
    """
    wanted = None if release.columns is None else set(release.columns)
    return [name for name in dataset.modelled_columns if wanted is None or name in wanted]


def sensitive_columns(release: ReleaseConfig, dataset: DatasetConfig) -> tuple[str, ...]:
    """Return the release's sensitive attribute, then further modelled columns tagged so.

    The attribute is the release's option `sensitive`, or else the only column that the dataset
    tags `sensitive: true`.

    Returns:
        Column names; empty where nothing tells the attribute (none, or several, are tagged).

    Privacy: ledger only.
    """
    tagged = [
        name
        for name in release_columns(release, dataset)
        if getattr(dataset.columns[name], "sensitive", False)
    ]
    chosen = release.options.get("sensitive")
    if chosen is None:
        return tuple(tagged) if len(tagged) == 1 else ()
    return (str(chosen), *(name for name in tagged if name != chosen))


def partition_fault(column: str, dataset: DatasetConfig) -> str:
    """Say what is wrong with a column that is to select a partition; empty where it may.

    Privacy: ledger only.
    """
    places = [*dataset.partition_columns, *dataset.columns]
    if column in places:
        return ""
    return (
        f"unknown column {quoted(column)}; {did_you_mean(column, places)} (or list it under the "
        "dataset's partition_columns)"
    )


def _sensitive(release: ReleaseConfig, dataset: DatasetConfig) -> Iterator[str]:
    if release.mechanism != "csa_privbayes":
        return
    modelled = release_columns(release, dataset)
    found = sensitive_columns(release, dataset)
    if not found:
        yield (
            "options: csa_privbayes needs to know the sensitive attribute; add "
            "options: {sensitive: COLUMN}, or tag one column `sensitive: true` in the dataset"
        )
    elif found[0] not in modelled:
        told = _unknown(found[0], dataset.modelled_columns, modelled, "option")
        yield f"options.sensitive: {told}"
    elif dataset.columns[found[0]].type not in ("category", "boolean"):
        yield (
            f"options.sensitive: {quoted(found[0])} is of type {dataset.columns[found[0]].type}, "
            "not categorical; choose a column of type category or boolean"
        )


def _options(release: ReleaseConfig) -> Iterator[str]:
    for name, value in release.options.items():
        unknown = name not in OPTIONS[release.mechanism]
        fault = option_fault(release.mechanism, name, value)
        if fault and not (unknown and name == "quantile_bins"):  # told where columns are checked
            yield f"options.{name}: {fault}"
    shared = "bin_share" in release.options and "bin_share" in OPTIONS[release.mechanism]
    if shared and not release.options.get("quantile_bins"):
        yield "options.bin_share: needs `quantile_bins: {COLUMN: BINS}`; add it or remove this"


def _quantile_bins(release: ReleaseConfig, dataset: DatasetConfig) -> Iterator[str]:
    asked = release.options.get("quantile_bins")
    if not isinstance(asked, dict):
        return
    key = "options.quantile_bins"
    if release.mechanism not in ("csa_privbayes", "privbayes"):
        yield (
            f"{key}: {release.mechanism} measures the declared bins as they are; remove the "
            "option, or use csa_privbayes or privbayes"
        )
        return
    modelled = release_columns(release, dataset)
    for name, bins in asked.items():
        if name not in modelled:
            yield f"{key}: {_unknown(name, dataset.modelled_columns, modelled, 'option')}"
            continue
        config = dataset.columns[name]
        levels = len(level_labels(config))
        if config.type not in ORDERED_TYPES:
            yield (
                f"{key}: {quoted(name)} is of type {config.type}, whose levels have no order; "
                f"choose a column of type {', '.join(ORDERED_TYPES)}"
            )
        elif levels < 3:
            yield (
                f"{key}: {quoted(name)} is declared with {levels} levels, too few to gather; "
                "declare finer bins or remove it"
            )
        elif not 2 <= bins < levels:
            yield (
                f"{key}: {bins} bins of {quoted(name)} are asked for, which is declared with "
                f"{levels} levels to choose edges from; ask for 2 to {levels - 1}, or declare "
                "finer bins"
            )


def _columns(release: ReleaseConfig, dataset: DatasetConfig) -> Iterator[str]:
    known = dataset.modelled_columns
    for name in release.columns or ():
        if name not in known:
            yield f"columns: unknown column {quoted(name)}; {did_you_mean(name, known)}"
    modelled = release_columns(release, dataset)
    queries = [("interest", query) for query in release.interest]
    if not isinstance(release.workload, str):
        queries += [("workload", query.columns) for query in release.workload]
    for key, query in queries:
        for name in query:
            if name not in modelled:
                yield f"{key}: {_unknown(name, known, modelled, 'query')}"
    if release.partition is not None:
        column = release.partition.column
        unknown = partition_fault(column, dataset)
        if unknown:
            yield f"partition.column: {unknown}"
        elif column in modelled:
            yield (
                f"partition.column: {quoted(column)} is also modelled, where it would be constant; "
                "leave it out with `columns:` or list it under the dataset's partition_columns"
            )


def _unknown(name: str, known: object, modelled: list[str], asked: str) -> str:
    if isinstance(known, dict) and name in known:
        return f"{quoted(name)} is left out by `columns:`; add it there or drop it from the {asked}"
    return f"unknown column {quoted(name)}; {did_you_mean(name, modelled)}"


def _requester(release: ReleaseConfig, budgets: BudgetsConfig) -> Iterator[str]:
    user = budgets.users.get(release.requester)
    if user is None:
        yield (
            f"requester: unknown requester {quoted(release.requester)}; "
            f"{did_you_mean(release.requester, budgets.users)} (users in budgets.yaml)"
        )
    elif release.dataset not in user.datasets:
        yield (
            f"requester: {quoted(release.requester)} has no budget on "
            f"{quoted(release.dataset)}; add it under users in budgets.yaml"
        )


def _pools(release: ReleaseConfig, dataset: DatasetConfig, budgets: BudgetsConfig) -> Iterator[str]:
    pools = {name: budgets.populations.get(name) for name in dataset.populations}
    for name, pool in pools.items():
        if pool is None:
            yield (
                f"dataset: its population {quoted(name)} has no pool; "
                f"{did_you_mean(name, budgets.populations)} (populations in budgets.yaml)"
            )
    declared = {name: pool for name, pool in pools.items() if pool is not None}
    deltas = {pool.delta for pool in declared.values()}
    if len(deltas) > 1:
        shown = ", ".join(f"{name} {pool.delta}" for name, pool in declared.items())
        yield f"dataset: its populations differ in delta ({shown}); give them one delta"
    if release.delta is not None:
        for name, pool in declared.items():
            if pool.delta_exponent != release.delta_exponent:
                yield (
                    f"delta: {release.delta} differs from {pool.delta}, the delta of the pool "
                    f"{quoted(name)}; remove the key, delta belongs to the pool"
                )
