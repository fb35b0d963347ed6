"""Build the release package: the same input gives the same bytes, hence the same release id."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.publishing.errors import PublishError
from include.publishing.facts import FileFacts, LineageFacts
from include.publishing.manifest import data_package
from include.publishing.readme import readme
from include.publishing.registry import dcat, registry_draft
from include.publishing.tables import typed_frame, write_csv, write_parquet
from include.quality.report import ReportInput, write_report

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from include.publishing.signing import Signer

MANIFEST = "datapackage.json"
SUMS = "SHA256SUMS"
SIGNATURE = "SHA256SUMS.sig"
PUBLIC_KEY = "SHA256SUMS.key.pem"
REGISTRY_DRAFT = "dp-registry-draft.yaml"


@dataclass(frozen=True)
class PackageInput:
    """Everything a package is made from.

    Privacy: post-processing.
    """

    report: ReportInput
    table: pd.DataFrame  # the decoded synthetic table
    lineage: LineageFacts
    signer: Signer | None = None
    # The report's two files as they were stated, by name; without them they are written anew.
    stated: Mapping[str, bytes] | None = None


@dataclass(frozen=True)
class BuiltPackage:
    """A finished package on disk.

    Privacy: post-processing.
    """

    path: Path
    release: str
    period: str
    release_id: str
    content_digest: str  # SHA-256 of SHA256SUMS: every byte of every file hangs on it
    manifest_digest: str  # SHA-256 of datapackage.json


def build_package(folder: Path, package: PackageInput) -> BuiltPackage:
    """Write a release package.

    Args:
        folder: where the package shall lie; what an earlier try left there is replaced.
        package: the facts, the table and the signer.

    Returns:
        The package with its content-addressed release id.

    Raises:
        PublishError: table and facts do not belong together, or the disk refused.

    Privacy: post-processing.
    """
    rows = package.report.fidelity.rows
    if len(package.table) != rows:
        raise PublishError(
            "The synthetic table and its report are not of the same charge; "
            "run the quality check on this table again."
        )
    draft = folder.with_name(f".{folder.name}.partial")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        _write(draft, package)
        if folder.exists():
            shutil.rmtree(folder)
        draft.rename(folder)
    except OSError as fault:
        raise PublishError(
            f"{folder}: the package could not be written ({fault.strerror}); "
            "free space or correct the permissions, then run the task again."
        ) from fault
    return describe(folder)


def describe(folder: Path) -> BuiltPackage:
    """Name a package that lies on disk.

    Args:
        folder: a built package.

    Returns:
        Its release id and digests.

    Raises:
        PublishError: there is no complete package in the folder.

    Privacy: post-processing.
    """
    try:
        sums = (folder / SUMS).read_bytes()
        manifest = (folder / MANIFEST).read_bytes()
        lineage = json.loads(manifest)["dp"]["lineage"]
        release, period = str(lineage["release"]), str(lineage["period"])
    except (OSError, ValueError, KeyError, TypeError) as fault:
        raise PublishError(
            f"{folder}: no complete package lies here; build it before publishing."
        ) from fault
    content = hashlib.sha256(sums).hexdigest()
    return BuiltPackage(
        folder,
        release,
        period,
        release_id(release, period, content),
        content,
        hashlib.sha256(manifest).hexdigest(),
    )


def release_id(release: str, period: str, content_digest: str) -> str:
    """Return the name of a release: its file, its period, the first 12 digits of its content.

    Privacy: post-processing.
    """
    return f"{path_part(release)}-{path_part(period)}-{content_digest[:12]}"


def path_part(text: str) -> str:
    """Return a text as one safe path part; texts that differ stay apart.

    Privacy: post-processing.
    """
    safe = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip(".-")
    if safe and safe == text and len(text) <= 80:
        return text
    mark = hashlib.sha256(text.encode()).hexdigest()[:6]
    return f"{safe[:60] or 'x'}-{mark}"


def checksums(folder: Path) -> dict[str, str]:
    """Read SHA256SUMS.

    Args:
        folder: a package.

    Returns:
        SHA-256 by file name, in the order of the file.

    Raises:
        PublishError: the file is missing or a line is malformed.

    Privacy: post-processing.
    """
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        raise PublishError(f"{folder}: {SUMS} is missing; this is no release package.") from fault
    found: dict[str, str] = {}
    for line in lines:
        match = re.fullmatch(r"([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._-]*)", line)
        if match is None:
            raise PublishError(f"{folder}: a line of {SUMS} is malformed; fetch the package again.")
        found[match[2]] = match[1]
    return found


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces.

    Privacy: post-processing.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(folder: Path, package: PackageInput) -> None:
    report, lineage, signer = package.report, package.lineage, package.signer
    key = signer.key_id if signer else None
    table = typed_frame(package.table, report.columns)
    write_csv(folder / "data.csv", table, report.columns)
    write_parquet(folder / "data.parquet", table)
    if package.stated is None:
        write_report(folder, report)
    for name, data in (package.stated or {}).items():
        (folder / name).write_bytes(data)
    _text(folder / "README.md", readme(report, lineage, key))
    _text(folder / REGISTRY_DRAFT, _yaml(registry_draft(report)))
    files = {path.name: _facts(path) for path in folder.iterdir()}
    _text(folder / "dcat.jsonld", _json(dcat(report, files)))
    _text(folder / MANIFEST, _json(data_package(report, lineage, files, key)))
    names = sorted(path.name for path in folder.iterdir())
    _text(folder / SUMS, "".join(f"{file_digest(folder / name)}  {name}\n" for name in names))
    if signer is not None:
        (folder / SIGNATURE).write_bytes(signer.sign((folder / SUMS).read_bytes()))
        (folder / PUBLIC_KEY).write_bytes(signer.public_pem)


def _facts(path: Path) -> FileFacts:
    return FileFacts(path.name, path.stat().st_size, file_digest(path))


def _text(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8", newline="\n")


def _json(body: dict[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _yaml(body: dict[str, Any]) -> str:
    import yaml

    # The registry's own check wants plain or quoted scalars, never folded ones.
    return yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=10**6)
