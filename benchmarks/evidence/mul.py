"""MUL: what BudgetEval answered, what the released tables are worth, what is left."""

from __future__ import annotations

from collections import Counter

from benchmarks.evidence.figures import (
    NOT_RUN,
    Row,
    Series,
    change,
    chosen,
    common,
    mean,
    provenance,
    results,
    said,
    said_change,
    series,
    table,
    with_results,
)
from benchmarks.evidence.len_bgt import LABEL
from benchmarks.paper.multi import ROUNDS
from benchmarks.paper.single import MECHANISMS, TABLES
from benchmarks.paper.world import USERS

FILE = "paper_mul.csv"
BY_ROUNDS = tuple(sorted(ROUNDS))
ORDER = 10


def of(name: str, mechanism: str, rounds: int, pool: str, reuse: str) -> list[Row]:
    """Return the rows of one kind of sequence, all seeds."""
    return chosen(
        results(FILE), table=name, mechanism=mechanism, rounds=rounds, pool=pool, reuse=reuse
    )


def error(
    name: str, mechanism: str, rounds: int, reuse: str, field: str, turn: int | None = None
) -> Series:
    """Return an error by seed: over all releases of a sequence, or at one turn."""
    rows = of(name, mechanism, rounds, "none" if reuse == "plain" else "epsilon", reuse)
    return series(rows if turn is None else chosen(rows, turn=turn), field)


def decisions(pool: str, rounds: int) -> list[list[Row]]:
    """Return the complete sequences of answers of one pool, one for each table and mechanism."""
    found = [
        chosen(of(name, mechanism, rounds, pool, "off"), seed=0)
        for name in TABLES
        for mechanism in MECHANISMS
    ]
    return [sequence for sequence in found if len(sequence) == rounds * len(USERS)]


def answers(pool: str, rounds: int) -> list[str]:
    """Write the answers of a pool; a count that differs between tables stands as a span."""
    sequences = decisions(pool, rounds)
    counts = [Counter(row["answer"] for row in one) for one in sequences]
    told = [_span([count[answer] for count in counts]) for answer in ANSWERS]
    refused = {row["binding"].split(":")[0] for one in sequences for row in one if _no(row)}
    return [*told, ", ".join(sorted(refused)) or ("-" if sequences else NOT_RUN)]


ANSWERS = ("granted", "negotiated", "refused")


def _no(row: Row) -> bool:
    return row["answer"] != "granted"


def _span(values: list[int]) -> str:
    if not values:
        return NOT_RUN
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def left_when_additive_is_empty(rounds: int) -> list[str]:
    """Say what a zCDP pool holds after as many releases as empty the additive pool."""
    sequences = decisions("zcdp", rounds)
    if not sequences:
        return [NOT_RUN] * 5
    row = chosen(sequences[0], turn=rounds)[0]
    share = float(row["left"]) / (float(row["left"]) + _spent(sequences[0], rounds))
    more = [sum(not _no(one) for one in seq if int(one["turn"]) > rounds) for seq in sequences]
    return [
        f"{float(row['left']):.4f}",
        f"{share:.0%}",
        f"{float(row['largest']):.2f}",
        _span(more),
        f"{float(sequences[0][-1]['left']):.4f}",
    ]


def _spent(sequence: list[Row], turns: int) -> float:
    """Return the rho of the first releases: the pool falls by the same amount each time."""
    first, second = (float(chosen(sequence, turn=turn)[0]["left"]) for turn in (1, 2))
    return turns * (first - second)


def answers_table() -> str:
    """Write the answers of both pools."""
    head = ("rounds", "epsilon of a request", "requests", "pool", *ANSWERS, "bound by")
    lines = [
        [rounds, f"{10 / rounds:.3g}", rounds * len(USERS), f"`{pool}`", *answers(pool, rounds)]
        for rounds in BY_ROUNDS
        for pool in ("epsilon", "zcdp")
    ]
    return table(head, lines)


