"""Audit: what was done, re-costed by others; what was chosen, compared between neighbours."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from include.accounting import (
    ONE,
    DiscreteLaplace,
    Event,
    ExponentialMechanism,
    Gaussian,
    compose,
    rho_from_epsilon,
)
from include.synthesis import MECHANISM_NAMES, SynthesisTask, noise, selection, synthesizer
from tests.synthesis.check_synthesizer import NETWORKS, make_table, task_for
from tests.synthesis.tables import CountsTable, Journal


def recost_with_dp_accounting(events: tuple[Event, ...]) -> float:
    """Epsilon at 1e-9 of a sequence of events, by dp-accounting."""
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant([1 + math.exp(k / 100) for k in range(-200, 1100)])
    for event in events:
        if isinstance(event, Gaussian):
            accountant.compose(dp_event.GaussianDpEvent(event.sigma / event.sensitivity))
        elif isinstance(event, DiscreteLaplace):
            accountant.compose(dp_event.ZCDpEvent(float(event.rho)))
        else:
            assert isinstance(event, ExponentialMechanism)
            accountant.compose(dp_event.ZCDpEvent(float(event.epsilon) ** 2 / 8))
    return float(accountant.get_epsilon(1e-9))


def recost_with_opendp(events: tuple[Event, ...], max_rows: int) -> float:
    """Rho of a sequence of events, by the maps of the very measurements that draw the noise."""
    rho = 0.0
    for event in events:
        if isinstance(event, Gaussian):
            rho += noise._gaussian(float(event.sigma)).map(max_rows)
        elif isinstance(event, DiscreteLaplace):
            scale = noise.laplace_scale(event.epsilon, max_rows)
            pure = noise._laplace(scale).map(max_rows)
            rho += pure * math.tanh(pure / 2)
        else:
            assert isinstance(event, ExponentialMechanism)
            sensitivity = selection.score_sensitivity([1], max_rows)
            scale = float(Fraction(2 * sensitivity) / Fraction(event.epsilon))
            rho += noise._noisy_max(scale).map(sensitivity)
    return rho


@pytest.mark.parametrize("name", MECHANISM_NAMES)
@pytest.mark.parametrize(
    "changes",
    [{}, {"interest": []}, {"max_rows": 3}, {"workload": "all 3-way"}],
    ids=["interest", "general", "three rows a unit", "three-way"],
)
@pytest.mark.parametrize("epsilon_pico", [ONE // 10, ONE, 5 * ONE])
def test_every_transcript_recosts_within_its_grant(
    name: str, changes: dict[str, object], epsilon_pico: int
) -> None:
    task = task_for(name, **changes)
    mechanism = synthesizer(name)
    plan = mechanism.plan(task, epsilon_pico, 9)
    table = make_table(max_rows=task.max_rows)
    events = mechanism.measure(table, plan, Journal()).events
    pure = plan.cost.epsilon_pure_pico
    if pure is not None:
        spent = compose(events)
        assert spent.epsilon_pure_pico is not None
        assert spent.epsilon_pure_pico <= pure <= epsilon_pico
        assert spent.rho_pico <= plan.cost.rho_pico
        assert recost_with_opendp(events, task.max_rows) <= plan.cost.rho_pico / ONE * (1 + 1e-9)
        return
    grant = rho_from_epsilon(epsilon_pico, 9)
    assert compose(events).rho_pico <= plan.cost.rho_pico <= grant
    assert recost_with_dp_accounting(events) <= epsilon_pico / ONE * (1 + 1e-4)
    assert recost_with_opendp(events, task.max_rows) <= grant / ONE * (1 + 1e-9)


@pytest.mark.parametrize("name", MECHANISM_NAMES)
def test_recorded_scales_are_those_of_the_drawn_noise(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the samplers were asked for is what the transcript and the ledger say."""
    drawn: list[tuple[str, float]] = []
    gaussian, choose = noise.discrete_gaussian, noise.exponential_mechanism
    laplace = noise.discrete_laplace

    def spy_gaussian(counts: np.ndarray, sigma: float) -> np.ndarray:
        drawn.append(("gaussian", sigma))
        return gaussian(counts, sigma)

    def spy_laplace(counts: np.ndarray, scale: float) -> np.ndarray:
        drawn.append(("discrete_laplace", scale))
        return laplace(counts, scale)

    def spy_choose(scores: np.ndarray, sensitivity: int, epsilon: float) -> int:
        assert sensitivity >= 2 << selection.SCALE_BITS
        drawn.append(("exponential_mechanism", epsilon))
        return choose(scores, sensitivity, epsilon)

    monkeypatch.setattr(noise, "discrete_gaussian", spy_gaussian)
    monkeypatch.setattr(noise, "exponential_mechanism", spy_choose)
    monkeypatch.setattr(noise, "discrete_laplace", spy_laplace)
    task = task_for(name, max_rows=2)
    plan = synthesizer(name).plan(task, ONE, 9)
    transcript = synthesizer(name).measure(make_table(max_rows=2), plan, Journal())
    booked: list[tuple[str, float]] = []
    for event in transcript.events:
        if isinstance(event, Gaussian):
            booked.append((event.kind, event.sigma))
        elif isinstance(event, ExponentialMechanism):
            booked.append((event.kind, event.epsilon))
        elif isinstance(event, DiscreteLaplace):
            booked.append((event.kind, noise.laplace_scale(event.epsilon, 2)))
    assert drawn == booked


