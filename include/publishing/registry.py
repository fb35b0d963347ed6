"""The release in the words of others: the OpenDP deployments registry and DCAT.

The registry's draft is a starting point for the publisher's own submission: fields that only a
person can fill say so.
"""

from __future__ import annotations

import re
from typing import Any

from include.publishing.facts import NO_STATEMENT, FileFacts, slug, variant
from include.quality.reading import sentence
from include.quality.report import ReportInput


def deployment(report: ReportInput) -> dict[str, Any]:
    """Return the registry's `deployment` mapping, tiers 1 to 3.

    Args:
        report: the facts of the release.

    Returns:
        basic, dp_variant, privacy_loss, deployment_model, accounting, implementation and
        administrative, with the registry's field names.

    Source: OpenDP deployments registry, schemas/deployments-schema.yaml (July 2026).

    Privacy: post-processing.
    """
    privacy = report.privacy
    return {
        "basic": _basic(report),
        "dp_variant": {
            "variant_name": variant(privacy),
            "data_domain": _domain(report),
            "unprotected_quantities": "; ".join(privacy.unprotected) or "None.",
        },
        "privacy_loss": {
            "privacy_unit": privacy.privacy_unit,
            "privacy_unit_details": privacy.neighbouring,
            "privacy_parameters": _parameters(report),
            "privacy_parameters_details": _parameter_words(report),
        },
        "deployment_model": {
            "model_name": "Central",
            "model_name_details": privacy.trust_model,
            "actors": (
                "The data steward (trusted with the raw data); the requester, data users and the "
                "public (not trusted; they see released packages only and may collude)."
            ),
            "release_type": "Many releases",
            "release_type_details": _pool_words(report),
            "data_source_type": "Static",
            "data_source_type_details": "One snapshot is taken for each release.",
            "access_type": "Non-interactive",
            "access_type_details": "Packages are published; the data answer no queries.",
        },
        "accounting": {
            "post_processing": (
                "The model is fitted to the noisy measurements, rows are sampled from it and "
                "checked; none of these steps sees the data."
            ),
            "composition": privacy.composition,
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": _preprocessing(report),
            "mechanisms": f"{privacy.mechanism}. Noise: {privacy.noise_source}.",
            "justification": (
                f"Requested epsilon {report.budget.requested_epsilon}, granted "
                f"{report.budget.granted_epsilon}. {sentence(report.budget.reason)}"
            ),
        },
        "administrative": {
            "sources": report.dataset.citation or NO_STATEMENT,
            "notes": "Drafted by the release pipeline; to be completed by the publisher.",
            "registry_authors": [report.dataset.publisher or NO_STATEMENT],
        },
    }


def registry_draft(report: ReportInput) -> dict[str, Any]:
    """Return a record for the OpenDP deployments registry, status Draft.

    Privacy: post-processing.
    """
    name = slug(f"{report.dataset.publisher}-{report.release.release}").replace(".", "-")
    return {
        "url_slug": name,
        "status": "Draft",
        "tier": 3,
        "deployment": deployment(report),
    }


def _basic(report: ReportInput) -> dict[str, Any]:
    release, dataset = report.release, report.dataset
    return {
        "name": release.title or release.release,
        "data_curators": [dataset.publisher or NO_STATEMENT],
        "intended_use": release.intended_use or NO_STATEMENT,
        "data_product_type": "Synthetic data",
        "data_product_region": dataset.region or NO_STATEMENT,
        "description": (
            release.description
            or dataset.description
            or f"Synthetic table from {dataset.title or dataset.name}, period {release.period}."
        ),
        "publication_date": release.created[:10],
    }


def _preprocessing(report: ReportInput) -> str:
    private = report.privacy.private_bins
    if private is None:
        declared = "Categories, bins and bounds were declared without looking at rows"
    else:
        names = ", ".join(item.column for item in private.columns)
        declared = (
            "Categories, bounds and grids were declared without looking at rows; the edges of the "
            f"bins of {names} were selected by the exponential mechanism, inside the budget"
        )
    return f"{declared}; values outside are handled row by row; nothing was tuned on the data."


