"""Tables of integer codes as CSV under a domain JSON, and the error measure of the comparisons."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Clique = tuple[str, ...]
Codes = NDArray[np.int64]


class TableError(SystemExit):
    """A file of codes that does not fit its domain; ends the command with one sentence."""


def read_codes(csv_path: Path, domain_path: Path) -> tuple[Codes, dict[str, int]]:
    """Read codes and their domain; columns follow the CSV, cells are found by name.

    Returns:
        Codes, int64, shape (rows, columns), and cells of each column in the CSV's order.
    """
    cells: dict[str, int] = json.loads(domain_path.read_text(encoding="utf-8"))
    with csv_path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        unknown = [name for name in header if name not in cells]
        if unknown or not header:
            raise TableError(f"{csv_path}: columns {unknown} are not in {domain_path}.")
        try:
            codes = np.array([list(map(int, row)) for row in reader], dtype=np.int64)
        except ValueError:
            raise TableError(f"{csv_path}: every value must be an integer code.") from None
    codes = codes.reshape(-1, len(header))
    for name, column in zip(header, codes.T, strict=True):
        if column.size and not (column.min() >= 0 and column.max() < cells[name]):
            raise TableError(f"{csv_path}: column {name!r} has codes outside its domain.")
    return codes, {name: int(cells[name]) for name in header}


def write_codes(path: Path, names: Iterable[str], codes: NDArray[Any]) -> None:
    """Write codes as CSV with a header."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(codes.tolist())


def pair_counts(
    codes: NDArray[Any], domain: Mapping[str, int], pairs: Sequence[Clique] | None = None
) -> dict[Clique, NDArray[np.int64]]:
    """Count two-way marginals, all of them by default."""
    at = {name: codes[:, i].astype(np.int64) for i, name in enumerate(domain)}
    wanted = itertools.combinations(domain, 2) if pairs is None else pairs
    return {
        (a, b): np.bincount(at[a] * domain[b] + at[b], minlength=domain[a] * domain[b])
        for a, b in wanted
    }


def mean_tv(
    truth: Mapping[Clique, NDArray[Any]],
    shown: Mapping[Clique, NDArray[Any]],
    pairs: Iterable[Clique] | None = None,
) -> float:
    """Average half the L1 distance of normalised marginals over pairs."""
    distances = [
        np.abs(truth[c] / max(truth[c].sum(), 1) - shown[c] / max(shown[c].sum(), 1)).sum() / 2
        for c in (truth if pairs is None else pairs)
    ]
    return float(np.mean(distances)) if distances else float("nan")


def keep_rows(path: Path, rows: Sequence[Mapping[str, Any]], key: str = "table") -> None:
    """Write rows of results; those of other tables that stand in the file stay there."""
    new = {str(row[key]) for row in rows}
    kept: list[Mapping[str, Any]] = []
    if path.is_file():
        with path.open(newline="", encoding="utf-8") as file:
            kept = [row for row in csv.DictReader(file) if row[key] not in new]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows([*kept, *rows])
