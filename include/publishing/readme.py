"""README.md of a package, in plain words."""

from __future__ import annotations

import re

from include.publishing.facts import LineageFacts
from include.quality.facts import PrivateBins
from include.quality.reading import sentence, share, up, visible
from include.quality.report import ReportInput


def readme(report: ReportInput, lineage: LineageFacts, key_id: str | None) -> str:
    """Write the README of a package.

    Args:
        report: the facts of the release.
        lineage: how it came about.
        key_id: the key that signs the checksums, or None.

    Returns:
        Markdown.

    Privacy: post-processing.
    """
    sections = [
        _opening(report),
        _protected(report),
        _columns(report),
        _limits(report),
        _changes(report),
        LOADING,
        _checking(lineage, key_id),
        _terms(report),
    ]
    return "\n\n".join(section.strip() for section in sections if section) + "\n"


def text(value: str) -> str:
    """Make a declared text safe inside Markdown and HTML made from it.

    Privacy: post-processing.
    """
    shown = re.sub(r"([\\`*\[\]<>#|&~])", r"\\\1", visible(value))
    # Between letters an underscore means nothing to Markdown, and names are full of them.
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", shown)


def _opening(report: ReportInput) -> str:
    release, dataset = report.release, report.dataset
    title = release.title or release.release
    about = release.description or dataset.description
    return f"""# {text(title)}, {text(release.period)}

A synthetic table made from {text(dataset.title or dataset.name)}. No row is a real row: the rows
were drawn from a statistical model that was fitted to noisy counts of the data only.
{text(about) if about else ""}"""


def _protected(report: ReportInput) -> str:
    privacy = report.privacy
    pools = [pool for pool in report.budget.pools if pool.kind == "dataset"]
    totals = "\n".join(
        f"- All releases about {text(pool.name)} together: ε = {up(pool.spent_after_epsilon)} "
        f"spent of a fixed total of ε = {pool.total_epsilon}."
        for pool in pools
    )
    rho = f", ρ = {up(privacy.rho)}" if privacy.rho else ""
    exact = sentence("; ".join(privacy.unprotected)) if privacy.unprotected else ""
    private = privacy.private_bins
    bins = "" if private is None else f"\n\n{_private_bins(private)}"
    return f"""## What is protected

Every {text(privacy.privacy_unit)}: whatever can be learnt from this package would have been almost
as likely without any one of them. How nearly is the number ε; smaller is more private.

- This release: ε = {privacy.epsilon} at δ = {privacy.delta}{rho}.
{totals}
- {text(privacy.neighbouring)}

## What is exact

{text(exact) if exact else "Nothing is computed from the data without noise."} The names of the
columns and their permitted values were declared in advance. The number of rows of the table is
no count of people: {text(privacy.row_count_rule)}.{bins}"""


def _private_bins(private: PrivateBins) -> str:
    columns = "\n".join(
        f"- {text(one.column)}: {', '.join(map(text, one.bins))}." for one in private.columns
    )
    pure = "" if private.epsilon_pure is None else f", ε = {up(private.epsilon_pure)}"
    return f"""These bins were selected privately, for ρ = {up(private.rho)}{pure} of this release:

{columns}

{text(private.meaning)}"""


def _columns(report: ReportInput) -> str:
    rows = "\n".join(
        f"| {text(c.name)} | {c.type} | {'yes' if c.nullable else 'no'} | {text(_range(c))} |"
        for c in report.columns
    )
    return f"""## Columns

| column | type | may be empty | values |
|---|---|---|---|
{rows}"""


def _range(column: object) -> str:
    values = getattr(column, "values", None)
    if values:
        shown = ", ".join(values[:8])
        return shown + (f", and {len(values) - 8} more" if len(values) > 8 else "")
    if getattr(column, "type", None) == "boolean":
        return "true or false"
    low, high = getattr(column, "minimum", None), getattr(column, "maximum", None)
    if low is None and high is None:
        return "as declared"
    return f"{low if low is not None else '..'} to {high if high is not None else '..'}"


def _limits(report: ReportInput) -> str:
    queries = "\n".join(
        f"- {' x '.join(text(name) for name in q.clique)}: about {share(q.typical_tv)} of the "
        f"measured table sits in a wrong cell, at most {share(q.bound95_tv)} in 95 of 100 releases."
        + (" Noise swamps this query: do not use it." if q.warning else "")
        if q.typical_tv is not None
        else f"- {' x '.join(text(name) for name in q.clique)}: not measured in this release."
        for q in report.fidelity.interest
    )
    named = f"The queries named for this release:\n\n{queries}\n" if queries else ""
    return f"""## Known limits

{named}
Relations between columns that were not measured may be missing or weak; no error is claimed for
them. Rare combinations are the least reliable. report.html shows the errors; do not draw
conclusions about a single row."""


def _changes(report: ReportInput) -> str:
    if report.release.supersedes:
        first = f"This release replaces {text(report.release.supersedes)}. "
    else:
        first = ""
    changes = text(report.release.changes) if report.release.changes else ""
    words = (first + changes).strip() or "Nothing was declared as changed."
    return f"## What changed since the last release\n\n{words}"


LOADING = """## Load it

With its types, from Parquet:

```python
import pandas as pd
table = pd.read_parquet("data.parquet")
print(table.dtypes)
```

or from CSV:

```python
import json, pandas as pd
how = json.load(open("datapackage.json", encoding="utf-8"))["resources"][0]["pandas"]
table = pd.read_csv("data.csv", **how)
```"""


def _checking(lineage: LineageFacts, key_id: str | None) -> str:
    signed = (
        f"""SHA256SUMS is signed (Ed25519, key {key_id}). Compare the key id with the one
the publisher gave you by another way; the enclosed key alone proves nothing.

    openssl pkeyutl -verify -rawin -pubin -inkey SHA256SUMS.key.pem \\
        -sigfile SHA256SUMS.sig -in SHA256SUMS"""
        if key_id
        else "This package is not signed."
    )
    return f"""## Check it

    sha256sum -c SHA256SUMS

{signed}

The release stands in the publisher's ledger as entry {lineage.entry_seq}, with hash
`{lineage.entry_hash}`: keep this package, you are a witness to that entry."""


def _terms(report: ReportInput) -> str:
    dataset = report.dataset
    lines = [
        f"- {label}: {text(value)}"
        for label, value in (
            ("Licence", " ".join(x for x in (dataset.licence, dataset.licence_url) if x)),
            ("Cite", dataset.citation),
            ("Publisher", dataset.publisher),
            ("Contact", dataset.contact),
        )
        if value
    ]
    return "## Terms\n\n" + ("\n".join(lines) or "The publisher stated no licence.")
