"""The documents, cut into the parts that tests look at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def text(page: Path | str) -> str:
    """Return a page's text, by path or by its name below the project's folder."""
    return (ROOT / page).read_text(encoding="utf-8")


def flat(page: Path | str) -> str:
    """Return a page with its line breaks as blanks, to look for phrases."""
    return " ".join(text(page).split())


def prose(page: Path | str) -> str:
    """Return a page without its fenced blocks."""
    return FENCE.sub("", text(page))


def blocks(page: Path | str, language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    return [body for found, body in FENCE.findall(text(page)) if found == language]


def section(page: Path | str, heading: str) -> str:
    """Return what stands under a heading, its subsections included."""
    lines = text(page).splitlines()
    start = next(i for i, line in enumerate(lines) if line.lstrip("#").strip() == heading)
    level = len(lines[start]) - len(lines[start].lstrip("#"))
    kept = []
    for line in lines[start + 1 :]:
        if re.match(rf"#{{1,{level}}} ", line):
            break
        kept.append(line)
    return "\n".join(kept)


def anchors(page: Path | str) -> set[str]:
    """Return the anchors that headings make, as GitHub writes them."""
    found = set()
    for line in prose(page).splitlines():
        if line.startswith("#"):
            plain = re.sub(r"[`*\[\]]|\(.*?\)", "", line.lstrip("#").strip()).lower()
            found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def links(page: Path | str) -> Iterator[str]:
    """Yield the targets of a page's links."""
    yield from re.findall(r"\]\(([^)\s]+)\)", prose(page))


def code_spans(page: Path | str) -> list[str]:
    """Return what stands between single backticks outside blocks."""
    return re.findall(r"`([^`\n]+)`", prose(page))
