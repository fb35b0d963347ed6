"""What the files declare must be what the ledger has registered, at every run and not only once.

The registered populations are what a release is charged to, and the registered id column and row
bound are what its guarantee is stated for: a file that says otherwise must not be run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from include.errors import CuSynError

if TYPE_CHECKING:
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
