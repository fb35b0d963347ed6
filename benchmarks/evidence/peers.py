"""Other makers of private tables beside ours, on the same tables, with what is wrong with each."""

from __future__ import annotations

from collections import Counter

from benchmarks.evidence.figures import (
    NOT_RUN,
    Estimate,
    Row,
    chosen,
    column,
    provenance,
    results,
    said,
    table,
    with_results,
)
from benchmarks.peers.catalogue import BASELINE, DELTA, EPSILON, OURS, PEERS, TABLES
from benchmarks.peers.faults import faults_of

FILE = "peers.csv"
PROBES = "peers_probes.csv"
MAKERS = [(peer, mechanism) for peer in PEERS for mechanism in peer.mechanisms]
HEAD = (
    "maker",
    "mechanism",
    "version",
    "pairs",
    "to ours",
    "triples",
    "worst pair",
    "CPU s",
    "to ours",
    "peak MB",
    "runs",
    "caps (CPU s / MB)",
    "known faults",
)


def figures(rows: list[Row], name: str, peer: str, mechanism: str, field: str) -> Estimate | None:
    """Average one figure of the finished runs."""
    finished = chosen(rows, table=name, peer=peer, mechanism=mechanism, status="finished")
    return column(finished, field)


def best_other(name: str) -> tuple[str, Estimate] | None:
    """Return the maker of the least mean error on a table, ours and the baselines left out."""
    rows = results(FILE)
    found = [
        (
            f"{peer.name} {mechanism.name}",
            figures(rows, name, peer.name, mechanism.name, "tv2_mean"),
        )
        for peer, mechanism in MAKERS
        if peer.name not in (OURS, BASELINE)
    ]
    known = [(maker, one) for maker, one in found if one is not None]
    return min(known, key=lambda pair: pair[1].mean, default=None)


def _line(rows: list[Row], name: str, peer: str, mechanism: str) -> list[str]:
    runs = chosen(rows, table=name, peer=peer, mechanism=mechanism)
    faults = " ".join(f"[{number}]" for number in _numbers(peer, mechanism)) or "-"
    if not runs:
        return [peer, mechanism, *["-"] * 8, NOT_RUN, "-", "-"]
    error, triples, worst, cpu, peak = (
        figures(rows, name, peer, mechanism, field)
        for field in ("tv2_mean", "tv3_mean", "tv2_worst", "cpu_s", "peak_mb")
    )
    ours = [figures(rows, name, OURS, "aim", field) for field in ("tv2_mean", "cpu_s")]
    counts = Counter(row["status"] for row in runs)
    caps = sorted({f"{row['cap_cpu_s']} / {row['cap_mb']}" for row in runs})
    return [
        peer,
        mechanism,
        runs[-1]["version"],
        said(error) if error else "-",
        _ratio(error, ours[0]),
        f"{triples.mean:.3f}" if triples else "-",
        f"{worst.mean:.3f}" if worst else "-",
        f"{cpu.mean:.1f}" if cpu else "-",
        _ratio(cpu, ours[1]),
        f"{peak.mean:.0f}" if peak else "-",
        ", ".join(f"{count} {status}" for status, count in sorted(counts.items())),
        ", ".join(caps),
        faults,
    ]


def _ratio(of: Estimate | None, against: Estimate | None) -> str:
    if of is None or against is None:
        return "-"
    return f"{of.mean / against.mean:.2f}x"


def _sentences() -> list[str]:
    """Return the faults, each once, in the order of the peers."""
    found = [
        fault.sentence
        for peer, mechanism in MAKERS
        for fault in faults_of(peer.name, mechanism.name)
    ]
    return list(dict.fromkeys(found))


def _numbers(peer: str, mechanism: str) -> list[int]:
    known = _sentences()
    return [known.index(fault.sentence) + 1 for fault in faults_of(peer, mechanism)]


def _notes(rows: list[Row]) -> str:
    """Quote why a run did not finish."""
    told = {
        f"{row['table']}, {row['peer']} {row['mechanism']} ({row['status']}): {row['note']}"
        for row in rows
        if row["status"] != "finished" and row["note"]
    }
    lines = "\n".join(f"- {line}" for line in sorted(told))
    return f"\nRuns that did not finish:\n\n{lines}\n" if lines else ""


def _probes() -> str:
    rows = results(PROBES)
    if not rows:
        return ""
    head = ("maker", "version", "probe", "found", "should be", "date")
    names = ("peer", "version", "probe", "value", "should_be", "date")
    lines = [[row[name] for name in names] for row in rows]
    return (
        "\nThe faults that can be measured, measured (`python -m benchmarks.peers --probes` -> "
        f"`benchmarks/results/{PROBES}`):\n\n{table(head, lines)}\n"
    )


def peers_section() -> str:
    """Write the tables of peers."""
    rows = results(FILE)
    parts = [
        f"### {name}\n\n"
        + with_results(HEAD, [_line(rows, name, p.name, m.name) for p, m in MAKERS], 2)
        for name in TABLES
    ]
    faults = "\n".join(f"{i}. {sentence}" for i, sentence in enumerate(_sentences(), 1))
    return f"""## Peers

Epsilon {EPSILON}, delta {DELTA}, the public domain given to everyone; total variation of drawn
rows against the real ones. Ratios are to our AIM's mean in the same table, above 1 is worse.
`{BASELINE}` rows bound each table: resampled real rows are the floor that sampling alone sets (not
private), independent columns what holds no relation at all. Everybody's defaults, and the
exceptions: [benchmarks/peers](../benchmarks/peers/README.md). CPU seconds include start, imports
and compilation.

![Mean error on pairs by maker](evidence/peers.png)

{chr(10).join(part + chr(10) for part in parts)}
Known faults, by the numbers in the last column:

{faults}
{_notes(rows)}{_probes()}
{provenance("make bench-peers", FILE, rows)}"""
