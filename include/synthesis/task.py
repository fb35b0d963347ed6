"""What is asked of a mechanism, in public terms only: domain, workload, interest, options."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from include.errors import CuSynError

Clique = tuple[str, ...]

MAX_INTEREST_COLUMNS = 4
MAX_CANDIDATES = 20_000
"""More candidate marginals than this make a round slower than the release is worth."""

_ALL_K_WAY = re.compile(r"all ([1-9])-way")


class TaskError(CuSynError, ValueError):
    """A task asks for something the declared schema does not have or the house does not do.

    Privacy: ledger only.
    """


@dataclass(frozen=True)
class SynthesisTask:
    """One synthesis task. Every field is public; build it with `SynthesisTask.build`.

    Args:
        domain: Cells of each column (>= 1), in the order of the synthetic table's columns.
        workload: Marginals the release should keep, with weights above 0.
        interest: The data user's interest queries, each measured by itself.
        max_rows: Rows one privacy unit may own; every sensitivity is multiplied by it.
        options: Options of the mechanism, checked by the mechanism.
        expected_rows: Public guess of the row count, for predictions only.
        workload_text: "all k-way" where the workload was given so.
        ordered: For columns whose cells have an order: how many of their first cells do.

    Privacy: ledger only.
    """

    domain: Mapping[str, int]
    workload: tuple[tuple[Clique, float], ...]
    interest: tuple[Clique, ...] = ()
    max_rows: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    expected_rows: int | None = None
    workload_text: str | None = None
    ordered: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        domain: Mapping[str, int],
        *,
        workload: str | Sequence[Any] = "all 2-way",
        interest: Iterable[Sequence[str]] = (),
        max_rows: int = 1,
        options: Mapping[str, Any] | None = None,
        expected_rows: int | None = None,
        ordered: Mapping[str, int] | None = None,
    ) -> SynthesisTask:
        """Check a task against its domain and bring its marginals into one form.

        Args:
            domain: Cells of each column (>= 1).
            workload: "all k-way" (k from 1 to 9), or a list of marginals: lists of columns,
                (columns, weight) pairs, or mappings with `columns` and `weight`.
            interest: Interest queries, 1 to 4 columns each; one named twice counts once.
            max_rows: Rows one privacy unit may own, >= 1.
            options: Options of the mechanism.
            expected_rows: Public guess of the row count, >= 0, or None.
            ordered: For columns whose cells have an order: how many of their first cells do.

        Returns:
            The task, marginals in the column order of the domain, repeats removed.

        Raises:
            TaskError: The sentence names the column or the key and the fix.

        Privacy: ledger only.
        """
        cells = _checked_domain(domain)
        if type(max_rows) is not int or max_rows < 1:
            raise TaskError("max_rows: write an integer of at least 1.")
        if expected_rows is not None and (type(expected_rows) is not int or expected_rows < 0):
            raise TaskError("expected_rows: write an integer of at least 0, or leave it out.")
        queries = [
            canonical_clique(cells, query, "interest", MAX_INTEREST_COLUMNS) for query in interest
        ]
        marginals, text = _checked_workload(cells, workload)
        return cls(
            domain=cells,
            workload=marginals,
            interest=tuple(dict.fromkeys(queries)),
            max_rows=max_rows,
            options=dict(options or {}),
            expected_rows=expected_rows,
            workload_text=text,
            ordered=_checked_order(cells, ordered or {}),
        )

    def cells(self, clique: Clique) -> int:
        """Count the cells of a marginal exactly, however many they are."""
        return math.prod(self.domain[column] for column in clique)

    def to_dict(self) -> dict[str, Any]:
        """Describe the task in JSON types; "all k-way" stays text so that plans stay small."""
        workload: Any = self.workload_text
        if workload is None:
            workload = [
                {"columns": list(clique), "weight": weight} for clique, weight in self.workload
            ]
        record: dict[str, Any] = {
            "domain": [[name, cells] for name, cells in self.domain.items()],
            "workload": workload,
            "interest": [list(clique) for clique in self.interest],
            "max_rows": self.max_rows,
            "options": dict(self.options),
            "expected_rows": self.expected_rows,
        }
        return record | {"ordered": dict(self.ordered)} if self.ordered else record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> SynthesisTask:
        """Read a task back from what `to_dict` wrote."""
        return cls.build(
            {str(name): cells for name, cells in record["domain"]},
            workload=record["workload"],
            interest=record["interest"],
            max_rows=record["max_rows"],
            options=record["options"],
            expected_rows=record["expected_rows"],
            ordered=record.get("ordered"),
        )


def canonical_clique(
    domain: Mapping[str, int], columns: object, where: str, most: int | None = None
) -> Clique:
    """Bring the columns of a marginal into the order of the domain.

    Args:
        domain: Cells of each column.
        columns: The columns as a person wrote them.
        where: The key they stand under; opens the error sentence.
        most: Largest number of columns accepted.

    Returns:
        The columns as a tuple.

    Raises:
        TaskError: A column is unknown or repeated, or there are too few or too many.

    Privacy: ledger only.
    """
    if isinstance(columns, str) or not isinstance(columns, Sequence) or not columns:
        raise TaskError(f"{where}: write each marginal as a list of columns, e.g. [age, income].")
    for column in columns:
        if column not in domain:
            raise TaskError(
                f"{where}: column {column!r} is not in the dataset; it has "
                f"{', '.join(map(repr, domain))}."
            )
    if len(set(columns)) < len(columns):
        raise TaskError(f"{where}: {list(columns)!r} names a column twice; name each once.")
    if most is not None and len(columns) > most:
        raise TaskError(
            f"{where}: {list(columns)!r} has {len(columns)} columns; at most {most} are supported."
        )
    chosen = set(columns)
    return tuple(column for column in domain if column in chosen)


def _checked_domain(domain: Mapping[str, int]) -> dict[str, int]:
    if not domain:
        raise TaskError("columns: the dataset has no column to model; declare at least one.")
    for name, cells in domain.items():
        if type(cells) is not int or cells < 1:
            raise TaskError(f"columns: {name!r} needs a number of cells of at least 1.")
    return dict(domain)


def _checked_order(domain: Mapping[str, int], ordered: Mapping[str, int]) -> dict[str, int]:
    for name, cells in ordered.items():
        if name not in domain or type(cells) is not int or not 1 <= cells <= domain[name]:
            raise TaskError(f"columns: the ordered cells of {name!r} are not among its cells.")
    return dict(ordered)


def _checked_workload(
    domain: Mapping[str, int], workload: str | Sequence[Any]
) -> tuple[tuple[tuple[Clique, float], ...], str | None]:
    if isinstance(workload, str):
        match = _ALL_K_WAY.fullmatch(workload)
        if match is None:
            raise TaskError(
                f'workload: {workload!r} is not known; write "all 2-way", "all 3-way" or a list '
                "of marginals."
            )
        size = min(int(match.group(1)), len(domain))
        count = math.comb(len(domain), size)
        if count > MAX_CANDIDATES:
            raise TaskError(
                f"workload: {workload!r} over {len(domain)} columns is {count} marginals and at "
                f"most {MAX_CANDIDATES} are supported; list those you need or drop columns."
            )
        return tuple((clique, 1.0) for clique in itertools.combinations(domain, size)), workload
    if not workload:
        raise TaskError('workload: the list is empty; write "all 2-way" or name marginals.')
    weights: dict[Clique, float] = {}
    for entry in workload:
        columns, weight = _entry(entry)
        clique = canonical_clique(domain, columns, "workload")
        weights[clique] = weights.get(clique, 0.0) + weight
    if len(weights) > MAX_CANDIDATES:
        raise TaskError(f"workload: {len(weights)} marginals; at most {MAX_CANDIDATES}.")
    return tuple(weights.items()), None


def _entry(entry: object) -> tuple[object, float]:
    """Split one workload entry into its columns and its weight."""
    if isinstance(entry, Mapping):
        surplus = set(entry) - {"columns", "weight"}
        if surplus or "columns" not in entry:
            raise TaskError("workload: an entry has `columns` and, if need be, `weight`.")
        return entry["columns"], _weight(entry.get("weight", 1))
    pair = isinstance(entry, list | tuple) and len(entry) == 2
    if pair and isinstance(entry[0], list | tuple):  # type: ignore[index]
        return entry[0], _weight(entry[1])  # type: ignore[index]
    return entry, 1.0


def _weight(weight: object) -> float:
    fine = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not fine or not 1e-6 <= weight <= 1e6:  # type: ignore[operator]
        raise TaskError("workload: a weight is a number from 1e-6 to 1e6.")
    return float(weight)  # type: ignore[arg-type]
