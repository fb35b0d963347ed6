"""What a command answers: the same facts as data and as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """An answer to print.

    Args:
        data: JSON types.
        text: the same for a person.
        ok: False where something was found or refused; the exit code is then 1.
        complete: False where nothing was found, but not all could be looked at; the exit code is
            then 2.

    Privacy: post-processing.
    """

    data: Any
    text: str
    ok: bool = True
    complete: bool = True

    @property
    def exit_code(self) -> int:
        """What the command ends with."""
        if not self.ok:
            return 1
        return 0 if self.complete else 2


def table(header: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str) -> str:
    """Lay rows out in columns as wide as their widest cell.

    Args:
        header: names of the columns.
        rows: cells.
        empty: what to say where there is no row: what to do next.

    Privacy: post-processing.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    if not cells:
        return empty
    widths = [max(len(row[i]) for row in [list(header), *cells]) for i in range(len(header))]
    lines = [list(header), ["-" * width for width in widths], *cells]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
