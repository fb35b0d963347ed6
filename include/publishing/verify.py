"""Check a package as its recipient: no Airflow, no database, no trust in the folder's own word.

Checked: every file against SHA256SUMS and nothing beside it; the signature; the manifest's own
sizes and digests; the table against the declared schema; the privacy claim against its JSON schema
where `jsonschema` is installed. Not checked: that the claim is true. For that, an auditor compares
the ledger entry named in the manifest with an export of the ledger.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from include.publishing.errors import PublishError
from include.publishing.package import (
    MANIFEST,
    PUBLIC_KEY,
    SIGNATURE,
    SUMS,
    checksums,
    file_digest,
)
from include.publishing.signing import KeyFileError, key_id, verify
from include.publishing.targets import SUPERSEDED, WITHDRAWN

SCHEMAS = Path(__file__).parent / "schemas"
_UNLISTED = {SUMS, SIGNATURE, PUBLIC_KEY, WITHDRAWN, SUPERSEDED}


@dataclass(frozen=True)
class Finding:
    """One thing found in a package.

    Privacy: post-processing.
    """

    level: str  # ok | warning | error
    subject: str
    words: str


def verify_package(path: Path, *, trusted_key: bytes | None = None) -> list[Finding]:
    """Check a release package.

    Args:
        path: the folder of the package.
        trusted_key: the publisher's public key (PEM), got by another way than the package.

    Returns:
        Findings, in the order of the checks; the package is sound when none is an error.

    Privacy: post-processing.
    """
    try:
        listed = checksums(path)
    except PublishError as fault:
        return [Finding("error", SUMS, str(fault))]
    findings = [*_files(path, listed), *_signature(path, trusted_key)]
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        if not isinstance(manifest, dict):
            raise ValueError
    except (OSError, ValueError):
        return [*findings, Finding("error", MANIFEST, "The manifest cannot be read.")]
    findings += [*_key_named(path, manifest), *_resources(path, manifest)]
    findings += [*_table(path, manifest), *_claim(manifest), *_markers(path)]
    return findings


def sound(findings: list[Finding]) -> bool:
    """Return whether no finding is an error.

    Privacy: post-processing.
    """
    return all(finding.level != "error" for finding in findings)


def _files(path: Path, listed: dict[str, str]) -> Iterator[Finding]:
    good = True
    for name, digest in listed.items():
        file = path / name
        if not file.is_file() or file.is_symlink():
            good = False
            yield Finding("error", name, "The file is listed but missing.")
        elif file_digest(file) != digest:
            good = False
            yield Finding("error", name, "The file was changed after the package was made.")
    if MANIFEST not in listed:
        good = False
        yield Finding("error", MANIFEST, f"The manifest is not listed in {SUMS}.")
    for entry in sorted(path.iterdir()):
        if entry.name not in listed and entry.name not in _UNLISTED:
            good = False
            yield Finding("error", entry.name, "The file does not belong to the package.")
    if good:
        yield Finding("ok", SUMS, f"All {len(listed)} files are as they were made.")


def _signature(path: Path, trusted_key: bytes | None) -> Iterator[Finding]:
    if not (path / SIGNATURE).is_file():
        level = "error" if trusted_key is not None else "warning"
        yield Finding(level, SIGNATURE, "The package is not signed.")
        return
    try:
        pem = trusted_key if trusted_key is not None else (path / PUBLIC_KEY).read_bytes()
        name = key_id(pem)
        good = verify(pem, (path / SIGNATURE).read_bytes(), (path / SUMS).read_bytes())
    except (OSError, KeyFileError):
        yield Finding("error", SIGNATURE, "There is no usable public key to check it with.")
        return
    if not good:
        yield Finding("error", SIGNATURE, f"The signature was not made by key {name}.")
    elif trusted_key is None:
        words = f"Signed by the enclosed key {name}; compare this id with the publisher's."
        yield Finding("warning", SIGNATURE, words)
    else:
        yield Finding("ok", SIGNATURE, f"Signed by the trusted key {name}.")


def _key_named(path: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    named = _inside(manifest, "dp", "signature", "key_id")
    if named is None or not (path / PUBLIC_KEY).is_file():
        return
    try:
        enclosed = key_id((path / PUBLIC_KEY).read_bytes())
    except KeyFileError:
        return
    if enclosed != named:
        yield Finding("error", PUBLIC_KEY, f"The manifest names the key {named}, not {enclosed}.")


def _resources(path: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    resources = manifest.get("resources")
    if not isinstance(resources, list) or not resources:
        yield Finding("error", MANIFEST, "The manifest lists no resources.")
        return
    for resource in resources:
        name = str(resource.get("path", "")) if isinstance(resource, dict) else ""
        file = path / name
        if not name or "/" in name or not file.is_file():
            yield Finding("error", MANIFEST, "A resource of the manifest is missing.")
        elif resource.get("hash") != f"sha256:{file_digest(file)}":
            yield Finding("error", name, "The file differs from the manifest's digest.")
        elif resource.get("bytes") not in (None, file.stat().st_size):
            yield Finding("error", name, "The file differs from the manifest's size.")


def _table(path: Path, manifest: dict[str, Any]) -> Iterator[Finding]:
    """Hold the CSV against its Table Schema: names, types, permitted values, empty cells."""
    try:
        tables = [r for r in manifest["resources"] if isinstance(r, dict)]
        resource = next(r for r in tables if r.get("name") == "data")
        schema = resource["schema"]
        with (path / resource["path"]).open(encoding="utf-8", newline="") as file:
            faults = _row_faults(csv.reader(file), schema)
    except (StopIteration, LookupError, TypeError, AttributeError, OSError, ValueError, csv.Error):
        yield Finding("error", "data.csv", "The table cannot be read with its schema.")
        return
    for column, words in sorted(faults):
        yield Finding("error", "data.csv", f"Column '{column}': {words}.")
    if not faults:
        yield Finding("ok", "data.csv", "The table keeps its declared schema.")


def _row_faults(rows: Iterator[list[str]], schema: dict[str, Any]) -> set[tuple[str, str]]:
    fields, missing = schema["fields"], set(schema["missingValues"])
    names = [field["name"] for field in fields]
    if next(rows, None) != names:
        return {("(all)", "the heading is not the declared one")}
    permitted = [set(f.get("constraints", {}).get("enum", ())) for f in fields]
    faults: set[tuple[str, str]] = set()
    for row in rows:
        if len(row) != len(names):
            faults.add(("(all)", "a row has another number of cells"))
            continue
        for field, values, cell in zip(fields, permitted, row, strict=True):
            fault = _cell_fault(field, values, cell, missing)
            if fault:
                faults.add((field["name"], fault))
    return faults


def _cell_fault(field: dict[str, Any], values: set[str], cell: str, missing: set[str]) -> str:
    constraints = field.get("constraints", {})
    if cell in missing:
        return "a cell is empty" if constraints.get("required") else ""
    if values:
        return "" if cell in values else "a value is not declared"
    if field["type"] in ("integer", "number"):
        try:
            number = int(cell) if field["type"] == "integer" else float(cell)
        except ValueError:
            return f"a value is no {field['type']}"
        if field.get("decimals") is not None and number != round(number, field["decimals"]):
            return f"a value has more than {field['decimals']} decimals"
        low, high = constraints.get("minimum", number), constraints.get("maximum", number)
        return "" if low <= number <= high else "a value is outside the declared range"
    if field["type"] == "boolean":
        return "" if cell in ("True", "False") else "a value is no boolean"
    return ""


def _claim(manifest: dict[str, Any]) -> Iterator[Finding]:
    try:
        import jsonschema
    except ImportError:
        yield Finding("warning", MANIFEST, "jsonschema is not installed: claim not checked.")
        return
    schema = json.loads((SCHEMAS / "dp.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    faults = sorted(validator.iter_errors(manifest.get("dp")), key=lambda e: list(map(str, e.path)))
    for fault in faults[:20]:
        place = "/".join(["dp", *map(str, fault.path)])
        yield Finding("error", MANIFEST, f"The privacy claim breaks its schema at {place}.")
    if not faults:
        yield Finding("ok", MANIFEST, "The privacy claim is complete.")


def _markers(path: Path) -> Iterator[Finding]:
    for name, words in ((WITHDRAWN, "withdrawn"), (SUPERSEDED, "replaced by a later one")):
        if (path / name).is_file():
            try:
                reason = str(json.loads((path / name).read_text(encoding="utf-8"))["reason"])
            except (ValueError, KeyError, TypeError, OSError):
                reason = ""
            words = f"The publisher has marked this release as {words}. {reason}".strip()
            yield Finding("warning", name, words)


def _inside(body: Any, *keys: str) -> Any:
    for key in keys:
        body = body.get(key) if isinstance(body, dict) else None
    return body
