"""Every registered mechanism passes the conformance suite; the rest is special to one of them."""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from include.accounting import ONE, AdaptiveBlock, ExponentialMechanism, Gaussian
from include.synthesis import (
    MECHANISM_NAMES,
    NoisyMarginal,
    PlanError,
    SynthesisTask,
    TaskError,
    cost_of,
    synthesizer,
)
from include.synthesis.mechanisms.mwem_pgm import reduced_rounds
from tests.synthesis.check_synthesizer import CHECKS, DOMAIN, NETWORKS, make_table, make_task
from tests.synthesis.tables import CountsTable, Journal


@pytest.mark.parametrize("name", MECHANISM_NAMES)
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_conformance(name: str, check: Callable[[str], None]) -> None:
    check(name)


def test_an_unknown_mechanism_is_answered_with_the_known_ones() -> None:
    with pytest.raises(TaskError, match=r"'mwemp' is not known; use one of aim, .*mwem_pgm"):
        synthesizer("mwemp")


def test_import_is_light() -> None:
    code = (
        "import sys, include.synthesis; "
        "heavy = {'numpy', 'opendp', 'pandas', 'mbi'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", MECHANISM_NAMES)
def test_negotiation_asks_for_costs_in_a_blink(name: str) -> None:
    domain = {f"x{i}": 3 for i in range(30)}
    queries = [[f"x{i}", f"x{i + 1}"] for i in range(15)]
    asked: dict[str, object] = {"interest": queries}
    if name in NETWORKS:
        asked = {"options": {"sensitive": "x0"} if name == "csa_privbayes" else {}}
    quick = cost_of(SynthesisTask.build(domain, **asked), name, 9)  # type: ignore[arg-type]
    quick(ONE)
    start = time.process_time()
    for step in range(100):
        quick(ONE + step * 10**9)
    assert (time.process_time() - start) / 100 < 0.004  # 2 ms on a quiet machine


def test_mwem_plan_is_the_corrected_one() -> None:
    """sigma = sqrt((T + L) / (2 a rho)) with a = .9 for all measurements alike."""
    plan = synthesizer("mwem_pgm").plan(make_task(options={"rounds": 4}), ONE, 9)
    rho = 0.014973057673
    gaussians = [event for event in plan.events if isinstance(event, Gaussian)]
    selections = [event for event in plan.events if isinstance(event, ExponentialMechanism)]
    assert (len(gaussians), len(selections)) == (6, 4)
    for event in gaussians:
        assert event.sigma == pytest.approx((6 / (2 * 0.9 * rho)) ** 0.5, rel=1e-6)
    for event in selections:
        assert event.epsilon == pytest.approx((8 * 0.1 * rho / 4) ** 0.5, rel=1e-6)


def test_mwem_interest_share_moves_budget_exactly() -> None:
    plan = synthesizer("mwem_pgm").plan(make_task(options={"interest_share": 0.5}), ONE, 9)
    interest = sum(e.rho for e in plan.events if e.label == "interest")
    general = sum(e.rho for e in plan.events if e.label == "selected")
    assert float(interest / general) == pytest.approx(1, rel=1e-6)


def test_mwem_measures_interest_first_and_aim_last() -> None:
    for name, first in (("mwem_pgm", True), ("aim", False)):
        plan = synthesizer(name).plan(make_task(), ONE, 9)
        purposes = [
            turn.purpose for turn in synthesizer(name).measure(make_table(), plan, Journal()).rounds
        ]
        queries = purposes[:2] if first else purposes[-2:]
        assert queries == ["interest", "interest"]


def test_mwem_pays_for_the_row_count_only_where_nothing_else_tells_it() -> None:
    without = synthesizer("mwem_pgm").plan(make_task(interest=[], options={"rounds": 3}), ONE, 9)
    total = [event for event in without.events if event.label == "total"]
    assert len(total) == 1
    assert float(total[0].rho) == pytest.approx(0.01 * 0.014973, rel=1e-4)
    with_queries = synthesizer("mwem_pgm").plan(make_task(options={"rounds": 3}), ONE, 9)
    assert not [event for event in with_queries.events if event.label == "total"]


