"""The conformance suite: what every registered mechanism must do, whatever it is.

`check_synthesizer(name)` runs all of it; each check can also be run alone.
"""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from include.accounting import (
    ONE,
    DiscreteLaplace,
    Gaussian,
    compose,
    cost_in_currency,
    rho_from_epsilon,
)
from include.synthesis import (
    Plan,
    PlanError,
    SpendingError,
    SynthesisTask,
    TaskError,
    Transcript,
    TranscriptError,
    cost_of,
    interest_errors,
    noise,
    noisy_rows,
    synthesizer,
)
from tests.synthesis.tables import CountsTable, Journal

DOMAIN = {"a": 2, "b": 3, "c": 4, "d": 2, "constant": 1}
DELTA = 9
NETWORKS = ("csa_privbayes", "privbayes")


def make_task(**changes: object) -> SynthesisTask:
    settings: dict[str, object] = {
        "interest": [["b", "c"], ["a", "d"]],
        "expected_rows": 2000,
    }
    return SynthesisTask.build(DOMAIN, **(settings | changes))  # type: ignore[arg-type]


def task_for(name: str, **changes: object) -> SynthesisTask:
    """Ask the same of each mechanism, in the words it has: networks know no interest queries."""
    if name not in NETWORKS:
        return make_task(**changes)
    own: dict[str, object] = {"sensitive": "a"} if name == "csa_privbayes" else {}
    kept = {key: value for key, value in changes.items() if key != "workload"}
    asked = dict(kept.pop("options", {}))  # type: ignore[call-overload]
    asked.pop("rounds", None)
    return make_task(**(kept | {"interest": [], "options": own | asked}))


def make_table(rows: int = 2000, *, max_rows: int = 1) -> CountsTable:
    rng = np.random.default_rng(7)
    a = rng.integers(0, 2, rows)
    b = (a + rng.integers(0, 2, rows)) % 3
    c = (b + rng.integers(0, 2, rows)) % 4
    codes = np.stack([a, b, c, (a + (rng.random(rows) < 0.1)) % 2, 0 * a], axis=1)
    return CountsTable(codes, DOMAIN, max_rows=max_rows)


def check_plan_fits_every_grant(name: str) -> None:
    """Cost <= grant in exact integers, in both currencies, and equal to what cost_of says."""
    for task in (task_for(name), task_for(name, interest=[]), task_for(name, max_rows=3)):
        quick = cost_of(task, name, DELTA)
        for epsilon in ("0.001", "0.1", "1", "0.333333333333", "10", "400"):
            pico = int(Fraction(epsilon) * ONE)
            plan = synthesizer(name).plan(task, pico, DELTA)
            assert plan.cost == compose(plan.events) == quick(pico)
            if plan.cost.epsilon_pure_pico is not None:  # a pure plan claims the grant itself
                assert 0.999 * pico <= plan.cost.epsilon_pure_pico <= pico
            else:
                assert 0.999 * rho_from_epsilon(pico, DELTA) <= plan.cost.rho_pico
                assert plan.cost.rho_pico <= rho_from_epsilon(pico, DELTA)
            assert cost_in_currency(plan.cost, "epsilon", DELTA) <= pico


def check_plan_is_a_pure_function(name: str) -> None:
    """Equal arguments give equal digests, also after a round trip through JSON."""
    plan = synthesizer(name).plan(task_for(name), ONE, DELTA)
    again = synthesizer(name).plan(task_for(name), ONE, DELTA)
    assert plan.digest == again.digest
    read = Plan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert read.digest == plan.digest
    assert read.events == plan.events


