"""docs/evidence.md is what the stored results give, and other pages quote it rightly."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from benchmarks import goals
from benchmarks.evidence import claims, figures, mul
from benchmarks.evidence.page import BLOCKS, block, page, with_block
from benchmarks.paper.single import MECHANISMS, TABLES

ROOT = Path(__file__).resolve().parents[2]
AGAIN = "run `make evidence`"


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_page_is_what_the_results_give() -> None:
    assert text("docs/evidence.md") == page(), AGAIN


@pytest.mark.parametrize("name", sorted(BLOCKS))
def test_other_pages_quote_it(name: str) -> None:
    assert f"<!-- {BLOCKS[name]}: begin -->\n|" in text(name)
    assert text(name) == with_block(text(name), BLOCKS[name]), AGAIN


def test_every_quoted_figure_stands_on_the_page() -> None:
    """The README's block is made by the same code; its numbers stand in the page's own text too."""
    shown = text("docs/evidence.md")
    numbers = re.findall(r"\d+\.\d+ ± \d+\.\d+", block("evidence"))
    assert numbers
    assert [number for number in numbers if number not in shown] == []


def test_the_goals_are_kept() -> None:
    assert text("benchmarks/results/goals.csv") == goals.goals_csv(), "run `make evidence`"


def test_every_plot_is_shown_and_there() -> None:
    shown = set(re.findall(r"!\[[^]]+\]\(evidence/(\w+\.png)\)", text("docs/evidence.md")))
    assert shown == {path.name for path in (ROOT / "docs" / "evidence").glob("*.png")}


def test_every_table_names_command_date_machine_and_versions() -> None:
    lines = [line for line in page().splitlines() if re.match(r"`make bench-[a-z]+", line)]
    assert len(lines) >= 9
    whole = page().replace("\nMachine", " Machine")
    for line in whole.splitlines():
        if re.match(r"`make bench-[a-z]+", line) and not line.endswith("Not run."):
            assert "Date: 20" in line
            assert "Machine: " in line
            assert "ython 3." in line


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No results at all."""
    monkeypatch.setattr(figures, "RESULTS", tmp_path)


@pytest.mark.usefixtures("nothing")
def test_what_was_not_run_is_said() -> None:
    told = page()
    for name in TABLES:
        for mechanism in ("AIM", "MWEM-PGM"):
            assert f"{name} {mechanism} L = 5" in told
            assert f"{name} {mechanism} epsilon 0.1" in told
            assert f"{name} by {mechanism}" in told
    assert len(MECHANISMS) == 2
    assert {claim.verdict for claim in claims.cusyn()} == {
        figures.NOT_RUN,
        claims.NO,  # of the algorithm as printed: computed, not measured
        claims.NOT_TRIED,
    }
    assert "opendp aim" in told
    assert all(goal.line[2] == figures.NOT_RUN for goal in goals.goals())


def write(folder: Path, falls: float) -> None:
    """Write LEN of NLTCS: plain errors differ by seed, named queries have a share of each."""
    head = "table,mechanism,epsilon,length,seed,workload_model,interest10_model,note"
    lines = [head]
    for mechanism in MECHANISMS:
        for seed, plain in enumerate((0.1, 0.2, 0.3)):
            lines.append(f"nltcs,{mechanism},1,0,{seed},0.1,{plain},")
            lines.append(f"nltcs,{mechanism},1,10,{seed},0.1,{plain * (1 - falls)},")
    (folder / "paper.csv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("falls", "verdict"), [(0.7, claims.YES), (0.3, claims.NO)], ids=["enough", "too little"]
)
@pytest.mark.usefixtures("nothing")
def test_the_headline_is_judged_by_its_figure(tmp_path: Path, falls: float, verdict: str) -> None:
    write(tmp_path, falls)
    claim = claims.headline()
    assert claim.verdict == verdict
    assert f"-{100 * falls:.0f} ± 0%" in claim.figure  # paired: queries alone are no noise


@pytest.mark.parametrize(
    ("means", "seeds", "verdict"),
    [
        ([-0.5, -0.5, 0.5], 5, claims.YES),
        ([-0.5, 0.5, 0.5], 5, claims.PARTLY),
        ([0.5, -0.05], 5, claims.NO),  # the second is within two standard errors
        ([-0.5], 1, claims.TOO_FEW),
        ([None], 0, figures.NOT_RUN),
    ],
)
def test_counts_are_judged(means: list[float | None], seeds: int, verdict: str) -> None:
    error = 0.04 if seeds > 1 else math.nan
    found = [None if one is None else figures.Estimate(one, error, seeds) for one in means]
    assert claims._counted("it is so", found).verdict == verdict


def test_means_and_standard_errors() -> None:
    found = figures.estimate([1.0, 2.0, 3.0, 4.0])
    assert found is not None
    assert found.mean == 2.5
    assert found.error == pytest.approx(math.sqrt(5 / 3) / 2)
    assert figures.estimate([]) is None
    single = figures.estimate([1.0])
    assert single is not None
    assert single.text() == "1.0000 (1 seed)"


def test_a_change_uses_the_seeds_that_both_have() -> None:
    found = figures.change({"0": 1.0, "1": 3.0, "2": 99.0}, {"0": 2.0, "1": 4.0})
    assert found is not None
    assert (found.mean, found.seeds) == (pytest.approx(-1 / 3), 2)
    # residuals 1 - 2/3*2 = -1/3 and 3 - 2/3*4 = 1/3, over a mean of 3: error 1/9
    assert found.error == pytest.approx(1 / 9)
    assert figures.change({"0": 1.0}, {"1": 1.0}) is None


def test_what_is_left_of_a_zcdp_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "RESULTS", tmp_path)
    head = "table,mechanism,rounds,pool,reuse,seed,turn,answer,binding,left,largest"
    lines = [head] + [
        f"nltcs,aim,5,zcdp,off,0,{turn},granted,request,{1 - 0.04 * turn:.2f},3"
        for turn in range(1, 21)
    ]
    (tmp_path / "paper_mul.csv").write_text("\n".join(lines) + "\n")
    assert mul.left_when_additive_is_empty(5) == ["0.8000", "80%", "3.00", "15", "0.2000"]
    assert mul.left_when_additive_is_empty(10) == [figures.NOT_RUN] * 5