def test_mwem_selects_nothing_when_every_candidate_gets_a_round() -> None:
    task = SynthesisTask.build(DOMAIN, workload=[["a", "b"], ["c", "d"]], options={"rounds": 9})
    plan = synthesizer("mwem_pgm").plan(task, ONE, 9)
    assert [event.label for event in plan.events] == ["selected", "selected"]


@pytest.mark.parametrize(
    ("rounds", "queries", "run"), [(16, 0, 16), (16, 8, 16), (16, 10, 15), (16, 40, 4), (1, 5, 1)]
)
def test_long_interest_sequences_reduce_the_rounds(rounds: int, queries: int, run: int) -> None:
    assert reduced_rounds(rounds, queries) == run


def test_aim_plan_holds_its_rounds_as_one_block() -> None:
    plan = synthesizer("aim").plan(make_task(), ONE, 9)
    blocks = [event for event in plan.events if isinstance(event, AdaptiveBlock)]
    assert len(blocks) == 1
    interest = sum(event.rho for event in plan.events if event.label == "interest")
    assert float(interest) * ONE / plan.cost.rho_pico == pytest.approx(0.5, rel=1e-6)


def test_aim_spends_its_whole_block() -> None:
    plan = synthesizer("aim").plan(make_task(), ONE, 9)
    transcript = synthesizer("aim").measure(make_table(), plan, Journal())
    spent = sum(event.rho for event in transcript.events)
    assert float(spent) * ONE >= 0.99 * plan.cost.rho_pico