def _domain(report: ReportInput) -> str:
    names = ", ".join(c.name for c in report.columns)
    return f"Tables with the declared columns {names}, of any number of rows."


def _parameters(report: ReportInput) -> dict[str, Any]:
    privacy = report.privacy
    found: dict[str, Any] = {"epsilon": float(privacy.epsilon)}
    if privacy.delta != "0":
        found["delta"] = float(privacy.delta)
    if privacy.rho:
        found["rho"] = float(privacy.rho)
    return found


def _parameter_words(report: ReportInput) -> str:
    privacy = report.privacy
    words = f"This release alone: epsilon {privacy.epsilon} at delta {privacy.delta}"
    words += f", rho {privacy.rho}." if privacy.rho else "."
    return f"{words} {_pool_words(report)}"


def _pool_words(report: ReportInput) -> str:
    parts = [
        f"All releases about '{pool.name}' together: epsilon {pool.spent_after_epsilon} spent of a "
        f"fixed total of {pool.total_epsilon}, which is never refilled."
        for pool in report.budget.pools
        if pool.kind == "dataset"
    ]
    return " ".join(parts) or NO_STATEMENT


def dcat(report: ReportInput, files: dict[str, FileFacts]) -> dict[str, Any]:
    """Describe the release for data portals, as a DCAT 3 dataset in JSON-LD.

    Args:
        report: the facts of the release.
        files: the files of the package, by name.

    Returns:
        The content of dcat.jsonld; addresses are relative to it.

    Source: W3C DCAT 3.

    Privacy: post-processing.
    """
    release, dataset = report.release, report.dataset
    body: dict[str, Any] = {
        "@context": {
            "dcat": "http://www.w3.org/ns/dcat#",
            "dct": "http://purl.org/dc/terms/",
            "foaf": "http://xmlns.com/foaf/0.1/",
            "spdx": "http://spdx.org/rdf/terms#",
            "vcard": "http://www.w3.org/2006/vcard/ns#",
            "xsd": "http://www.w3.org/2001/XMLSchema#",
        },
        "@type": "dcat:Dataset",
        "dct:identifier": slug(f"{release.release}-{release.period}"),
        "dct:title": release.title or f"{release.release}, {release.period}",
        "dct:description": _basic(report)["description"],
        "dct:issued": {"@type": "xsd:dateTime", "@value": release.created},
        "dcat:keyword": ["synthetic data", "differential privacy"],
        "dcat:version": release.period,
        "dcat:distribution": [
            _distribution(files["data.csv"], "CSV", "text/csv"),
            _distribution(files["data.parquet"], "Parquet", "application/vnd.apache.parquet"),
        ],
    }
    if dataset.publisher:
        body["dct:publisher"] = {"@type": "foaf:Organization", "foaf:name": dataset.publisher}
    if dataset.contact:
        body["dcat:contactPoint"] = {
            "@type": "vcard:Organization",
            "vcard:fn": dataset.publisher or dataset.contact,
            **_reached_by(dataset.contact),
        }
    if dataset.licence_url:
        body["dct:license"] = {"@id": dataset.licence_url}
    elif dataset.licence:
        body["dct:license"] = {"@type": "dct:LicenseDocument", "dct:title": dataset.licence}
    if dataset.citation:
        body["dct:bibliographicCitation"] = dataset.citation
    return body


def _reached_by(contact: str) -> dict[str, Any]:
    """Say how the contact is reached: an address is a link, anything else a note."""
    if contact.startswith(("http://", "https://")):
        return {"vcard:hasURL": {"@id": contact}}
    if re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", contact):
        return {"vcard:hasEmail": {"@id": f"mailto:{contact}"}}
    return {"vcard:note": contact}


def _distribution(file: FileFacts, title: str, mediatype: str) -> dict[str, Any]:
    return {
        "@type": "dcat:Distribution",
        "dct:title": title,
        "dcat:downloadURL": {"@id": file.name},
        "dcat:mediaType": mediatype,
        "dcat:byteSize": file.size,
        "spdx:checksum": {
            "@type": "spdx:Checksum",
            "spdx:algorithm": {"@id": "spdx:checksumAlgorithm_sha256"},
            "spdx:checksumValue": file.sha256,
        },
    }
