"""Exact audit of the selection of edges: its score, its ratio, and whole releases in lockstep."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from include.accounting import ONE, ExponentialMechanism
from include.data.encode import encode
from include.data.schema import Schema
from include.synthesis import SynthesisTask, noise, selection, synthesizer
from include.synthesis.selection import quantile_scores, quantile_sensitivity
from include.synthesis.spending import SpendingSession
from tests.audit.lockstep import Call, losses
from tests.data.conftest import dataset
from tests.synthesis.tables import CountsTable, Journal

SLACK = 1 + 1e-9


def small_columns(cells: int, most: int) -> Iterator[np.ndarray]:
    """List all histograms of at most so many rows."""
    for counts in itertools.product(range(most + 1), repeat=cells):
        if sum(counts) <= most:
            yield np.array(counts, dtype=np.int64)


@pytest.mark.parametrize("max_rows", [1, 2, 3])
@pytest.mark.parametrize(("grid", "more", "most"), [(2, 0, 5), (3, 1, 4), (4, 1, 3), (5, 2, 2)])
def test_no_unit_moves_a_score_by_more_than_its_bound_and_some_unit_does(
    grid: int, more: int, most: int, max_rows: int
) -> None:
    """All columns (the last cells hold rows without a number), all units, all quantiles."""
    for parts in (2, 3, 4, 7):
        for part in range(1, parts):
            bound = quantile_sensitivity(part, parts, max_rows)
            assert bound <= (parts - 1) * max_rows < parts * max_rows  # below max_rows rows
            worst = 0
            for counts in small_columns(grid + more, most):
                before = quantile_scores(counts, grid, part, parts)
                assert before.shape == (grid - 1,)
                for unit in itertools.combinations_with_replacement(range(grid + more), max_rows):
                    after = counts + np.bincount(unit, minlength=grid + more)
                    moved = quantile_scores(after, grid, part, parts) - before
                    worst = max(worst, int(np.abs(moved).max()))
            assert worst == bound


def test_the_score_is_the_rank_error_in_both_of_its_forms() -> None:
    """|rank - q n| is |(1 - q) below - q above|: n need not be known apart from the ranks."""
    for counts in small_columns(4, 4):
        for parts in (2, 5):
            for part in range(1, parts):
                q = Fraction(part, parts)
                found = quantile_scores(counts, 3, part, parts)
                for edge in (1, 2):
                    below, above = int(counts[:edge].sum()), int(counts[edge:3].sum())
                    error = abs(below - q * (below + above))
                    assert error == abs((1 - q) * below - q * above)
                    assert Fraction(int(found[edge - 1]), parts) == -error


def test_rows_without_a_number_move_nothing() -> None:
    counts = np.array([3, 1, 4, 1], dtype=np.int64)
    more = counts + np.array([0, 0, 0, 9])
    assert (quantile_scores(counts, 3, 1, 2) == quantile_scores(more, 3, 1, 2)).all()


CELLS = [None, float("nan"), "x", -5, 0, 3, 3.5, 9, 10**12]


@pytest.mark.parametrize("outside", ["clamp", "null", "drop"])
def test_the_declared_policy_comes_first_and_no_cell_moves_more_than_a_row(outside: str) -> None:
    """Out of bounds, missing, not a number: clamped, missing or dropped before ranks are taken."""
    declared = dataset(
        {"v": {"type": "integer", "min": 0, "max": 9, "outside": outside, "nullable": True}}
    )
    schema = Schema.from_config(declared)
    cells = schema.domain["v"]

    def counted(values: Sequence[object]) -> np.ndarray:
        frame = pd.DataFrame({"v": pd.Series(list(values), dtype=object)})
        return np.bincount(encode(frame, schema)[:, 0], minlength=cells).astype(np.int64)

    for size in (0, 1, 2):
        for values in itertools.product(CELLS, repeat=size):
            before = counted(values)
            assert (before == sum((counted([one]) for one in values), 0 * before)).all()
    for values in ([], [3], [0, 9], [None, -5, 9, 9]):
        for extra in CELLS:
            before, after = counted(values), counted([*values, extra])
            for part, parts in ((1, 2), (1, 4), (3, 4)):
                moved = quantile_scores(after, 10, part, parts) - quantile_scores(
                    before, 10, part, parts
                )
                assert np.abs(moved).max() <= quantile_sensitivity(part, parts, 1)


def test_two_to_the_33_rows_on_the_finest_grid_stay_exact() -> None:
    counts = np.full(4096, 2**21, dtype=np.int64)
    found = quantile_scores(counts, 4096, 2048, 4095)
    below = [4095 * 2**21 * cell - 2048 * 2**33 for cell in range(1, 4096)]
    assert found.tolist() == [-abs(value) for value in below]


def ratio(before: np.ndarray, after: np.ndarray, part: int, parts: int) -> float:
    """Return the worst log ratio of one selection at epsilon 1, exactly."""
    logs = [
        Call(
            "selection",
            1.0,
            quantile_scores(counts, len(counts), part, parts),
            selection.quantile_sensitivity(part, parts, 1),
        ).log_probabilities
        for counts in (before, after)
    ]
    return float(np.abs(logs[0] - logs[1]).max())


def adversarial(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """One edge below all rows, the others just past the median: a last row draws them apart."""
    counts = np.zeros(64, dtype=np.int64)
    counts[1], counts[63] = (rows + 1) // 2, rows // 2
    after = counts.copy()
    after[63] += 1
    return counts, after


def test_the_selection_is_near_its_bound_on_the_adversarial_column_and_never_above() -> None:
    before, after = adversarial(10_001)
    assert 0.99 <= ratio(before, after, 1, 2) <= SLACK
    for parts in (2, 3, 8):
        for part in range(1, parts):
            for pair in (adversarial(10_001), adversarial(9), adversarial(1)):
                assert ratio(*pair, part, parts) <= SLACK


def test_every_small_neighbour_stays_within_epsilon() -> None:
    for counts in small_columns(4, 4):
        for cell in range(4):
            after = counts.copy()
            after[cell] += 1
            for part, parts in ((1, 2), (1, 3), (2, 3), (1, 5), (4, 5)):
                assert ratio(counts, after, part, parts) <= SLACK


def test_half_the_sensitivity_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = adversarial(10_001)
    monkeypatch.setattr(
        selection, "quantile_sensitivity", lambda *asked: quantile_sensitivity(*asked) / 2
    )
    assert ratio(before, after, 1, 2) > 1.9


# Whole releases: v has six declared levels in order and one for rows without a number.

DOMAIN = {"s": 2, "v": 7, "y": 2}
ORDERED = {"v": 6}
OPTIONS: dict[str, tuple[str, dict[str, object]]] = {
    "csa": ("csa_privbayes", {"sensitive": "s"}),
    "csa, noisy regions, selected root": (
        "csa_privbayes",
        {"sensitive": "s", "degree": 1, "regions": "noisy_information", "root": "selected"},
    ),
    "csa, gaussian": ("csa_privbayes", {"sensitive": "s", "noise": "gaussian"}),
    "csa, graphical model": ("csa_privbayes", {"sensitive": "s", "fit": "pgm"}),
    "privbayes": ("privbayes", {"degree": 1, "public_rows": 100}),
}


def rows(*blocks: tuple[int, tuple[int, int, int]]) -> np.ndarray:
    parts = [np.tile(np.array(row, dtype=np.int64), (count, 1)) for count, row in blocks]
    return np.concatenate([np.zeros((0, 3), dtype=np.int64), *parts])


def pair(table: np.ndarray, *added: tuple[int, int, int]) -> tuple[np.ndarray, np.ndarray]:
    return table, np.vstack([table, rows(*((1, row) for row in added))])


EVEN = rows(*((10, (v % 2, v, 0)) for v in range(6)))
PAIRS = {
    "empty": pair(rows(), (1, 5, 1)),
    "one row": pair(rows((1, (0, 3, 0))), (1, 0, 1)),
    "all without a number": pair(rows((50, (0, 6, 0))), (1, 6, 1)),
    "a first number": pair(rows((50, (0, 6, 0))), (1, 2, 1)),
    "ties at every edge": pair(EVEN, (1, 0, 1)),
    "all in one cell": pair(rows((10_000, (0, 2, 0))), (1, 5, 1)),
    "at the clamped end": pair(rows((5_000, (0, 0, 0)), (5_000, (1, 5, 1))), (0, 5, 0)),
    "two-sided": pair(rows((51, (0, 1, 0)), (50, (1, 5, 1))), (1, 5, 0)),
}


def task_of(name: str, **changes: object) -> tuple[str, SynthesisTask]:
    mechanism, options = OPTIONS[name]
    own = options | {"quantile_bins": {"v": 3}}
    task = SynthesisTask.build(DOMAIN, options=own, ordered=ORDERED, **changes)  # type: ignore[arg-type]
    return mechanism, task


@pytest.mark.parametrize("configuration", OPTIONS)
@pytest.mark.parametrize("neighbours", PAIRS)
def test_no_answer_loses_more_than_its_event(
    configuration: str, neighbours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Edges first, then everything that is measured in bins whose edges they are."""
    name, task = task_of(configuration)
    found, plan = losses(monkeypatch, name, task, PAIRS[neighbours], 2 * ONE)
    assert [loss.kind for loss in found].count("selection") >= 2 + len(DOMAIN) - 1
    for loss in found:
        assert loss.worst <= loss.allowed * SLACK, loss
    if plan.cost.epsilon_pure_pico is not None:
        assert sum(loss.worst for loss in found) <= plan.cost.epsilon_pure_pico / ONE * SLACK


