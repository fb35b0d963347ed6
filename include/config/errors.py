"""How a fault in a configuration file is told: one line, "file: key: fault; fix"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from include.errors import CuSynError


class ConfigError(CuSynError, ValueError):
    """A fault in the steward's YAML, told as "file: key: fault; fix" on one line.

    Args:
        file: name of the file as the steward knows it, or "form" for a manual request.
        key: dotted path of the key inside the file; empty when the file itself is at fault.
        fault: what is wrong, and after "; " what to do about it.

    Privacy: ledger only (declared text, never rows).
    """

    def __init__(self, file: str, key: str, fault: str) -> None:
        self.file, self.key, self.fault = file, key, fault
        parts = [one_line(part, limit=400) for part in (file, key, fault) if part]
        super().__init__(": ".join(parts))


def one_line(text: object, *, limit: int = 80) -> str:
    """Return text without line breaks or control characters, cut to a length.

    Args:
        text: anything written in a configuration file.
        limit: largest number of characters kept.

    Returns:
        A string that cannot forge a second line in a log.

    Privacy: ledger only.
    """
    raw = str(text)
    shown = "".join(ch if ch.isprintable() else ch.encode("unicode_escape").decode() for ch in raw)
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def quoted(value: object) -> str:
    """Return a declared value in quotes, on one line, cut to a readable length.

    Privacy: ledger only.
    """
    return f"'{one_line(value, limit=60)}'"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a suggestion for a misspelt word, or the list of what is allowed.

    Args:
        word: what was written.
        known: the words allowed there.

    Returns:
        "did you mean 'income'?" or "use one of: ...", or a note that nothing is declared.

    Privacy: ledger only.
    """
    names = sorted({str(name) for name in known})
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean {quoted(near[0])}?"
    if not names:
        return "nothing is declared there yet"
    return "use one of: " + ", ".join(one_line(name, limit=40) for name in names[:12])
