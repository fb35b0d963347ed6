"""The report: one HTML file that reads offline, and its JSON twin.

Every number carries one of four marks, in both forms:
`paid` (measured from the data with noise; its cost is in the budget line), `private` (computed from
paid numbers only), `public` (declared or decided without the data) and `internal` (would need the
raw data; a published report holds none). Text from the declaration may be in any script and is
never trusted as HTML.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from include.quality.facts import (
    BudgetFacts,
    CheckOutcome,
    ColumnFacts,
    DatasetFacts,
    PrivacyFacts,
    ReleaseFacts,
    from_plain,
    to_plain,
)
from include.quality.fidelity import Fidelity, Verdict
from include.quality.reading import at, down, moment, sentence, share, up, visible

TEMPLATES = Path(__file__).parent / "templates"
JSON_FORMAT = "cusyn-report/1"

# JSON pointers of the report's numbers (`*` is any key or index) and the mark of each.
MARKS: dict[str, str] = {
    "/budget/pools/*/cap_pico": "public",
    "/budget/pools/*/spent_before_pico": "public",
    "/budget/pools/*/release_pico": "public",
    "/budget/pools/*/held_pico": "public",
    "/budget/pools/*/history/*/spent_pico": "public",
    "/budget/shares/*/amount_pico": "public",
    "/privacy/max_rows": "public",
    "/fidelity/rows": "private",
    "/fidelity/noisy_total": "private",
    "/fidelity/*/*/cells": "public",
    "/fidelity/*/*/sigma": "public",
    "/fidelity/*/*/distance_tv": "private",
    "/fidelity/*/*/typical_tv": "private",
    "/fidelity/*/*/bound95_tv": "private",
    "/fidelity/*/*/predicted_tv": "public",
    "/fidelity/*/*/bars/*/synthetic": "private",
    "/fidelity/*/*/bars/*/measured": "paid",
    "/fidelity/*/*/bars/*/low": "paid",
    "/fidelity/*/*/bars/*/high": "paid",
}


@dataclass(frozen=True)
class ReportInput:
    """Everything a report says.

    Privacy: post-processing.
    """

    release: ReleaseFacts
    dataset: DatasetFacts
    privacy: PrivacyFacts
    budget: BudgetFacts
    columns: tuple[ColumnFacts, ...]
    fidelity: Fidelity
    checks: tuple[CheckOutcome, ...]
    verdict: Verdict


def write_report(folder: Path, report: ReportInput) -> tuple[Path, Path]:
    """Write report.html and report.json.

    Args:
        folder: an existing directory.
        report: the facts.

    Returns:
        The two paths; their bytes depend on the facts alone.

    Privacy: post-processing.
    """
    html, twin = folder / "report.html", folder / "report.json"
    html.write_text(render_html(report), encoding="utf-8", newline="\n")
    twin.write_text(render_json(report), encoding="utf-8", newline="\n")
    return html, twin


def render_json(report: ReportInput) -> str:
    """Return the JSON twin: the same facts with the mark of every number.

    Privacy: post-processing.
    """
    body = {"format": JSON_FORMAT, "marks": MARKS, **to_plain(report)}
    return json.dumps(body, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def read_report(path: Path) -> ReportInput:
    """Rebuild a report's facts from its JSON twin; see `parse_report`.

    Privacy: post-processing.
    """
    return parse_report(path.read_bytes())


def parse_report(data: bytes) -> ReportInput:
    """Rebuild a report's facts from the bytes of its JSON twin.

    Args:
        data: what a report.json holds.

    Returns:
        The facts; writing them again gives the same bytes.

    Privacy: post-processing.
    """
    body = json.loads(data.decode("utf-8"))
    facts = {key: value for key, value in body.items() if key not in ("format", "marks")}
    return from_plain(ReportInput, facts)


def render_html(report: ReportInput) -> str:
    """Return the report as one self-contained page.

    Privacy: post-processing.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(share=share, visible=visible, at=at, up=up, down=down)
    environment.filters.update(sentence=sentence, moment=moment)
    script = (TEMPLATES / "sort.js.j2").read_text(encoding="utf-8").strip()
    people = [pool for pool in report.budget.pools if pool.kind == "dataset"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("report.html.j2").render(
        r=report,
        script=script,
        script_hash=f"sha256-{digest}",
        style=(TEMPLATES / "report.css").read_text(encoding="utf-8"),
        scale=_scale(report.fidelity),
        pairs=_pair_map(report),
        pools=[_pool_view(pool) for pool in report.budget.pools],
        people=people,
        tightest=min(people, key=lambda pool: Decimal(pool.remaining_epsilon), default=None),
        shares=_share_view(report.budget),
        top=_largest,
        title=report.release.title or f"{report.release.release} {report.release.period}",
    )


def _scale(fidelity: Fidelity) -> float:
    """A round upper end for the axis of the interest plot."""
    largest = max(
        (max(q.bound95_tv or 0, q.predicted_tv or 0) for q in fidelity.interest),
        default=0.01,
    )
    power = 10 ** math.floor(math.log10(max(largest, 1e-6)))
    for step in (1, 2, 3, 4, 5, 6, 8, 10):
        if largest <= step * power:
            return float(min(1.0, step * power))
    return 1.0


def _largest(bars: tuple[Any, ...], limit: int) -> dict[str, Any]:
    """The largest bars of a plot and the end of its axis."""
    shown = bars if len(bars) <= limit else sorted(bars, key=lambda b: -b.synthetic)[:limit]
    end = max((max(b.synthetic, b.high or 0, b.measured or 0) for b in shown), default=1.0)
    return {"bars": shown, "end": end or 1.0, "left_out": len(bars) - len(shown)}


def _pair_map(report: ReportInput) -> dict[str, Any]:
    """Distances of the measured pairs, as a lower triangle over the columns."""
    names = [column.name for column in report.columns if column.type != "key"]
    found: dict[frozenset[str], tuple[float, str]] = {}
    for marginal in report.fidelity.measured:
        if len(marginal.clique) == 2 and marginal.distance_tv is not None:
            key = frozenset(marginal.clique)
            value = (marginal.distance_tv, marginal.purpose)
            found[key] = min(found.get(key, value), value)
    top = max((distance for distance, _ in found.values()), default=0.0)
    rows = [
        (row, [found.get(frozenset((row, column))) for column in names[:i]])
        for i, row in enumerate(names)
    ]
    return {"names": names, "rows": rows, "top": top, "count": len(found)}


def _pool_view(pool: Any) -> dict[str, Any]:
    """Widths of a pool's budget line and the points of its burn-down, as percentages of the cap."""

    def of_cap(amount: int) -> float:
        return 100 * amount / pool.cap_pico if pool.cap_pico else 0.0

    before, now, held = (
        of_cap(a) for a in (pool.spent_before_pico, pool.release_pico, pool.held_pico)
    )
    # What is left after each release, from the top; SVG's y axis points down, as spending does.
    spent = [0.0, *(of_cap(point.spent_pico) for point in pool.history)]
    step = 100 / max(1, len(spent) - 1)
    path = [f"0,{spent[0]:.2f}"]
    for i, value in enumerate(spent[1:], start=1):
        path += [f"{i * step:.2f},{spent[i - 1]:.2f}", f"{i * step:.2f},{value:.2f}"]
    return {
        "facts": pool,
        "before": before,
        "now": now,
        "held": held,
        "left": max(0.0, 100 - before - now - held),
        "path": " ".join(path) if pool.history else "",
        "end": f"100,{spent[-1]:.2f}",
    }


def _share_view(budget: BudgetFacts) -> list[dict[str, Any]]:
    total = sum(part.amount_pico for part in budget.shares)
    start, parts = 0.0, []
    for part in budget.shares:
        width = 100 * part.amount_pico / total if total else 0.0
        parts.append({"facts": part, "start": start, "width": width})
        start += width
    return parts


def marked(pointer: str) -> str | None:
    """Return the mark of a number in the JSON twin.

    Args:
        pointer: a JSON pointer such as "/fidelity/interest/0/sigma".

    Returns:
        paid, private or public; None when the number has no mark (a fault).

    Privacy: post-processing.
    """
    for pattern, mark in MARKS.items():
        if re.fullmatch(pattern.replace("*", "[^/]+"), pointer):
            return mark
    return None