def check_refusals(name: str) -> None:
    """Faults are found before anything is spent, in one sentence."""
    mechanism = synthesizer(name)
    with pytest.raises(PlanError, match=r"0\.001"):
        mechanism.plan(task_for(name), ONE // 1001, DELTA)
    with pytest.raises(TaskError, match="no option 'sead'"):
        mechanism.plan(task_for(name, options={"sead": 1}), ONE, DELTA)
    with pytest.raises(PlanError, match="MB"):
        mechanism.plan(_too_wide(name), ONE, DELTA)
    plan = mechanism.plan(task_for(name), ONE, DELTA)
    journal = Journal()
    with pytest.raises(PlanError, match="rows a privacy unit"):
        mechanism.measure(make_table(max_rows=2), plan, journal)
    other = CountsTable(np.zeros((3, 1)), {"a": 2})
    with pytest.raises(PlanError, match="columns"):
        mechanism.measure(other, plan, journal)
    assert not journal.begun


def _too_wide(name: str) -> SynthesisTask:
    domain, options = {"x": 3000, "y": 3000, "z": 2}, {"max_model_mb": 50}
    if name == "privbayes":
        return SynthesisTask.build({"x": 10**7, "y": 2}, options=options)
    if name == "csa_privbayes":
        forced = {"sensitive": "x", "force_sensitive_parent": True}
        return SynthesisTask.build(domain, options=options | forced)
    return SynthesisTask.build(domain, interest=[["x", "y"]], options=options)


def check_spend_is_journalled_first(name: str) -> None:
    """Every event of the transcript was journalled, and together they stay within the plan."""
    for task in (task_for(name), task_for(name, interest=[]), task_for(name, max_rows=2)):
        plan = synthesizer(name).plan(task, ONE, DELTA)
        journal = Journal()
        table = make_table(max_rows=task.max_rows)
        transcript = synthesizer(name).measure(table, plan, journal)
        journalled = [event for events in journal.begun.values() for event in events]
        assert journalled == list(transcript.events)
        assert compose(transcript.events).rho_pico <= plan.cost.rho_pico
        assert compose(transcript.events).epsilon_pure_pico == compose(journalled).epsilon_pure_pico
        noisy = [e for e in transcript.events if isinstance(e, Gaussian | DiscreteLaplace)]
        assert [_deviation(event, task.max_rows) for event in noisy] == [
            m.sigma for m in transcript.marginals
        ]
        measured = {m.clique for m in transcript.marginals if m.label == "interest"}
        assert measured == set(task.interest)


def _deviation(event: Gaussian | DiscreteLaplace, max_rows: int) -> float:
    if isinstance(event, Gaussian):
        assert event.sensitivity == max_rows
        return float(event.sigma)
    return noise.laplace_deviation(noise.laplace_scale(event.epsilon, max_rows))


def check_fit_sees_only_the_transcript(name: str) -> None:
    """The model is a function of the sealed bytes, and rows of the model and a public seed."""
    mechanism = synthesizer(name)
    plan = mechanism.plan(task_for(name), ONE, DELTA)
    transcript = mechanism.measure(make_table(), plan, Journal())
    read = Transcript.from_bytes(transcript.to_bytes())
    assert read.digest == transcript.digest
    models = [mechanism.fit(item, plan) for item in (transcript, read)]
    rows = [mechanism.sample(model, 500, transcript.digest.encode()) for model in models]
    assert np.array_equal(*rows)
    other = mechanism.sample(models[0], 500, b"other")
    assert not np.array_equal(rows[0], other)
    smaller = mechanism.plan(task_for(name), ONE // 2, DELTA)
    with pytest.raises(TranscriptError, match="another plan"):
        mechanism.fit(transcript, smaller)


def check_rows_lie_in_the_domain(name: str) -> None:
    """Shape, type and range of the rows, for zero rows as well."""
    mechanism = synthesizer(name)
    plan = mechanism.plan(task_for(name), ONE, DELTA)
    model = mechanism.fit(mechanism.measure(make_table(), plan, Journal()), plan)
    for count in (0, 1, 1000):
        rows = mechanism.sample(model, count, b"")
        assert rows.shape == (count, len(DOMAIN))
        assert np.issubdtype(rows.dtype, np.unsignedinteger)
        assert all(rows[:, i].max(initial=0) < n for i, n in enumerate(DOMAIN.values()))
    for clique in [("a",), ("b", "c"), ("a", "b", "d")]:
        assert model.marginal(clique).sum() == pytest.approx(model.total)


def check_noise_is_fresh(name: str) -> None:
    """Two default runs differ: nothing is seeded."""
    mechanism = synthesizer(name)
    plan = mechanism.plan(task_for(name), ONE, DELTA)
    digests = {mechanism.measure(make_table(), plan, Journal()).digest for _ in range(3)}
    assert len(digests) == 3


def check_useful(name: str) -> None:
    """With a large budget the interest queries come out close, within their bound."""
    mechanism = synthesizer(name)
    plan = mechanism.plan(task_for(name), 10 * ONE, DELTA)
    table = make_table()
    transcript = mechanism.measure(table, plan, Journal())
    model = mechanism.fit(transcript, plan)
    assert abs(noisy_rows(transcript) - 2000) < 100
    for error in interest_errors(transcript, plan, model):
        with table.spending():
            exact = table.counts(error.clique)
        distance = np.abs(exact / exact.sum() - model.marginal(error.clique) / model.total).sum()
        assert distance / 2 < 0.02
        assert error.bound95_tv is not None
        assert distance / 2 <= error.bound95_tv * 1.5


def check_edge_tables(name: str) -> None:
    """Empty, one row, one column, constant columns: an answer each, the same for neighbours."""
    mechanism = synthesizer(name)
    plan = mechanism.plan(task_for(name), ONE, DELTA)
    shapes = set()
    for rows in (0, 1, 2):
        transcript = mechanism.measure(make_table(rows), plan, Journal())
        model = mechanism.fit(transcript, plan)
        sample = mechanism.sample(model, 50, b"")
        shapes.add((sample.shape, sample.dtype))
        assert noisy_rows(transcript) >= 0
        assert len(interest_errors(transcript, plan, model)) == len(plan.task.interest)
    assert len(shapes) == 1
    if name in NETWORKS:
        with pytest.raises(TaskError, match="at least two"):
            mechanism.plan(SynthesisTask.build({"only": 5}), ONE, DELTA)
        return
    for domain in ({"only": 5}, {"only": 1}, {"x": 1, "y": 1}):
        task = SynthesisTask.build(domain)
        small = mechanism.plan(task, ONE, DELTA)
        table = CountsTable(np.zeros((30, len(domain))), domain)
        model = mechanism.fit(mechanism.measure(table, small, Journal()), small)
        assert mechanism.sample(model, 9, b"").shape == (9, len(domain))


def check_resume(name: str) -> None:
    """Interrupted in any round: continues, burns that round, stays within the plan."""
    mechanism = synthesizer(name)
    plan = mechanism.plan(task_for(name, options={"rounds": 6}), ONE, DELTA)
    whole = mechanism.measure(make_table(), plan, Journal())
    for crash in range(1, len(whole.rounds) + 1):
        first = Journal(crash_in=crash)
        try:
            mechanism.measure(make_table(), plan, first)
        except KeyboardInterrupt:
            pass
        else:
            continue  # this run was shorter: adaptive
        burned = [first.begun[crash]]
        for interrupted in (None, burned):
            second = Journal()
            second.begun = dict(first.begun)
            transcript = mechanism.measure(
                make_table(), plan, second, resume_from=first.answers, interrupted=interrupted
            )
            spent = [event for events in second.begun.values() for event in events]
            assert spent == list(transcript.events)
            assert compose(spent).rho_pico <= plan.cost.rho_pico
            kept = [turn.to_payload() for turn in transcript.rounds][: crash - 1]
            assert kept == first.answers
            model = mechanism.fit(Transcript.from_bytes(transcript.to_bytes()), plan)
            assert model.total > 0


def check_a_complete_journal_replays_for_free(name: str) -> None:
    """Resuming after the last answer reads nothing and gives the same digest."""
    mechanism = synthesizer(name)
    plan = mechanism.plan(task_for(name), ONE, DELTA)
    journal = Journal()
    transcript = mechanism.measure(make_table(), plan, journal)
    silent = Journal()
    table = make_table()
    table.counts = None  # type: ignore[method-assign,assignment]
    again = mechanism.measure(table, plan, silent, resume_from=journal.answers, interrupted=[])
    assert again.digest == transcript.digest
    assert not silent.begun


def check_faults_of_the_table_do_not_speak(name: str) -> None:
    """An exception inside the opened window keeps its class name and loses its text."""
    mechanism = synthesizer(name)
    plan = mechanism.plan(task_for(name), ONE, DELTA)
    table = make_table()

    def broken(clique: tuple[str, ...]) -> np.ndarray:
        raise ValueError("canary-4711")

    table.counts = broken  # type: ignore[method-assign]
    with pytest.raises(SpendingError, match="ValueError") as caught:
        mechanism.measure(table, plan, Journal())
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def check_earlier_transcripts(name: str) -> None:
    """Reuse is declared in the transcript, costs nothing and is needed again for the fit."""
    mechanism = synthesizer(name)
    plan = mechanism.plan(task_for(name), ONE, DELTA)
    first = mechanism.measure(make_table(), plan, Journal())
    second = mechanism.measure(make_table(), plan, Journal(), earlier=[first])
    assert second.earlier == (first.digest,)
    assert compose(second.events).rho_pico <= plan.cost.rho_pico
    with pytest.raises(TranscriptError, match="other earlier"):
        mechanism.fit(second, plan)
    assert mechanism.fit(second, plan, earlier=[first]).total > 0


def check_wide_binary(name: str) -> None:
    """70 binary columns (a domain product over 2^63) run within the memory bound."""
    domain = {f"x{i}": 2 for i in range(70)}
    rounds = {"aim": 71}.get(name, 3)  # AIM divides its budget by one-way marginals as well
    asked: dict[str, object] = {"interest": [["x0", "x69"]], "options": {"rounds": rounds}}
    if name in NETWORKS:
        own = {"sensitive": "x0"} if name == "csa_privbayes" else {}
        asked = {"options": own | {"public_rows": 10**6, "degree": 2}}
    task = SynthesisTask.build(domain, **asked)  # type: ignore[arg-type]
    mechanism = synthesizer(name)
    plan = mechanism.plan(task, ONE, DELTA)
    codes = np.random.default_rng(1).integers(0, 2, (500, 70))
    transcript = mechanism.measure(CountsTable(codes, domain), plan, Journal())
    model = mechanism.fit(transcript, plan)
    assert model.size_mb <= 80
    assert mechanism.sample(model, 20, b"").shape == (20, 70)


CHECKS = [
    check_plan_fits_every_grant,
    check_plan_is_a_pure_function,
    check_refusals,
    check_spend_is_journalled_first,
    check_fit_sees_only_the_transcript,
    check_rows_lie_in_the_domain,
    check_noise_is_fresh,
    check_useful,
    check_edge_tables,
    check_resume,
    check_a_complete_journal_replays_for_free,
    check_faults_of_the_table_do_not_speak,
    check_earlier_transcripts,
    check_wide_binary,
]


def check_synthesizer(name: str) -> None:
    """Run the whole suite on one mechanism."""
    for check in CHECKS:
        check(name)
