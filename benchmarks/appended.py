"""Results that survive an interruption: each finished cell is one appended line, never made twice.

A line is written by one call. What a kill leaves without its line end is cut off by the next start.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


class Appended:
    """A CSV of cells.

    Args:
        path: the file; its folder is made if need be.
        fields: the columns, in order.
        key: how many of the first columns name a cell.
    """

    def __init__(self, path: Path, fields: Sequence[str], key: int) -> None:
        self.path, self.fields, self._key = path, list(fields), key
        path.parent.mkdir(parents=True, exist_ok=True)
        self._cut_half_a_line()

    def rows(self) -> list[dict[str, str]]:
        """Return all finished cells."""
        return read_rows(self.path)

    def done(self) -> set[tuple[str, ...]]:
        """Return the names of the finished cells."""
        return {tuple(row[name] for name in self.fields[: self._key]) for row in self.rows()}

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add the rows of one cell, all of them or none."""
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, self.fields, lineterminator="\n")
        if not self.path.exists() or self.path.stat().st_size == 0:
            writer.writeheader()
        writer.writerows(rows)
        with self.path.open("ab", buffering=0) as file:
            file.write(buffer.getvalue().encode())

    def _cut_half_a_line(self) -> None:
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        if data and not data.endswith(b"\n"):
            self.path.write_bytes(data[: data.rfind(b"\n") + 1])


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read a CSV, comment lines left out; an absent file has no rows."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))
