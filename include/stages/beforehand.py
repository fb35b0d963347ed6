"""What would be found only after the budget is spent is refused before it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from include.accounting import format_amount, format_delta
from include.config.errors import ConfigError, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from include.budget.reader import LedgerReader, Pool
    from include.config.requests import ReleaseConfig
    from include.settings import Settings
    from include.stages.run import ReleaseRun


def require_destination(release: ReleaseConfig, settings: Settings, label: str = "") -> None:
    """Refuse to publish into a folder that readers must not see, or that is not for packages.

    Args:
        release: what is asked for.
        settings: where the installation's own folders lie.
        label: how the release's file is called in an error; by default the release's name.

    Raises:
        ConfigError: naming the folder it lies in.

    Privacy: ledger only.
    """
    parts = urlsplit(release.publish.uri)
    if parts.scheme == "s3":
        return
    folder = (settings.project_root / Path(parts.path)).resolve()
    kept = {
        "the protected store": settings.protected_dir,
        "the work folder": settings.work_dir,
        "the folder of keys": settings.keys_dir,
        "the folder of checkpoints": settings.checkpoints_dir,
        "the configuration": settings.config_dir,
    }
    for what, place in kept.items():
        if folder.is_relative_to(place.resolve()):
            raise ConfigError(
                label or f"release {release.release}",
                "publish.uri",
                f"{quoted(release.publish.uri)} lies in {what}; name a folder that readers may see",
            )


def require_delta(run: ReleaseRun, reader: LedgerReader) -> None:
    """Refuse a delta in budgets.yaml that is not the registered one: it would misprice the plan.

    Raises:
        ConfigError: naming the population and both deltas.

    Privacy: ledger only.
    """
    registered = {pool.owner: pool.delta for pool in reader.pools() if pool.kind == "dataset"}
    for name in run.dataset.populations:
        declared = format_delta(run.budgets.populations[name].delta_exponent)
        if registered.get(name, declared) != declared:
            raise ConfigError(
                "budgets.yaml",
                f"populations.{name}.delta",
                f"{declared} differs from {registered[name]}, which the ledger has registered; "
                "restore it, since delta is fixed for a population's life",
            )


def require_budgets(run: ReleaseRun, reader: LedgerReader, *, only_planned: bool = False) -> None:
    """Refuse figures in budgets.yaml that are not the registered ones: the ledger's would count.

    Only what this release draws on is looked at: its populations and its requester's pool.

    Args:
        run: the release, with the budgets as declared now.
        reader: the ledger.
        only_planned: whether a pool may still be missing in the ledger.

    Raises:
        ConfigError: naming the key, both figures and the fix.

    Privacy: ledger only.
    """
    pools = [pool for pool in reader.pools() if pool.status != "retired"]
    for name in run.dataset.populations:
        declared = run.budgets.populations[name]
        of_people = [pool for pool in pools if (pool.kind, pool.owner) == ("dataset", name)]
        known = [pool for pool in of_people if pool.accounting == declared.accounting]
        _require_figures(
            f"populations.{name}",
            f"population:{name}",
            {
                "accounting": declared.accounting,
                "epsilon": _shown(declared.epsilon_pico),
                "per_operation_limit": _shown(declared.per_operation_limit_pico),
            },
            known or of_people,
            only_planned,
        )
    user, dataset = run.release.requester, run.dataset.dataset
    theirs = run.budgets.users[user].datasets[dataset]
    _require_figures(
        f"users.{user}.datasets.{dataset}",
        f"user:{user}@{dataset}",
        {"epsilon": _shown(theirs.epsilon_pico), "per_request": _shown(theirs.per_request_pico)},
        [p for p in pools if (p.kind, p.owner, p.dataset) == ("user", user, dataset)],
        only_planned,
    )


def _require_figures(
    place: str,
    subject: str,
    declared: Mapping[str, str],
    pools: Sequence[Pool],
    only_planned: bool,
) -> None:
    from include.budget.pools import budget_fix

    if not pools and only_planned:
        return
    if not pools:
        raise ConfigError(
            "budgets.yaml",
            place,
            "is not registered in the ledger; run `python -m include.cli register`",
        )
    limit = pools[0].limit_epsilon or _shown(None)
    registered = {"accounting": pools[0].accounting, "epsilon": pools[0].epsilon}
    for key, mine in declared.items():
        theirs = registered.get(key, limit)
        if mine != theirs:
            raise ConfigError(
                "budgets.yaml",
                f"{place}.{key}",
                f"{mine} differs from {theirs}, which the ledger has registered; "
                f"{budget_fix(subject, key)}",
            )


def _shown(amount_pico: int | None) -> str:
    return "no limit" if amount_pico is None else format_amount(amount_pico)


def require_predecessor(release: ReleaseConfig, reader: LedgerReader, label: str = "") -> None:
    """Refuse to replace a release that the ledger does not know, or another one's.

    Args:
        release: what is asked for.
        reader: the ledger.
        label: how the release's file is called in an error; by default the release's name.

    Raises:
        ConfigError: naming the id and what it is.

    Privacy: ledger only.
    """
    from include.budget.errors import UnknownName

    if release.supersedes is None:
        return
    try:
        known = reader.release(release.supersedes)
        fault = f"is a release of {known.release} on the dataset {known.dataset}"
        if (known.release, known.dataset) == (release.release, release.dataset):
            return
    except UnknownName:
        fault = "is not in the ledger"
    raise ConfigError(
        label or f"release {release.release}",
        "supersedes",
        f"{quoted(release.supersedes)} {fault}; name the id of an earlier release of "
        f"{release.release} (`python -m include.cli releases` lists them) or remove the key",
    )
