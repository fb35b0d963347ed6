"""Bins by private quantiles: settled from any answers, paid as planned, resumed, spread again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.accounting import ONE, ExponentialMechanism, compose
from include.synthesis import Plan, SynthesisTask, TaskError, Transcript, cost_of, synthesizer
from include.synthesis.bins import ColumnBins, QuantileBins, SpreadModel, settled_edges
from include.synthesis.mechanisms.csa_privbayes import CsaPrivBayes
from include.synthesis.spending import SpendingSession
from include.synthesis.transcript import Round
from tests.synthesis import check_synthesizer
from tests.synthesis.tables import CountsTable, Journal

DOMAIN = {"s": 2, "age": 61, "gain": 30, "c": 3}  # age: sixty levels, and no age
ORDERED = {"age": 60, "gain": 30}
BINS = {"age": 6, "gain": 4}


def task(bins: Mapping[str, Any] | None = BINS, **options: Any) -> SynthesisTask:
    own = {"sensitive": "s"} | ({} if bins is None else {"quantile_bins": bins}) | options
    return SynthesisTask.build(DOMAIN, options=own, ordered=ORDERED)


def table(rows: int = 6000) -> CountsTable:
    rng = np.random.default_rng(4)
    age = np.minimum(rng.exponential(12, rows).astype(int), 59)
    s = ((age > 10) ^ (rng.random(rows) < 0.1)).astype(int)
    age[: rows // 10] = 60
    gain = np.where(rng.random(rows) < 0.9, 0, rng.integers(0, 30, rows))
    return CountsTable(np.stack([s, age, gain, rng.integers(0, 3, rows)], axis=1), DOMAIN)


# The conformance suite, with bins.


@pytest.mark.parametrize("name", check_synthesizer.NETWORKS)
@pytest.mark.parametrize("check", check_synthesizer.CHECKS, ids=lambda check: check.__name__)
def test_it_conforms_like_every_mechanism(
    check: Callable[[str], None], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = check_synthesizer.task_for

    def in_bins(name: str, **changes: Any) -> SynthesisTask:
        more = {"quantile_bins": {"c": 2}, "bin_share": 0.05}
        options = more | dict(changes.pop("options", {}))
        return replace(plain(name, **changes, options=options), ordered={"c": 4})

    monkeypatch.setattr(check_synthesizer, "task_for", in_bins)
    check(name)


# From answers to bins.


@given(st.data(), st.integers(3, 40))
def test_any_answers_make_the_wanted_number_of_bins(data: st.DataObject, grid: int) -> None:
    bins = data.draw(st.integers(2, grid - 1))
    answers = data.draw(st.lists(st.integers(1, grid - 1), max_size=bins - 1))
    edges = settled_edges(answers, QuantileBins(grid, bins))
    assert len(edges) == bins
    assert edges[0] == 0
    assert list(edges) == sorted(set(edges))
    assert edges[-1] < grid
    assert set(answers) <= set(edges)


def test_no_answer_makes_equal_bins_and_a_heap_divides_the_rest() -> None:
    assert settled_edges([], QuantileBins(12, 4)) == (0, 3, 6, 9)
    assert settled_edges([], QuantileBins(10, 4)) == (0, 2, 5, 7)
    assert settled_edges([1, 1, 1], QuantileBins(33, 4)) == (0, 1, 11, 22)
    assert settled_edges([5, 3, 9], QuantileBins(12, 4)) == (0, 3, 5, 9)


def test_codes_are_gathered_and_the_missing_level_stays_one_of_its_own() -> None:
    bins = ColumnBins("v", grid=5, cells=7, edges=(0, 1, 3))
    assert bins.gathered == (0, 1, 1, 2, 2, 3, 4)
    assert bins.ends == (1, 3, 5)
    assert bins.codes == 5


class _Fixed:
    """A model over (v in three bins and missing, w)."""

    total = 100.0
    size_mb = 0.0
    joint = np.array([[10.0, 0], [20, 20], [0, 40], [5, 5]])

    def marginal(self, clique: Any) -> np.ndarray:
        names = tuple(clique)
        found = self.joint.sum(axis=tuple(i for i, n in enumerate("vw") if n not in names))
        return (found.T if names == ("w", "v") else found).reshape(-1)

    def sample(self, rows: int, rng: np.random.Generator) -> np.ndarray:
        flat = rng.choice(8, rows, p=self.joint.reshape(-1) / 100)
        return np.stack([flat // 2, flat % 2], axis=1).astype(np.uint8)


def test_a_model_over_bins_is_read_and_sampled_in_declared_cells() -> None:
    spread = SpreadModel(
        _Fixed(), {"v": 6, "w": 2}, [ColumnBins("v", grid=5, cells=6, edges=(0, 1, 3))]
    )
    assert spread.marginal(["v"]).tolist() == [10, 20, 20, 20, 20, 10]
    expected = [[10, 0], [10, 10], [10, 10], [0, 20], [0, 20], [5, 5]]
    assert spread.marginal(["v", "w"]).reshape(6, 2).tolist() == expected
    assert spread.marginal(["w", "v"]).reshape(2, 6).T.tolist() == expected
    assert spread.marginal(["w"]).tolist() == [35, 65]
    rows = spread.sample(100_000, np.random.default_rng(0))
    shown = np.histogram2d(rows[:, 0], rows[:, 1], bins=[range(7), range(3)])[0] / 1000
    assert np.abs(shown - expected).max() < 1
    assert spread.sample(0, np.random.default_rng(0)).shape == (0, 2)


# The plan.


def test_the_share_is_divided_over_columns_and_quantiles() -> None:
    plan = CsaPrivBayes().plan(task(), ONE, 9)
    events = [event for event in plan.events if event.label == "bins"]
    assert len(events) == 5 + 3
    assert set(events) == {ExponentialMechanism(plan.parameters["bins"], "bins")}
    paid = compose(events)
    assert paid.epsilon_pure_pico == pytest.approx(0.1 * ONE, rel=1e-7)
    assert paid.rho_pico == pytest.approx(8 * (0.1 / 8) ** 2 / 8 * ONE, rel=1e-6)
    assert plan.cost.epsilon_pure_pico is not None
    assert ONE - 10**4 <= plan.cost.epsilon_pure_pico <= ONE
    assert Plan.from_dict(json.loads(json.dumps(plan.to_dict()))).digest == plan.digest


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("share", [0.001, 0.1, 0.5])
def test_plan_and_price_agree_and_never_pass_the_grant(noise: str, share: float) -> None:
    asked = task(noise=noise, bin_share=share)
    price = cost_of(asked, "csa_privbayes", 9)
    for epsilon_pico in (ONE // 1000, ONE // 3, ONE, 10 * ONE):
        plan = CsaPrivBayes().plan(asked, epsilon_pico, 9)
        assert plan.cost == price(epsilon_pico) == compose(plan.events)
        if noise == "laplace":
            assert 0 <= epsilon_pico - (plan.cost.epsilon_pure_pico or 0) <= epsilon_pico / 1000
        spent = CsaPrivBayes().measure(table(), plan, Journal()).events
        assert compose(spent).rho_pico <= plan.cost.rho_pico
    rhos = [price(step * ONE // 20).rho_pico for step in range(1, 60)]
    assert rhos == sorted(rhos)


def test_without_the_option_nothing_in_a_plan_or_transcript_changes() -> None:
    plain = SynthesisTask.build(DOMAIN, options={"sensitive": "s"})
    assert "ordered" not in plain.to_dict()
    plan = CsaPrivBayes().plan(plain, ONE, 9)
    assert "bins" not in plan.parameters
    transcript = CsaPrivBayes().measure(table(), plan, Journal())
    assert b"edges" not in transcript.to_bytes()
    assert CsaPrivBayes().bins(transcript, plan) == ()


def test_tables_are_sized_by_bins_not_by_the_grid() -> None:
    settings = CsaPrivBayes().settings(task())
    assert dict(settings.task.domain) == {"s": 2, "age": 7, "gain": 4, "c": 3}
    plan = CsaPrivBayes().plan(task(), 4 * ONE, 9)
    transcript = CsaPrivBayes().measure(table(), plan, Journal())
    for item in transcript.marginals:
        assert len(item.counts) == settings.task.cells(item.clique)


def test_edges_that_noise_would_place_are_warned_of_before_spending() -> None:
    """And at the epsilon it names there is no warning; none without a public row count."""
    for noise in ("laplace", "gaussian"):
        small = task({"age": 6}, noise=noise, public_rows=3000)
        plan = CsaPrivBayes().plan(small, ONE // 10, 9)
        warning = plan.warnings[0]
        assert warning.startswith("Noise will place the edges of age: with about 3000 rows")
        assert "\n" not in warning
        usable = int(float(plan.predictions[0].usable_epsilon or 0) * ONE)
        enough = CsaPrivBayes().plan(small, usable * 11 // 10, 9)
        assert not [told for told in enough.warnings if "edges" in told]
    assert not CsaPrivBayes().plan(task({"age": 6}), ONE // 10, 9).warnings


def test_the_warned_distance_is_the_one_that_happens() -> None:
    """The median of evenly spread values: of four bins it has two thirds of the worst bound."""
    grid = 400
    asked = SynthesisTask.build(
        {"s": 2, "v": grid},
        options={"sensitive": "s", "quantile_bins": {"v": 4}, "public_rows": 2000},
        ordered={"v": grid},
    )
    plan = CsaPrivBayes().plan(asked, ONE * 17 // 100, 9)
    codes = np.stack([np.arange(2000) % 2, np.arange(2000) % grid], axis=1)
    found = []
    for _ in range(500):
        session = SpendingSession(CountsTable(codes, asked.domain), Journal(), Fraction(1))
        with session.round("bins", [plan.events[0]]) as turn:
            found.append(abs(5 * turn.select_edge("v", grid, 2, 4) - 1000))
    told = plan.predictions[0]
    assert told.clique == ("v",)
    assert told.warning.startswith("Noise will place the edges of v")
    assert np.mean(found) == pytest.approx(told.sigma * 2 / 3, rel=0.25)


# Faults: one plain sentence each, before anything is spent.


@pytest.mark.parametrize(
    ("mechanism", "options", "fault"),
    [
        ("csa_privbayes", {"quantile_bins": {"z": 3}}, "'z', which is not modelled"),
        ("csa_privbayes", {"quantile_bins": {"c": 2}}, "'c', whose levels have no order"),
        ("csa_privbayes", {"quantile_bins": {"age": 1}}, "ask for 2 to 59"),
        ("csa_privbayes", {"quantile_bins": {"age": 60}}, "declared with 60 levels"),
        ("csa_privbayes", {"quantile_bins": {"age": 2.0}}, "a whole number"),
        ("csa_privbayes", {"quantile_bins": {"age": True}}, "a whole number"),
        ("csa_privbayes", {"quantile_bins": {}}, "a whole number"),
        ("csa_privbayes", {"quantile_bins": ["age"]}, "a whole number"),
        ("csa_privbayes", {"bin_share": 0.1}, "bin_share needs `quantile_bins"),
        ("csa_privbayes", {"quantile_bins": BINS, "bin_share": 0.6}, "0.001 to 0.5"),
        ("csa_privbayes", {"quantile_bins": BINS, "structure_share": 0.85}, "leave less than 0.1"),
        ("aim", {"quantile_bins": BINS}, "aim has no option 'quantile_bins'"),
        ("mwem_pgm", {"quantile_bins": BINS}, "mwem_pgm has no option 'quantile_bins'"),
    ],
)
def test_faults_are_one_sentence(mechanism: str, options: dict[str, Any], fault: str) -> None:
    own = {"sensitive": "s"} if mechanism == "csa_privbayes" else {}
    asked = SynthesisTask.build(DOMAIN, options=own | options, ordered=ORDERED)
    for ask in (
        lambda: synthesizer(mechanism).plan(asked, ONE, 9),
        lambda: cost_of(asked, mechanism, 9),
    ):
        with pytest.raises(TaskError) as caught:
            ask()
        assert fault in str(caught.value)
        assert str(caught.value).endswith(".")
        assert "\n" not in str(caught.value)


def test_two_levels_are_too_few_to_gather() -> None:
    asked = SynthesisTask.build(
        {"s": 2, "v": 2},
        options={"sensitive": "s", "quantile_bins": {"v": 2}},
        ordered={"v": 2},
    )
    with pytest.raises(TaskError, match="declare finer bins to choose edges from, or remove it"):
        CsaPrivBayes().plan(asked, ONE, 9)
    with pytest.raises(TaskError, match="not among its cells"):
        SynthesisTask.build({"v": 2}, ordered={"v": 3})


# The measurement.


@pytest.mark.parametrize("options", [{}, {"fit": "pgm"}, {"noise": "gaussian"}])
def test_with_a_large_budget_edges_are_quantiles_and_rows_follow_them(
    options: dict[str, Any],
) -> None:
    plan = CsaPrivBayes().plan(task(**options), 60 * ONE, 9)
    data = table()
    transcript = CsaPrivBayes().measure(data, plan, Journal())
    read = Transcript.from_bytes(transcript.to_bytes())
    assert read.digest == transcript.digest
    age, gain = CsaPrivBayes().bins(read, plan)
    known = np.sort(data.codes[data.codes[:, 1] < 60, 1])
    for part, edge in enumerate(age.edges[1:], 1):
        assert abs((known < edge).mean() - part / 6) < 0.1
    assert gain.edges[:2] == (0, 1)  # nine rows in ten lie in the first cell
    model = CsaPrivBayes().fit(read, plan)
    rows = CsaPrivBayes().sample(model, 6000, b"")
    assert rows.shape == (6000, 4)
    assert (rows.max(axis=0) < list(DOMAIN.values())).all()
    assert abs((rows[:, 1] == 60).mean() - 0.1) < 0.02
    wrong = [
        np.abs(np.bincount(one, minlength=61) / 6000) for one in (rows[:, 1], data.codes[:, 1])
    ]
    assert np.abs(wrong[0] - wrong[1]).sum() / 2 < 0.1
    assert model.marginal(("age", "s")).sum() == pytest.approx(model.total)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_interrupted_anywhere_it_ends_within_the_plan_on_the_same_edges(noise: str) -> None:
    plan = CsaPrivBayes().plan(task(noise=noise), ONE, 9)
    whole = CsaPrivBayes().measure(table(), plan, Journal())
    assert [turn.purpose for turn in whole.rounds[:3]] == ["total", "bins", "bins"]
    for crash in range(1, len(whole.rounds) + 1):
        first = Journal(crash_in=crash)
        with pytest.raises(KeyboardInterrupt):
            CsaPrivBayes().measure(table(), plan, first)
        for interrupted in (None, [first.begun[crash]]):
            second = Journal()
            second.begun = dict(first.begun)
            transcript = CsaPrivBayes().measure(
                table(), plan, second, resume_from=first.answers, interrupted=interrupted
            )
            spent = compose(event for events in second.begun.values() for event in events)
            assert spent.rho_pico <= plan.cost.rho_pico
            if noise == "laplace":
                assert (spent.epsilon_pure_pico or 0) <= (plan.cost.epsilon_pure_pico or 0)
            age, gain = CsaPrivBayes().bins(transcript, plan)
            assert (age.answered, gain.answered) == (crash != 2, crash != 3)
            if crash == 2:
                assert age.edges == (0, 10, 20, 30, 40, 50)
            kept = [edge for payload in first.answers for edge in payload.get("edges", [])]
            assert all(edge in (age if column == "age" else gain).edges for column, edge in kept)
            labels = [event.label for events in second.begun.values() for event in events]
            assert labels.count("bins") == 8  # each edge is asked for once, answered or not
            model = CsaPrivBayes().fit(transcript, plan)
            assert CsaPrivBayes().sample(model, 50, b"").shape == (50, 4)


@pytest.mark.parametrize("again", [3, 4, 6])
def test_interrupted_twice_the_burned_column_stays_burned(again: int) -> None:
    """The second resume learns of the first interruption from the answered rounds alone."""
    plan = CsaPrivBayes().plan(task(), ONE, 9)
    first = Journal(crash_in=2)
    with pytest.raises(KeyboardInterrupt):
        CsaPrivBayes().measure(table(), plan, first)
    second = Journal(crash_in=again)
    second.begun, second.answers = dict(first.begun), list(first.answers)
    with pytest.raises(KeyboardInterrupt):
        CsaPrivBayes().measure(
            table(), plan, second, resume_from=first.answers, interrupted=[first.begun[2]]
        )
    last = Journal()
    last.begun = dict(second.begun)
    unanswered = {"interrupted": [second.begun[again]]}
    if again == 3:  # neither round was answered
        unanswered = {"interrupted": [second.begun[2], second.begun[3]]}
    transcript = CsaPrivBayes().measure(
        table(), plan, last, resume_from=second.answers, **unanswered
    )
    age, gain = CsaPrivBayes().bins(transcript, plan)
    assert not age.answered
    assert gain.answered == (again != 3)
    spent = [event for events in last.begun.values() for event in events]
    assert spent == list(transcript.events)
    assert [event.label for event in spent].count("bins") == 8
    assert (compose(spent).epsilon_pure_pico or 0) <= (plan.cost.epsilon_pure_pico or 0)


def test_the_attribute_figure_leaves_out_edges_of_other_columns() -> None:
    plan = CsaPrivBayes().plan(task(degree=1), ONE, 9)
    transcript = CsaPrivBayes().measure(table(), plan, Journal())
    loss = CsaPrivBayes().attribute_loss(transcript, plan)
    assert loss is not None
    reading = [
        event
        for turn in transcript.rounds
        if turn.purpose == "structure" or any("s" in item.clique for item in turn.marginals)
        for event in turn.events
    ]
    expected = sum((event.epsilon_pure or Fraction(0) for event in reading), Fraction(0))
    assert 0 <= loss.ex_post_pico - 2 * expected * ONE < 1


def test_a_round_keeps_its_edges_and_reads_them_back() -> None:
    turn = Round(2, "bins", (ExponentialMechanism(0.1, "bins"),), (), edges=(("age", 7),))
    payload = json.loads(json.dumps(turn.to_payload()))
    assert payload["edges"] == [["age", 7]]
    assert Round.from_payload(payload) == turn
