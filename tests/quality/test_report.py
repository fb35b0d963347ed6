"""The report: safe for any name, self-contained, the same bytes twice, every number marked."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from include.quality.facts import InterestQuery
from include.quality.fidelity import Verdict, assess
from include.quality.reading import down, share, up, visible
from include.quality.report import (
    MARKS,
    TEMPLATES,
    marked,
    read_report,
    render_html,
    render_json,
    write_report,
)
from tests.quality.facts_example import HOSTILE, codes, report


class Page(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            self.text.append(data)


def numbers(body: object, pointer: str = ""):
    if isinstance(body, bool) or body is None or isinstance(body, str):
        return
    if isinstance(body, int | float):
        yield pointer
    elif isinstance(body, list):
        for i, item in enumerate(body):
            yield from numbers(item, f"{pointer}/{i}")
    elif isinstance(body, dict):
        for key, item in body.items():
            yield from numbers(item, f"{pointer}/{key}")


def test_the_twin_rebuilds_the_report(tmp_path):
    first = report()
    html, twin = write_report(tmp_path, first)
    again = read_report(twin)
    assert again == first
    assert render_html(again) == html.read_text(encoding="utf-8")
    assert render_json(again) == twin.read_text(encoding="utf-8")


def test_every_number_of_the_twin_is_marked_and_every_mark_is_used():
    body = json.loads(render_json(report()))
    found = {pointer: marked(pointer) for pointer in numbers(body)}
    assert len(found) > 100
    assert [pointer for pointer, mark in found.items() if mark is None] == []
    assert set(found.values()) == {"paid", "private", "public"}
    for pattern in MARKS:
        form = re.compile(pattern.replace("*", "[^/]+"))
        assert any(form.fullmatch(pointer) for pointer in found), pattern


def test_measured_numbers_alone_are_paid():
    assert marked("/fidelity/interest/0/bars/3/measured") == "paid"
    assert marked("/fidelity/columns/0/bars/0/synthetic") == "private"
    assert marked("/fidelity/interest/0/noise") is None


def test_the_page_marks_its_numbers():
    page = Page(render_html(report()))
    marks = [
        a["class"].split()[1] for t, a in page.tags if "mark" in (a.get("class") or "").split()
    ]
    assert {"paid", "private", "public", "internal"} == set(marks)
    assert marks.count("internal") == 1  # the legend only: a published report holds none


def test_hostile_names_stay_text():
    page = Page(render_html(report(HOSTILE[:4])))
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert "<script>alert(1)</script>" in page.text
    assert not [a for _, attrs in page.tags for a in attrs if a.startswith("on")]
    assert "{{7*7}}" in "".join(Page(render_html(report(HOSTILE[1:5]))).text)


def test_direction_changing_and_control_characters_are_shown_not_obeyed():
    html = render_html(report(HOSTILE[:4]))
    assert "\u202e" not in html
    assert visible("x\u202eevil") == "x␣evil"
    assert visible(' a\n"b"') == '␣a␊"b"'
    assert visible("") == "(empty)"
    assert visible("   ") == "␣␣␣"
    assert visible("السن") == "السن"
    assert visible("می\u200cخواهم") == "می\u200cخواهم"  # a joiner shapes the word


def test_names_stand_in_isolation_of_direction():
    html = render_html(report(HOSTILE[:4]))
    assert "<bdi>السن</bdi>" in html


def test_the_page_loads_nothing_and_runs_only_its_own_script():
    html = render_html(report())
    page = Page(html)
    assert not [a for _, a in page.tags if a.keys() & {"src", "srcset", "href"} - {"href"}]
    assert {a["href"] for _, a in page.tags if "href" in a} == {"#main"}
    assert "url(" not in html
    assert "@import" not in html
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv"))
    script = re.search(r"<script>(.*?)</script>", html, re.S)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_the_page_is_accessible():
    page = Page(render_html(report()))
    tags = [tag for tag, _ in page.tags]
    assert tags.count("h1") == 1
    assert {"main", "header", "footer"} <= set(tags)
    assert next(a["lang"] for t, a in page.tags if t == "html") == "en"
    assert all(a.get("aria-label") for t, a in page.tags if t == "svg")
    assert all(a.get("scope") for t, a in page.tags if t == "th")
    assert tags.count("caption") == tags.count("table")
    assert all(a.get("type") == "button" for t, a in page.tags if t == "button")
    identifiers = [a["id"] for _, a in page.tags if "id" in a]
    assert len(identifiers) == len(set(identifiers))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_enough_contrast(theme):
    css = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    light, dark = css.split("@media (prefers-color-scheme: dark)")[:2]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", light))
    if theme == "dark":
        colours |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", dark.split("* {")[0]))
    for text, ground in [
        ("ink", "page"),
        ("ink", "card"),
        ("ink2", "page"),
        ("ink2", "card"),
        ("ink3", "card"),
        ("paid", "paid-soft"),
        ("private", "private-soft"),
        ("public", "public-soft"),
        ("good", "good-soft"),
        ("bad", "bad-soft"),
    ]:
        assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for shape in ("accent", "measure", "grey"):
        assert contrast(colours[shape], colours["card"]) >= 3, shape


def test_a_withheld_release_says_why_at_the_top():
    verdict = Verdict(False, ("The 95% error bound of the interest query a x b is 0.9.",))
    html = render_html(replace(report(), verdict=verdict))
    assert "Withheld by the quality gate" in html
    assert verdict.reasons[0] in html


def test_a_release_without_queries_and_an_unmeasured_query_render():
    first = report()
    bare = replace(first, fidelity=assess(codes(first.columns), first.columns, [], []))
    html = render_html(bare)
    assert "No query was named for this release" in html
    assert "No pair of columns was measured" in html
    unmeasured = InterestQuery(("educ", "income"), None, None, None, None, "Noise swamps it.")
    lost = replace(first, fidelity=assess(codes(first.columns), first.columns, [], [unmeasured]))
    html = render_html(lost)
    assert "Not measured" in html
    assert "Noise swamps it." in html


def test_exact_facts_of_the_raw_data_have_no_place_in_the_inputs():
    text = render_json(report()).lower()
    for word in ("raw_rows", "true_rows", "snapshot", "raw_bytes", "source_hash"):
        assert word not in text


def test_shares_read_well():
    assert [share(v) for v in (0.1234, 0.0456, 0.00789, 0.0, None)] == [
        "12%",
        "4.6%",
        "0.79%",
        "0.00%",
        "–",
    ]


def test_amounts_are_shortened_against_the_reader():
    assert (up("1.778392621357"), down("1.778392621357")) == ("1.779", "1.778")
    assert (up("0.014973057639"), up("10"), up("0"), down("0.5")) == ("0.01498", "10", "0", "0.5")
    assert up("123456.7") == "123500"


def contrast(a: str, b: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    high, low = sorted((light(a), light(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)
