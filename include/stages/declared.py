"""What the files declare must be what the ledger has registered, at every run and not only once.

The registered populations are what a release is charged to, and the registered id column and row
bound are what its guarantee is stated for: a file that says otherwise must not be run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from include.errors import CuSynError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from include.config.datasets import DatasetConfig
    from include.stages.run import ReleaseRun, Workplace


class NotAsRegistered(CuSynError):
    """A dataset's file differs from what the ledger has registered under its name."""


def declaration(dataset: DatasetConfig) -> dict[str, Any]:
    """Return what the ledger registers of a dataset.

    Privacy: ledger only.
    """
    from include.data.schema import Schema

    return {
        "populations": {
            name: {"id_column": binding.id_text, "max_rows": binding.max_rows}
            for name, binding in dataset.bindings.items()
        },
        "schema_digest": Schema.from_config(dataset).digest,
        "reuse": dataset.reuse,
    }


def require_registered(run: ReleaseRun, place: Workplace) -> None:
    """Refuse a dataset whose file differs from its registration.

    Raises:
        NotAsRegistered: naming the file's key and the fix.

    Privacy: ledger only.
    """
    dataset = run.dataset
    known = place.reader.dataset(dataset.dataset)
    if known is None:
        raise NotAsRegistered(
            f"dataset {dataset.dataset} is not registered in the ledger; run "
            "`python -m include.cli register` first"
        )
    declared = declaration(dataset)
    named = {
        "populations": "populations, id_column or max_rows",
        "schema_digest": "columns",
        "reuse": "reuse",
    }
    for key, where in named.items():
        if declared[key] != known[key]:
            raise NotAsRegistered(
                f"dataset {dataset.dataset}: {where} in its file differ from what the ledger has "
                "registered; restore the file, or enter the change with `python -m include.cli "
                f"admin amend {dataset.dataset} --reason ...`"
            )
    require_units(dataset, place.reader.units())


def require_units(dataset: DatasetConfig, units: Mapping[str, str]) -> None:
    """Refuse a dataset that claims another unit than its populations protect.

    A population with an id_column and max_rows of its own may be about another kind of unit; one
    population at least is about the dataset's.

    Args:
        dataset: the dataset as declared.
        units: the unit of each population, by name.

    Raises:
        NotAsRegistered: naming the unit, the population and the fix.

    Privacy: ledger only.
    """
    what, shared = dataset.privacy_unit.what, dataset.unit_binding
    bound = {name: units[name] for name in dataset.populations if name in units}
    other = [
        name for name, unit in bound.items() if dataset.bindings[name] == shared and unit != what
    ]
    if not other and (not bound or what in bound.values()):
        return
    name = other[0] if other else next(iter(bound))
    raise NotAsRegistered(
        f"dataset {dataset.dataset}: privacy_unit.what in its file is {what!r}, but the unit of "
        f"population {name} is {bound[name]!r}; write that, or name a population whose unit is "
        f"{what!r}"
    )
