"""The downstream check, the table for speed, CSAPrivBayes, and engine, ledger, scale in brief."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.evidence.figures import (
    NOT_RUN,
    Row,
    chosen,
    column,
    provenance,
    results,
    said,
    stored,
    table,
    with_results,
)
from benchmarks.paper import downstream, speed

SPEED_FIELDS = ("rows", "columns", "cpu_s", "peak_mb")
TRAINED = {
    "real": "the real rows",
    "independent": "independent columns",
    "aim": "AIM",
    "aim_interest": "AIM, queries: income with each column",
    "mwem_pgm": "MWEM-PGM",
    "mwem_pgm_interest": "MWEM-PGM, queries: income with each column",
    "privbayes": "PrivBayes",
    "csa_privbayes": "CSAPrivBayes",
}


def downstream_section() -> str:
    """Write the downstream check."""
    rows = results("paper_downstream.csv")
    head = (
        "trained on",
        "epsilon",
        "logistic regression: accuracy",
        "AUC",
        "gradient boosting: accuracy",
        "AUC",
        "seeds",
    )
    lines = []
    for epsilon in downstream.EPSILONS:
        for name, label in TRAINED.items():
            if name == "real" and epsilon != downstream.EPSILONS[0]:
                continue
            found = chosen(rows, trained_on=name, epsilon=epsilon)
            cells = [
                said(column(found, f"{what}_{model}"), digits=2 if what == "accuracy" else 3,
                     percent=what == "accuracy")
                for model in downstream.MODELS
                for what in ("accuracy", "auc")
            ]  # fmt: skip
            lines.append([label, "-" if name == "real" else epsilon, *cells, len(found)])
    majority = said(column(rows, "majority"), digits=2, percent=True)
    return f"""## Downstream: train on synthetic, test on real

Adult, all 15 columns, income above 50K as the label; four fifths of the rows are released at
delta 1e-9 (PrivBayes and CSAPrivBayes: a pure guarantee), the classifier is tested on the real rows
of the remaining fifth (seed s tests on fold s mod 5). The majority class alone gives {majority}.

![Accuracy of classifiers trained on synthetic rows](evidence/downstream.png)

{with_results(head, lines, 2)}

{provenance("make bench-paper ARGS='--only downstream'", "paper_downstream.csv", rows)}"""


def speed_section() -> str:
    """Write the table for speed."""
    rows = results("paper_speed.csv")
    head = ("mechanism", "interest queries", "rows", "columns", "CPU s", "peak MB")
    lines = []
    for mechanism, length in speed.RUNS:
        found = chosen(rows, mechanism=mechanism, length=length)
        cells = [found[-1][name] for name in SPEED_FIELDS] if found else [NOT_RUN] * 4
        lines.append([mechanism, length, *cells])
    return f"""## Colorado's size, for speed only

The paper's fourth table, colorado, is not available here. A generated table of its size (14
attributes, {speed.ROWS:,} rows, about as many cells) stands in for speed. It says nothing about
colorado's errors, and none are given. Epsilon 1; the peak is of the process, rows included.

{with_results(head, lines, 2)}

{provenance("make bench-paper ARGS='--only speed'", "paper_speed.csv", rows)}"""


def csa_section() -> str:
    """Write the CSAPrivBayes figures."""
    rows = chosen(results("csa.csv"), figure="epsilon")
    epsilons = sorted({row["epsilon"] for row in rows}, key=float)
    lines = []
    for variant in dict.fromkeys(row["variant"] for row in rows):
        cells = []
        for epsilon in epsilons:
            found = chosen(rows, variant=variant, epsilon=epsilon)
            cells.append(
                f"{float(found[0]['misclassification']):.2%} ± "
                f"{float(found[0]['standard_error']):.2%}"
                if found
                else NOT_RUN
            )
        lines.append([variant, *cells])
    head = ("variant", *(f"epsilon {epsilon}" for epsilon in epsilons))
    seeds = ", ".join(sorted({row["seeds"] for row in rows}))
    return f"""## CSAPrivBayes

