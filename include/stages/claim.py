"""The privacy claim of a published manifest against what was charged and what is registered."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from include.accounting import format_amount
from include.budget.audit import Check
from include.errors import CuSynError
from include.publishing.errors import DestinationDeniedError, DestinationUnavailableError
from include.stages.facts import STRICT, row_count_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from include.budget.models import Charge
    from include.budget.reader import LedgerReader, Release
    from include.settings import Settings

PLACE = "the manifest lies where it was published"
QUESTION = "the manifest claims what was charged and registered"


def claim_checks(release_id: str, reader: LedgerReader, settings: Settings) -> tuple[Check, ...]:
    """Read a release's manifest where it was published, and compare its claim with the ledger.

    Args:
        release_id: a published release.
        reader: the ledger.
        settings: where relative addresses lie; an s3:// address is read with the environment's
            AWS settings.

    Returns:
        One check for the file, and one for its claim where the file is the published one. Where
        the address cannot be read from here the first one is not checked, and says what to set.

    Raises:
        UnknownName: no release has that id.

    Privacy: ledger only.
    """
    release = reader.release(release_id)
    try:
        found, told = _manifest(release, settings)
    except CuSynError as fault:
        return (Check(PLACE, False, _unread(release.uri, fault), checked=False),)
    read = Check(PLACE, found is not None, told)
    if found is None:
        return (read,)
    faults = list(_faults(found, reader.charge(release.charge_id), reader))
    return read, Check(QUESTION, not faults, "; ".join(faults) or "unit, bounds, amounts, rules")


def _manifest(release: Release, settings: Settings) -> tuple[dict[str, Any] | None, str]:
    """Return the manifest that the ledger names, or None and why not.

    Raises:
        CuSynError: the address cannot be read from here.
    """
    from include.publishing.destinations import target_for
    from include.publishing.folder import FolderTarget
    from include.publishing.package import MANIFEST

    address = release.uri.rstrip("/")
    target = target_for(address, base=settings.project_root)
    content = target.read(MANIFEST)
    if content is None:
        # <destination>/<release>/<period>/<release id>: a whole destination is not lost but away.
        if isinstance(target, FolderTarget) and not target.folder.parents[2].is_dir():
            raise DestinationDeniedError(f"{release.uri}: its folder is not there")
        return None, f"{release.uri} holds no {MANIFEST}; restore the package from a copy"
    if hashlib.sha256(content).hexdigest() != release.manifest_digest:
        return None, (
            f"{address}/{MANIFEST} is not the file whose digest the ledger names; restore the "
            "package from a copy"
        )
    manifest: dict[str, Any] = json.loads(content)
    return manifest, f"{address}/{MANIFEST}"


def _unread(uri: str, fault: CuSynError) -> str:
    """Say that nothing is known of the package, and what its reader must set."""
    why = "the request was refused"
    if isinstance(fault, DestinationUnavailableError):
        why = "no answer"
    elif isinstance(fault, DestinationDeniedError):
        why = "no permission, or not there"
    if uri.startswith("s3://"):
        cure = (
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to a key that may read it, and "
            "AWS_ENDPOINT_URL_S3 where the store is not AWS itself"
        )
    else:
        cure = "mount that folder here, readable (relative ones lie under CUSYN_PROJECT_ROOT)"
    return (
        f"the package itself was not checked, because {uri} cannot be read from here ({why}); "
        f"{cure}, then ask again"
    )


def _faults(manifest: dict[str, Any], charge: Charge, reader: LedgerReader) -> Iterator[str]:
    """Say, each in one clause, what the claim says otherwise than the ledger."""
    try:
        claim, lineage = manifest["dp"]["statement"], manifest["dp"]["lineage"]
        stated: dict[str, tuple[object, object]]
        stated = {"charge": (lineage["charge_id"], charge.charge_id)}
        stated |= _of_the_charge(claim, charge) | _of_the_unit(claim, charge, reader)
    except (KeyError, TypeError, ValueError, AttributeError):
        yield "its claim lacks a key; see the schema of the package"
        return
    for name, (says, should) in stated.items():
        if says != should:
            yield f"{name} is {_plain(says)} in the manifest and {_plain(should)} in the ledger"


def _of_the_charge(claim: dict[str, Any], charge: Charge) -> dict[str, tuple[object, object]]:
    """Pair what is claimed with what was granted and asked; keys of later versions may lack."""
    asked, amounts = charge.parameters, claim["parameters"]
    pairs: dict[str, tuple[object, object]] = {
        "epsilon": (amounts["epsilon"], format_amount(charge.granted_pico)),
    }
    if charge.cost is not None:
        pairs["rho"] = (amounts["rho"], format_amount(charge.cost.rho_pico))
    if "strict" in asked:
        pairs["strict"] = (STRICT in claim["unprotected_quantities"], asked["strict"])
    if "rows" in asked:
        pairs["the rule of the row count"] = (
            claim["row_count_rule"],
            row_count_rule(asked["rows"]),
        )
    if "what" in asked:
        pairs["the unit"] = (claim["unit_of_privacy"], asked["what"])
    if "task" in asked:
        bound = claim["contribution_bound"]["max_rows"]
        pairs["max_rows"] = (bound, asked["task"]["max_rows"])
    return pairs


def _of_the_unit(
    claim: dict[str, Any], charge: Charge, reader: LedgerReader
) -> dict[str, tuple[object, object]]:
    """Pair the claimed populations and bounds with those asked for and those registered."""
    bounds = {
        name: [_id_text(one["id_columns"]), one["max_rows"]]
        for name, one in claim["contribution_bound"]["populations"].items()
    }
    known = (reader.dataset(charge.dataset) or {"populations": {}})["populations"]
    registered = {name: [one["id_column"], one["max_rows"]] for name, one in known.items()}
    # A population that was added later is not of this release.
    earlier = {name: one for name, one in registered.items() if name in bounds}
    units = {unit for name, unit in reader.units().items() if name in bounds}
    unit = claim["unit_of_privacy"]
    return {
        "populations and their bounds": (bounds, charge.parameters.get("unit", bounds)),
        "populations and their registered bounds": (bounds, earlier),
        "the registered unit": (unit, unit if unit in units else " or ".join(sorted(units))),
    }


def _id_text(columns: list[str]) -> str | None:
    """Write id columns as the ledger registers them."""
    return (
        json.dumps(columns, ensure_ascii=False) if len(columns) > 1 else next(iter(columns), None)
    )


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
