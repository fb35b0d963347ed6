"""What the documents point at exists: pages, sections, paths, functions."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, anchors, code_spans, links, prose, section, text

ids = [str(page.relative_to(ROOT)) for page in PAGES]
each_page = pytest.mark.parametrize("page", PAGES, ids=ids)
# Paths that begin with one of these are of the repository, not of an installation.
ROOMS = ("include/", "plugins/", "dags/", "tools/", "tests/", "benchmarks/", "docs/")
NAMED_IN = re.compile(
    r"((?:`[\w.]+`(?:, | and |,\s|\s)*)+)\s*(?:of `(\w+)`\s*)?in\s+`([\w/]+\.py)`"
)
IN_BRACKETS = re.compile(r"`([\w.]+)`\s+\(`([\w/]+\.py)`\)")


@lru_cache
def definitions(path: Path) -> frozenset[str]:
    """Return the names a module defines: functions, classes, methods, constants."""
    found: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)
            }
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {one.id for one in targets if isinstance(one, ast.Name)}
    return frozenset(found)


def named_functions(page: Path) -> set[tuple[str, str]]:
    """Return (name, module) pairs that a page states."""
    pairs = set(IN_BRACKETS.findall(prose(page)))
    for names, owner, path in NAMED_IN.findall(prose(page)):
        pairs |= {(name, path) for name in re.findall(r"`([\w.]+)`", names)}
        if owner:
            pairs.add((owner, path))
    return pairs


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if re.match(r"https?://", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link}: no such page"
        if anchor:
            assert anchor in anchors(target), f"{link}: no such section"


@each_page
def test_paths_exist(page: Path) -> None:
    spans = {span for span in code_spans(page) if span.startswith(ROOMS)}
    missing = [span for span in spans if " " not in span and not list(ROOT.glob(span.rstrip("/")))]
    assert missing == []


@each_page
def test_functions_exist_where_they_are_said_to_be(page: Path) -> None:
    for name, path in named_functions(page):
        assert (ROOT / path).exists(), f"{name}: there is no {path}"
        assert name in definitions(ROOT / path), f"{path} does not define {name}"


def test_the_proofs_name_the_code() -> None:
    """The pattern of the test above finds what the most important page states."""
    pairs = named_functions(ROOT / "docs" / "guarantee.md")
    names = {name for name, _ in pairs}
    assert {
        "compose",
        "decide",
        "kept_rows",
        "l1_score",
        "sigma_within",
        "selection_epsilon_within",
        "rho_from_epsilon",
        "epsilon_from_rho",
        "require_claim",
        "open_charge",
        "MwemPgm",
        "Aim",
        "ProtectedTable",
        "figure",
    } <= names
    assert len(pairs) > 30


def test_the_decisions_are_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    records = sorted(path.name for path in folder.glob("0*.md"))
    index = text("docs/decisions/README.md")
    assert [name for name in records if f"({name})" not in index] == []
    assert [name[:4] for name in records] == [f"{i:04d}" for i in range(1, len(records) + 1)]
    for name in records:
        page = text(f"docs/decisions/{name}")
        assert all(f"**{part}.**" in page for part in ("Context", "Decision", "Consequences"))


def test_every_page_is_reached_from_the_readme() -> None:
    seen, open_pages = set(), [ROOT / "README.md"]
    while open_pages:
        page = open_pages.pop()
        if page in seen or not page.exists():
            continue
        seen.add(page)
        for link in links(page):
            target = (page.parent / link.partition("#")[0]).resolve()
            if target.is_dir():
                target = target / "README.md"
            if target.suffix == ".md":
                open_pages.append(target)
    assert [
        str(p.relative_to(ROOT)) for p in PAGES if p not in seen and p.name != "CONTRIBUTING.md"
    ] == []


@each_page
def test_pages_are_plain(page: Path) -> None:
    """No picture signs, and no path of somebody's machine."""
    body = text(page)
    assert not re.search("[\U0001f000-\U0001faff\u2600-\u27bf]", body)
    assert not re.search(r"(?<![\w.<])/(?:home|root|tmp|Users|work|mnt)/", body)


@lru_cache
def sentences() -> str:
    """Return every text the product can say, what it fills in left out."""
    said = []
    for path in [*(ROOT / "include").rglob("*.py"), *(ROOT / "plugins").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                said.append(node.value)
            if isinstance(node, ast.JoinedStr):
                parts = [
                    one.value if isinstance(one, ast.Constant) else "\0" for one in node.values
                ]
                said.append("".join(map(str, parts)))
    return "\n".join(said)


def test_quoted_sentences_are_said() -> None:
    """The table of faults in the steward's guide quotes what the product really says."""
    table = section("docs/steward-guide.md", "5. Read a refusal").split("The usual ones:")[1]
    quoted = re.findall(r"^\| `(.*?)`", table, re.MULTILINE)[1:]  # the first row names files
    assert len(quoted) >= 5
    for sentence in quoted:
        for part in re.split(r"\.\.\.", sentence):
            assert part.strip() in sentences(), f"{part!r} is said nowhere"


@each_page
def test_tables_have_equal_rows(page: Path) -> None:
    width = 0
    for line in prose(page).splitlines():
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not (width and cells) or cells == width, line
        width = cells