Misclassification on Adult (24,000 rows, ten columns, linear SVM), {seeds or "no"} seeds, mean and
standard error; [mechanisms.md](mechanisms.md#the-paper-on-csaprivbayes) says what was changed so
that the guarantee holds.

![Misclassification by epsilon](../benchmarks/results/csa_epsilon.png)

![Misclassification by rows](../benchmarks/results/csa_rows.png)

{table(head, lines)}

{recorded("csa.csv")}"""


PARTS = ("fit", "scoring", "filter", "selection", "noise", "counting")


def engine_section() -> str:
    """Write the engine's timings."""
    path = stored("engine.json")
    if not path.exists():
        return f"## Engine\n\n{NOT_RUN}: `make bench-engine`."
    told = json.loads(path.read_text(encoding="utf-8"))
    head = (
        "table",
        "rounds",
        "AIM's rounds, CPU s cold / warm",
        "of which fit / scoring / filter / selection / noise / counting, warm",
        "peak MB",
        "one round: numpy, CPU s",
        "private-pgm, CPU s first / second",
        "private-pgm to numpy, first",
    )
    lines = []
    for one in told["results"]:
        numpy, other = (one["one_round_from_scratch"][name] for name in ("numpy", "private_pgm"))
        lines.append(
            [
                one["table"],
                one["rounds"],
                f"{one['cold_cpu_s']['all']} / {one['warm_cpu_s']['all']}",
                " / ".join(str(one["warm_cpu_s"][part]) for part in PARTS),
                one["peak_mb"],
                numpy["first_cpu_s"],
                f"{other['first_cpu_s']} / {other['second_cpu_s']}",
                f"{one['one_round_from_scratch']['private_pgm_over_numpy']}x",
            ]
        )
    return f"""## Engine

The junction-tree engine against private-pgm, which compiles for every new set of cliques.

{table(head, lines)}

{provenance("make bench-engine", "engine.json", [engine_stamp(told)])}"""


def engine_stamp(told: dict[str, Any]) -> Row:
    """Return date and versions as the engine's file tells them, and the recorded machine."""
    packages = "; ".join(f"{name} {number}" for name, number in told["packages"].items())
    known = chosen(results("recorded.csv"), file="engine.json")
    return {
        "date": told["date"],
        "machine": known[0]["machine"] if known else f"{told['cpus']} cores",
        "versions": f"python {told['python']}; {packages}",
    }


def ledger_section() -> str:
    """Write the ledger's speed."""
    rows = chosen(results("ledger.csv"), step="charge")
    head = (
        "database",
        "entries before",
        "writers",
        "charge p50 / p99 ms",
        "to a bare INSERT",
        "a second",
    )
    lines = [
        [
            row["database"],
            f"{int(row['entries']):,}",
            row["writers"],
            f"{row['p50_ms']} / {row['p99_ms']}",
            f"{float(row['mean_ratio']):.1f}x",
            f"{float(row['per_second']):.0f}",
        ]
        for row in rows
    ]
    return f"""## Ledger

A complete charge (reserve, open, seal, publish) against one INSERT and COMMIT on the same server in
the same run, every charge on one pool. Goals: 8x on PostgreSQL, 10x on SQLite; which are missed,
and why: [ledger.md](ledger.md#speed).

{table(head, lines) if lines else NOT_RUN}

{recorded("ledger.csv")}"""


def scale_section() -> str:
    """Write the release of five million rows."""
    rows = results("scale.csv")
    head = ("rows", "stage", "CPU s", "peak MB so far")
    lines = [[f"{int(r['rows']):,}", r["stage"], r["cpu_s"], r["peak_mb"]] for r in rows]
    total = sum(float(row["cpu_s"]) for row in rows)
    lines.append(
        ["", "all", f"{total:.1f}", max((r["peak_mb"] for r in rows), key=float, default="-")]
    )
    return f"""## Scale

A CSV of five million rows, several a person, released end to end in one process; the target is
2,048 MB.

{table(head, lines)}

{recorded("scale.csv")}"""


def recorded(file: str) -> str:
    """Say where the rows of a file without stamps of its own come from."""
    found = chosen(results("recorded.csv"), file=file)
    return provenance(found[0]["command"] if found else "", file, found)
