"""Facts of a package beside those of its report: lineage and files."""

from __future__ import annotations

import re
from dataclasses import dataclass

from include.quality.facts import PrivacyFacts

NO_STATEMENT = "Not stated by the publisher."


@dataclass(frozen=True)
class LineageFacts:
    """How the release came about. No field is computed from the raw data.

    Privacy: ledger only.
    """

    charge_id: str
    entry_seq: int  # of the ledger's *sealed* entry: the recipient becomes a witness
    entry_hash: str
    transcript_digest: str  # of the noisy measurements
    plan_digest: str = ""
    dag_id: str = ""
    run_id: str = ""
    airflow_version: str = ""
    product_version: str = ""
    code_revision: str = ""
    config_digest: str = ""
    lock_digest: str = ""


@dataclass(frozen=True)
class FileFacts:
    """One file of the package.

    Privacy: post-processing.
    """

    name: str
    size: int  # bytes
    sha256: str


def slug(text: str) -> str:
    """Return a lower-case name of letters, digits, dots, dashes and underscores.

    Privacy: post-processing.
    """
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-.") or "release"


def variant(privacy: PrivacyFacts) -> str:
    """Return the registry's name of the variant of differential privacy.

    Privacy: ledger only.
    """
    if privacy.delta == "0":
        return "Pure DP"
    return "Zero-concentrated DP" if privacy.rho else "Approximate DP"
