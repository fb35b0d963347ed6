"""datapackage.json: what the files are, and the privacy claim an outsider can check.

The base is Frictionless Data Package v2. The `dp` block uses the field names of the OpenDP
deployments registry (tiers 1 to 3) and adds what NIST SP 800-226 asks of a claim, the budget, the
named queries with their errors, and the lineage down to the sealed ledger entry.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

from include.publishing.facts import FileFacts, LineageFacts, slug, variant
from include.publishing.registry import deployment
from include.publishing.tables import pandas_arguments, table_schema
from include.quality.facts import DatasetFacts, PrivacyFacts, to_plain
from include.quality.report import ReportInput

PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
DP_FORMAT = "cusyn-dp/1"
# Stated in full: readers that guess a dialect from a sample guess wrong on unusual values.
DIALECT = {
    "delimiter": ",",
    "lineTerminator": "\n",
    "quoteChar": '"',
    "doubleQuote": True,
    "skipInitialSpace": False,
    "header": True,
}


def data_package(
    report: ReportInput, lineage: LineageFacts, files: dict[str, FileFacts], key_id: str | None
) -> dict[str, Any]:
    """Describe a package.

    Args:
        report: the facts of the release.
        lineage: how it came about.
        files: the files already written, by name.
        key_id: the key that signs the checksums; None for an unsigned package.

    Returns:
        The content of datapackage.json.

    Privacy: post-processing.
    """
    release, dataset = report.release, report.dataset
    body: dict[str, Any] = {
        "$schema": PROFILE,
        "name": slug(f"{release.release}-{release.period}"),
        "title": release.title or f"{release.release}, {release.period}",
        "description": release.description or dataset.description or _description(report),
        "version": release.period,
        "created": release.created,
        "keywords": ["synthetic data", "differential privacy"],
    }
    if dataset.publisher:
        body["contributors"] = [_contributor(dataset)]
    if dataset.licence or dataset.licence_url:
        body["licenses"] = [_licence(dataset)]
    if dataset.citation:
        body["sources"] = [{"title": dataset.citation}]
    body["resources"] = _resources(report, files)
    body["dp"] = dp_block(report, lineage, key_id)
    return body


def _description(report: ReportInput) -> str:
    return (
        f"Synthetic table drawn under differential privacy from "
        f"{report.dataset.title or report.dataset.name}; no row is a real row."
    )


def _contributor(dataset: DatasetFacts) -> dict[str, Any]:
    contributor: dict[str, Any] = {"title": dataset.publisher, "roles": ["publisher"]}
    address = dataset.contact.removeprefix("mailto:")
    if "@" in address and " " not in address:
        contributor["email"] = address
    elif dataset.contact.startswith("http"):
        contributor["path"] = dataset.contact
    return contributor


def _licence(dataset: DatasetFacts) -> dict[str, str]:
    """Identifiers stand as names, sentences as titles; the profile wants a name or a path."""
    licence = {"path": dataset.licence_url} if dataset.licence_url else {}
    if re.fullmatch(r"[-a-zA-Z0-9._]+", dataset.licence):
        return {"name": dataset.licence, **licence}
    if dataset.licence:
        licence["title"] = dataset.licence
    return licence if dataset.licence_url else {"name": "other", **licence}


def _resources(report: ReportInput, files: dict[str, FileFacts]) -> list[dict[str, Any]]:
    schema = table_schema(report.columns)
    title = "The synthetic table"
    return [
        {
            **_file("data", files["data.csv"], "csv", "text/csv"),
            "type": "table",
            "title": title,
            "encoding": "utf-8",
            "dialect": DIALECT,
            "schema": schema,
            "pandas": pandas_arguments(report.columns),
        },
        {**_parquet(files["data.parquet"]), "title": f"{title}, Parquet"},
        {
            **_file("report", files["report.html"], "html", "text/html"),
            "title": "Quality and privacy report",
        },
    ]


def _parquet(file: FileFacts) -> dict[str, Any]:
    # The schema is stated once, with the CSV; Parquet carries its own. Under "parquet" frictionless
    # parses the file, calls its size wrong, and stops at an empty date; under the format's other
    # name it compares size and digest, as it should.
    return _file("data-parquet", file, "pq", "application/vnd.apache.parquet")


def _file(name: str, file: FileFacts, form: str, mediatype: str) -> dict[str, Any]:
    return {
        "name": name,
        "path": file.name,
        "format": form,
        "mediatype": mediatype,
        "bytes": file.size,
        "hash": f"sha256:{file.sha256}",
    }


def dp_block(report: ReportInput, lineage: LineageFacts, key_id: str | None) -> dict[str, Any]:
    """Return the privacy claim of a release.

    Args:
        report: the facts of the release.
        lineage: how it came about.
        key_id: the key that signs the checksums, or None.

    Returns:
        The `dp` block; its JSON schema is schemas/dp.schema.json.

    Source: OpenDP deployments registry (field names); NIST SP 800-226 (items of a claim).

    Privacy: post-processing.
    """
    return {
        "format": DP_FORMAT,
        "tier": 3,
        **deployment(report),
        "statement": _statement(report),
        "budget": _budget(report),
        "interest_queries": [_query(q) for q in report.fidelity.interest],
        "lineage": {
            **asdict(lineage),
            "release": report.release.release,
            "period": report.release.period,
            "supersedes": report.release.supersedes,
        },
        # Not a resource: frictionless takes any file of this name for a report of its own.
        "report": {"html": "report.html", "json": "report.json"},
        "signature": None if key_id is None else {"algorithm": "Ed25519", "key_id": key_id},
    }


def _statement(report: ReportInput) -> dict[str, Any]:
    privacy = report.privacy
    return _of_networks(privacy) | {
        "unit_of_privacy": privacy.privacy_unit,
        "neighbouring_relation": privacy.neighbouring,
        "contribution_bound": {
            "max_rows": privacy.max_rows,
            "populations": {
                one.population: {"max_rows": one.max_rows, "id_columns": list(one.id_columns)}
                for one in privacy.bounds
            },
        },
        "variant": variant(privacy),
        "parameters": {
            "epsilon": privacy.epsilon,
            "delta": privacy.delta,
            "rho": privacy.rho,
            "epsilon_pure": privacy.epsilon_pure,
        },
        "composition": privacy.composition,
        "trust_model": privacy.trust_model,
        "unprotected_quantities": list(privacy.unprotected),
        "mechanism": privacy.mechanism,
        "noise_source": privacy.noise_source,
        "row_count_rule": privacy.row_count_rule,
        "domains": [{"column": c.name, "source": c.domain_source} for c in report.columns],
    }


def _of_networks(privacy: PrivacyFacts) -> dict[str, Any]:
    """What only some releases state."""
    told: dict[str, Any] = {}
    if privacy.attribute_level is not None:
        told["attribute_level"] = privacy.attribute_level
    if privacy.private_bins is not None:
        told["private_bins"] = to_plain(privacy.private_bins)
    return told


def _budget(report: ReportInput) -> dict[str, Any]:
    budget = report.budget
    return {
        "requested_epsilon": budget.requested_epsilon,
        "accept_at_least_epsilon": budget.accept_at_least_epsilon,
        "granted_epsilon": budget.granted_epsilon,
        "binding_constraint": budget.binding,
        "reason": budget.reason,
        "pools": [
            {
                "kind": pool.kind,
                "name": pool.name,
                "accounting": pool.accounting,
                "total_epsilon": pool.total_epsilon,
                "spent_before_epsilon": pool.spent_before_epsilon,
                "spent_after_epsilon": pool.spent_after_epsilon,
                "remaining_epsilon": pool.remaining_epsilon,
            }
            for pool in budget.pools
        ],
        "shares": [{"purpose": s.purpose, "amount": s.amount} for s in budget.shares],
    }


def _query(query: Any) -> dict[str, Any]:
    return {
        "columns": list(query.clique),
        "cells": query.cells,
        "noise_scale": query.sigma,
        "typical_error_tv": query.typical_tv,
        "bound95_error_tv": query.bound95_tv,
        "predicted_error_tv": query.predicted_tv,
        "table_to_measurement_tv": query.distance_tv,
    }
