"""LEN and BGT: tables of interest and workload error, with queries and without."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.evidence.figures import (
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
    with_results,
)
from benchmarks.paper.single import EPSILONS, LENGTHS, MECHANISMS, MIDDLE, TABLES

LABEL = {"aim": "AIM", "mwem_pgm": "MWEM-PGM"}
FILE = "paper.csv"


def titled(name: str) -> str:
    """Return a table's name as a sentence writes it."""
    return name.upper() if name == "nltcs" else name.capitalize()


def rows_of(name: str, mechanism: str, epsilon: str, length: int) -> list[Row]:
    """Return the finished seeds of one release."""
    return chosen(results(FILE), table=name, mechanism=mechanism, epsilon=epsilon, length=length)


def interest(
    name: str, mechanism: str, epsilon: str, length: int, *, of: str = "model"
) -> list[Series]:
    """Return the error on `length` queries of the plain release and of the one that knew them."""
    field = f"interest{length}_{of}"
    several = [rows_of(name, mechanism, epsilon, known) for known in (0, length)]
    return common(*(series(rows, field) for rows in several))


def workload(
    name: str, mechanism: str, epsilon: str, length: int, *, of: str = "model"
) -> list[Series]:
    """Return the error on all pairs of the plain release and of the one with queries."""
    several = [rows_of(name, mechanism, epsilon, known) for known in (0, length)]
    return common(*(series(rows, f"workload_{of}") for rows in several))


HEAD = (
    "table",
    "mechanism",
    "varied",
    "interest, plain",
    "interest, with queries",
    "change",
    "all pairs, plain",
    "all pairs, with queries",
    "change",
    "rows: interest, plain / with",
    "rows: all pairs, plain / with",
    "seeds",
)


def _line(name: str, mechanism: str, epsilon: str, length: int, varied: str) -> list[str]:
    cell = (name, mechanism, epsilon, length)
    plain, custom = interest(*cell)
    both = workload(*cell)
    refused = refusals(*cell)
    named = "refused" if refused and not custom else said(mean(custom))
    return [
        name,
        LABEL[mechanism],
        varied,
        said(mean(plain)),
        named,
        said_change(change(custom, plain)),
        *(said(mean(one)) for one in both),
        said_change(change(both[1], both[0])),
        *(
            " / ".join(said(mean(one)) for one in of(*cell, of="rows"))
            for of in (interest, workload)
        ),
        str(len(plain)),
    ]


def refusals(name: str, mechanism: str, epsilon: str, length: int) -> list[Row]:
    """Return the seeds whose queries the planner refused, before anything would be spent."""
    return [row for row in rows_of(name, mechanism, epsilon, length) if row["note"]]


def _refused(epsilons: tuple[str, ...]) -> str:
    """Name the refusals with one of their reasons."""
    lines = []
    for cell in configurations(epsilons):
        found = refusals(*cell)
        if found:
            seeds = ", ".join(row["seed"] for row in found)
            where = f"{cell[0]}, {LABEL[cell[1]]}, epsilon {cell[2]}, L = {cell[3]}"
            lines.append(f"- {where}, seed {seeds}: {found[-1]['note']}")
    if not lines:
        return ""
    told = "\n".join(lines)
    return f"Refused by the planner, before anything would be spent:\n\n{told}\n\n"


def configurations(epsilons: tuple[str, ...]) -> Iterator[tuple[str, str, str, int]]:
    """List table, mechanism, epsilon and length of LEN (epsilon 1) or BGT (ten queries)."""
    lengths = LENGTHS if epsilons == ("1",) else (MIDDLE,)
    for name in TABLES:
        for mechanism in MECHANISMS:
            for epsilon in sorted(epsilons, key=float):
                for length in lengths:
                    yield name, mechanism, epsilon, length


def len_section() -> str:
    """Write LEN."""
    rows = [_line(*cell, f"L = {cell[3]}") for cell in configurations(("1",))]
    return f"""## LEN: how many interest queries

Epsilon 1, one release, `L` = 5, 10, 15 pairs drawn at random; the plain release is the same
mechanism without queries, judged on the same pairs.

![Error on the interest queries by their number](evidence/len.png)

{with_results(HEAD, rows, 3)}

{_refused(("1",))}{_from("len")}"""


def bgt_section() -> str:
    """Write BGT."""
    rows = [_line(*cell, f"epsilon {cell[2]}") for cell in configurations(EPSILONS)]
    return f"""## BGT: how much budget

`L` = 10, one release. Epsilon 1 is LEN with ten queries.

![Error on the interest queries and on all pairs by epsilon](evidence/bgt.png)

{with_results(HEAD, rows, 3)}

{_refused(tuple(one for one in EPSILONS if one != "1"))}{_from("bgt")}"""


def _from(part: str) -> str:
    return provenance(f"make bench-paper ARGS='--only {part}'", FILE, results(FILE))