@pytest.mark.parametrize("configuration", ["csa", "csa, gaussian"])
def test_a_unit_of_several_rows_is_covered_as_well(
    configuration: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, task = task_of(configuration, max_rows=3)
    for added in ([(1, 5, 1)] * 3, [(0, 0, 0), (1, 5, 1), (1, 6, 0)]):
        found, _ = losses(monkeypatch, name, task, pair(EVEN, *added), ONE)
        assert all(loss.worst <= loss.allowed * SLACK for loss in found)


@pytest.mark.parametrize("configuration", OPTIONS)
def test_shapes_kinds_and_the_number_of_bins_do_not_depend_on_rows(configuration: str) -> None:
    name, task = task_of(configuration)
    mechanism = synthesizer(name)
    plan = mechanism.plan(task, ONE, 9)
    seen = set()
    for neighbours in PAIRS.values():
        for codes in neighbours:
            transcript = mechanism.measure(CountsTable(codes, DOMAIN), plan, Journal())
            (bins,) = mechanism.bins(transcript, plan)
            sizes = {"s": 2, "v": 4, "y": 2}  # three bins, and the rows without a number
            for item in transcript.marginals:
                assert len(item.counts) == math.prod(sizes[name] for name in item.clique)
            drawn = mechanism.sample(mechanism.fit(transcript, plan), 9, b"")
            assert (drawn.max(axis=0) <= [1, 6, 1]).all()
            first = transcript.rounds[0 if configuration == "privbayes" else 1]
            seen.add((len(bins.edges), first.purpose, first.events, drawn.shape, drawn.dtype))
    assert len(seen) == 1
    assert next(iter(seen))[:2] == (3, "bins")


def test_the_drawn_scale_is_the_one_in_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    """What reaches the sampler is the journalled epsilon and the stated sensitivity."""
    asked: list[tuple[int, float]] = []

    def keep(scores: np.ndarray, sensitivity: int, epsilon: float) -> int:
        asked.append((sensitivity, epsilon))
        return 0

    monkeypatch.setattr(noise, "exponential_mechanism", keep)
    event = ExponentialMechanism(0.25, "bins")
    journal = Journal()
    session = SpendingSession(CountsTable(EVEN, DOMAIN, max_rows=2), journal, 3 * event.rho)
    with session.round("bins", [event] * 3) as turn:
        assert [turn.select_edge("v", 6, part, 4) for part in (1, 2, 3)] == [1, 1, 1]
    assert asked == [(6, 0.25), (4, 0.25), (6, 0.25)]  # max(part, parts - part) x max_rows
    assert journal.begun == {1: (event,) * 3}
    assert turn.result is not None
    assert turn.result.edges == (("v", 1),) * 3
    assert selection.quantile_sensitivity(2, 4, 2) == 4