def test_selection_probabilities_of_neighbours_stay_within_epsilon() -> None:
    """Exact probabilities on the two-sided input: the ratio is at most e^epsilon, and near it."""
    names = ("s", "copy", "other")
    domain = dict.fromkeys(names, 2)
    rows = np.zeros((10_000, 3), dtype=np.int64)
    rows[:100, :2] = 1
    rows[100:200, 2] = 1
    neighbour = np.vstack([rows, [[1, 1, 1]]])
    candidates = [("s", "copy"), ("s", "other"), ("copy", "other")]
    # The row moves the first score up and the others down, and the first is the unlikely one.
    expected = [np.array([9900.0, 0, 0, 100])] + [np.array([9800.0, 100, 100, 5])] * 2
    epsilon = 2.0

    def log_probabilities(codes: np.ndarray) -> np.ndarray:
        table = CountsTable(codes, domain)
        with table.spending():
            scores = [
                selection.l1_score(table.counts(clique), model, 0.0, 1)
                for clique, model in zip(candidates, expected, strict=True)
            ]
        sensitivity = selection.score_sensitivity([1], 1)
        logits = np.array(scores) * (epsilon / (2 * sensitivity))
        return np.asarray(logits - logits.max() - np.log(np.exp(logits - logits.max()).sum()))

    ratio = np.abs(log_probabilities(rows) - log_probabilities(neighbour)).max()
    assert 0.97 * epsilon <= ratio <= epsilon


@pytest.mark.parametrize("name", MECHANISM_NAMES)
def test_neighbours_get_the_same_shape_of_answer(name: str) -> None:
    """A row with a value seen nowhere else changes no clique count, plan, event or type."""
    domain = {"a": 3, "b": 4, "c": 2}
    rng = np.random.default_rng(0)
    rows = np.stack([rng.integers(0, 2, 50), rng.integers(0, 3, 50), rng.integers(0, 2, 50)], 1)
    neighbour = np.vstack([rows, [[2, 3, 1]]])
    if name in NETWORKS:
        own = {"sensitive": "a"} if name == "csa_privbayes" else {}
        task = SynthesisTask.build(domain, options=own)
    else:
        task = SynthesisTask.build(domain, interest=[["a", "b"]], options={"rounds": 5})
    mechanism = synthesizer(name)
    plan = mechanism.plan(task, ONE, 9)
    for codes in (rows, neighbour, rows[:0], rows[:1]):
        journal = Journal()
        transcript = mechanism.measure(CountsTable(codes, domain), plan, journal)
        first = [event.to_dict() for event in journal.begun[1]]
        assert first == [event.to_dict() for event in plan.events[: len(first)]]
        measured = tuple(m.clique for m in transcript.marginals if m.label == "interest")
        assert measured == task.interest
        sample = mechanism.sample(mechanism.fit(transcript, plan), 10, b"")
        assert (sample.shape, sample.dtype.kind) == ((10, 3), "u")


@pytest.mark.slow
@pytest.mark.parametrize("clique", [("a",), ("a", "b", "c", "d")])
def test_a_lonely_cell_gets_noise_of_the_stated_scale(clique: tuple[str, ...]) -> None:
    """One cell with count 1, small epsilon, thousands of draws: the deviation is sigma."""
    domain = {"a": 2, "b": 2, "c": 2, "d": 2}
    task = SynthesisTask.build(domain, interest=[list(clique)], workload=[list(clique)])
    mechanism = synthesizer("mwem_pgm")
    plan = mechanism.plan(task, ONE // 10, 9)
    table = CountsTable(np.array([[1, 1, 1, 1]]), domain)
    values = []
    for _ in range(3000):
        transcript = mechanism.measure(table, plan, Journal())
        values.append(transcript.marginals[0].counts[-1])
    sigma = plan.parameters["sigma_interest"]
    assert np.std(values) == pytest.approx(sigma, rel=0.06)
    assert np.mean(values) == pytest.approx(1, abs=5 * sigma / math.sqrt(3000))