def left_table() -> str:
    """Write what the zCDP pool still has where the additive one is empty."""
    head = (
        "rounds",
        "releases that empty the additive pool",
        "rho left in the zCDP pool",
        "of its cap",
        "largest single release left (epsilon)",
        "further requests it granted in full",
        "rho left after all requests",
    )
    return table(head, [[r, r, *left_when_additive_is_empty(r)] for r in BY_ROUNDS])


def errors_table() -> str:
    """Write the errors of the released rows: plain, independent, with reuse."""
    head = (
        "table",
        "mechanism",
        "rounds",
        "interest: plain",
        "independent",
        "reuse",
        "all pairs: plain",
        "independent",
        "reuse",
        "independent against plain, interest",
        "reuse against independent, all pairs",
        "seeds",
    )
    lines = [_errors(n, m, r) for n in TABLES for m in MECHANISMS for r in BY_ROUNDS]
    return with_results(head, lines, 3)


def _errors(name: str, mechanism: str, rounds: int) -> list[object]:
    kinds = [(field, reuse) for field in ("interest", "workload") for reuse in REUSE]
    several = common(*(error(name, mechanism, rounds, r, f"{f}_rows") for f, r in kinds))
    found = dict(zip(kinds, several, strict=True))
    return [
        name,
        LABEL[mechanism],
        rounds,
        *(said(mean(one)) for one in several),
        said_change(change(found["interest", "off"], found["interest", "plain"])),
        said_change(change(found["workload", "dataset"], found["workload", "off"])),
        len(several[0]),
    ]


REUSE = ("plain", "off", "dataset")


def order_table() -> str:
    """Write the error of each granted release in order, at ten rounds."""
    head = ("table", "mechanism", "error", "variant", *(f"{turn}" for turn in range(1, ORDER + 1)))
    lines = []
    for name in TABLES:
        for mechanism in MECHANISMS:
            for field, label in (("interest", "interest"), ("workload", "all pairs")):
                for reuse, variant in (("off", "independent"), ("dataset", "reuse")):
                    found = [
                        mean(error(name, mechanism, ORDER, reuse, f"{field}_rows", turn))
                        for turn in range(1, ORDER + 1)
                    ]
                    if any(found):
                        cells = [f"{one.mean:.4f}" if one else NOT_RUN for one in found]
                        lines.append([name, LABEL[mechanism], label, variant, *cells])
    absent = [
        f"{name} by {LABEL[mechanism]}"
        for name in TABLES
        for mechanism in MECHANISMS
        if not error(name, mechanism, ORDER, "off", "workload_rows")
    ]
    told = f"\n\nNot run: {', '.join(absent)}." if absent else ""
    return (table(head, lines) if lines else "") + told


def mul_section() -> str:
    """Write MUL."""
    return f"""## MUL: four users, many releases, one pool

Four users, each with a pool of epsilon 10 and five queries of their own, ask in turn over 5, 10 and
15 rounds; each request is of 10 / rounds, `accept_at_least` is half of it, and the dataset's pool
holds epsilon 10 for all of them together. The requests go through the stages of the product to a
ledger on SQLite. An additive pool (`epsilon`) of 10 is empty after as many releases as there are
rounds; these were all made. Of the zCDP pool only the decisions were taken: a release does not
depend on its pool's currency, and no decision depends on the rows. The answers over all tables and
mechanisms that were run (a span where they differ):

{answers_table()}

What the zCDP pool still has where the additive one is empty:

{left_table()}

Error of the released rows (a reader gets rows, not the model), mean over the releases of a
sequence; *plain* is a release of the same epsilon without queries, *reuse* lets a release draw on
the earlier ones (`reuse: dataset`). The standard error is over seeds.

{errors_table()}

![Error on all pairs of each release in order](evidence/mul.png)

Each granted release in order, ten rounds, mean over seeds:

{order_table()}

{provenance("make bench-paper ARGS='--only mul'", FILE, results(FILE))}"""