def test_predictions_warn_before_anything_is_spent() -> None:
    crowded = make_task(expected_rows=100)
    plan = synthesizer("mwem_pgm").plan(crowded, ONE // 10, 9)
    assert len(plan.warnings) == 2
    assert "swamp" in plan.warnings[0]
    item = plan.predictions[0]
    assert item.expected_tv is not None
    assert item.expected_tv > 0.1
    usable = int(float(item.usable_epsilon or 0) * ONE)
    better = synthesizer("mwem_pgm").plan(crowded, usable, 9).predictions[0]
    assert better.expected_tv is not None
    assert better.expected_tv <= 0.1
    roomy = synthesizer("mwem_pgm").plan(make_task(expected_rows=10**6), ONE, 9)
    assert not roomy.warnings
    unknown = synthesizer("mwem_pgm").plan(make_task(expected_rows=None), ONE, 9)
    assert unknown.predictions[0].expected_tv is None


@pytest.mark.parametrize("name", ["mwem_pgm", "aim"])
def test_a_weighted_workload_draws_rounds_to_the_heavy_marginal(name: str) -> None:
    """Of two equally wrong marginals the one of a thousandfold weight is selected."""
    domain = {"a": 2, "b": 2, "c": 2, "d": 2}
    rng = np.random.default_rng(0)
    a, c = rng.integers(0, 2, (2, 5000))
    table = CountsTable(np.stack([a, a, c, c], axis=1), domain)
    workload = [{"columns": ["a", "b"], "weight": 1000}, (["c", "d"], 1)]
    task = SynthesisTask.build(domain, workload=workload, options={"rounds": 1})
    mechanism = synthesizer(name)
    plan = mechanism.plan(task, ONE, 9)
    heavy = 0
    for _ in range(5):
        transcript = mechanism.measure(table, plan, Journal())
        selected = [m.clique for m in transcript.marginals if m.label == "selected"]
        heavy += selected[0] == ("a", "b")
    assert heavy == 5


@pytest.mark.parametrize("name", ["mwem_pgm", "aim"])
def test_interest_queries_of_four_columns(name: str) -> None:
    query = ["a", "b", "c", "d"]
    plan = synthesizer(name).plan(make_task(interest=[query]), 10 * ONE, 9)
    table = make_table()
    model = synthesizer(name).fit(synthesizer(name).measure(table, plan, Journal()), plan)
    with table.spending():
        exact = table.counts(tuple(query))
    assert np.abs(model.marginal(query) / model.total - exact / exact.sum()).sum() / 2 < 0.03


@pytest.mark.parametrize("name", ["aim", "mwem_pgm"])
@pytest.mark.parametrize(
    ("domain", "cells"),
    [
        (dict.fromkeys("abcd", 60_000), 60_000**4),  # beyond 2^63: no integer may wrap round
        (dict.fromkeys("abcd", 200), 200**4),
    ],
)
def test_an_interest_query_over_the_memory_bound_is_refused_with_its_numbers(
    name: str, domain: dict[str, int], cells: int
) -> None:
    task = SynthesisTask.build(domain, interest=[list(domain)])
    for ask in (lambda: synthesizer(name).plan(task, ONE, 9), lambda: cost_of(task, name, 9)):
        with pytest.raises(PlanError, match=f"a x b x c x d has {cells} cells") as caught:
            ask()
        assert "MB and max_model_mb is 80; use coarser bins" in str(caught.value)


@pytest.mark.parametrize("name", ["aim", "mwem_pgm"])
def test_a_workload_that_cannot_be_counted_is_refused_before_it_is_paid_for(name: str) -> None:
    domain = {f"c{place}": 100 for place in range(10)}
    task = SynthesisTask.build(domain, interest=[["c0", "c1"]], workload="all 3-way")
    for ask in (lambda: synthesizer(name).plan(task, ONE, 9), lambda: cost_of(task, name, 9)):
        with pytest.raises(PlanError, match="its 120 marginals need 960 MB together and 160 MB"):
            ask()


def test_aim_without_candidates_measures_its_query() -> None:
    task = SynthesisTask.build({"only": 4}, interest=[["only"]])
    plan = synthesizer("aim").plan(task, ONE, 9)
    table = CountsTable(np.zeros((10, 1)), {"only": 4})
    transcript = synthesizer("aim").measure(table, plan, Journal())
    assert [turn.purpose for turn in transcript.rounds] == ["one-way", "interest"]


@pytest.mark.slow
def test_private_pgm_fits_the_same_release() -> None:
    """The reference engine as estimator: the same transcript gives nearly the same marginals."""
    mechanism = synthesizer("mwem_pgm")
    ours = mechanism.plan(make_task(options={"rounds": 2}), ONE, 9)
    theirs = mechanism.plan(make_task(options={"rounds": 2, "estimator": "private_pgm"}), ONE, 9)
    assert ours.cost == theirs.cost
    transcript = mechanism.measure(make_table(), theirs, Journal())
    reference = mechanism.fit(transcript, theirs)
    same = replace(transcript, plan_digest=ours.digest)
    model = mechanism.fit(same, ours)
    for clique in make_task().interest:
        gap = np.abs(model.marginal(clique) - reference.marginal(clique)).sum() / 2
        assert gap / model.total < 0.01


@pytest.mark.parametrize("depth", [5, 15, 2000])
def test_the_estimated_risk_of_a_fit_is_its_distance_from_the_truth(depth: int) -> None:
    """Without seeing the truth, over noise draws, for shallow fits and deep ones."""
    from include.synthesis.fitting import Effort, Fitter

    domain = {"a": 20, "b": 5, "c": 3}
    pairs = list(itertools.combinations(domain, 2))
    shares = {name: np.linspace(1, 8, cells) for name, cells in domain.items()}
    truth = {(a, b): np.outer(shares[a], shares[b]).ravel() for a, b in pairs}
    noise = np.random.default_rng(0)
    sigma, effort = 12.0, Effort(depth, 0.01 if depth == 2000 else 0.0)
    estimated, actual = [], []
    for _ in range(8):
        fitter = Fitter(domain, 80, "numpy")
        for pair, table in truth.items():
            table *= 1000 / table.sum()
            values = np.rint(table + noise.normal(0, sigma, table.size)).astype(int)
            fitter.add([NoisyMarginal(pair, sigma, tuple(values.tolist()), "interest")])
        model = fitter.fit(effort)
        cells = sum(table.size for table in truth.values())
        estimated.append(fitter._risk(model, effort, fitter._probes()) - cells)
        gaps = [(model.marginal(pair) - table) / sigma for pair, table in truth.items()]
        actual.append(sum(float(gap @ gap) for gap in gaps))
    assert np.mean(estimated) == pytest.approx(np.mean(actual), rel=0.25)


def test_a_clear_table_is_fitted_to_the_end() -> None:
    from include.synthesis.fitting import FINAL, Fitter

    fitter = Fitter({"a": 3, "b": 2}, 80, "numpy")
    fitter.add([NoisyMarginal(("a", "b"), 1.0, (900, 20, 500, 70, 3, 10), "interest")])
    released = fitter.fit_for_release().marginal(("a", "b"))
    assert np.array_equal(released, fitter.fit(FINAL).marginal(("a", "b")))
