"""Error bars from the noise alone: tight enough to be useful, and they hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from include.accounting import ONE, Gaussian
from include.synthesis import (
    NoisyMarginal,
    Round,
    SynthesisTask,
    Transcript,
    interest_errors,
    noise,
    synthesizer,
)
from include.synthesis.errors import noise_l1_quantile
from tests.synthesis.tables import CountsTable, Journal


@pytest.mark.parametrize("sigma", [0.6, 3.0, 40.0])
@pytest.mark.parametrize("cells", [1, 4, 60])
def test_the_quantile_holds_and_is_tight(sigma: float, cells: int) -> None:
    drawn = noise.discrete_gaussian(np.zeros(2000 * cells, dtype=np.int64), sigma)
    norms = np.abs(drawn.reshape(2000, cells)).sum(axis=1)
    bound = noise_l1_quantile(sigma, cells, 0.05)
    assert (norms <= bound).mean() >= 0.94
    assert bound <= 1.45 * np.quantile(norms, 0.95) + 1


def test_the_quantile_grows_with_safety() -> None:
    values = [noise_l1_quantile(2.0, 10, risk) for risk in (0.5, 0.1, 0.01, 1e-6)]
    assert values == sorted(values)
    assert values[0] > 2.0 * 10 * math.sqrt(2 / math.pi)


def test_an_unmeasured_query_promises_nothing() -> None:
    task = SynthesisTask.build({"a": 2, "b": 2}, interest=[["a", "b"]])
    plan = synthesizer("mwem_pgm").plan(task, ONE, 9)
    turn = Round(1, "selected", (Gaussian(3.0),), (NoisyMarginal(("a",), 3.0, (4, 5), "selected"),))
    (error,) = interest_errors(Transcript("mwem_pgm", plan.digest, (turn,)), plan)
    assert (error.sigma, error.typical_tv, error.bound95_tv) == (None, None, None)


def test_no_rows_no_promise_below_one() -> None:
    domain = {"a": 2, "b": 2}
    plan = synthesizer("mwem_pgm").plan(
        SynthesisTask.build(domain, interest=[["a", "b"]]), ONE // 100, 9
    )
    table = CountsTable(np.zeros((0, 2)), domain)
    transcript = synthesizer("mwem_pgm").measure(table, plan, Journal())
    (error,) = interest_errors(transcript, plan)
    assert error.bound95_tv == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mwem_pgm", "aim"])
@pytest.mark.parametrize("rows", [60, 3000])
def test_coverage(name: str, rows: int) -> None:
    """95% bounds cover at least 95% of answers and of model marginals, and are not vacuous."""
    rng = np.random.default_rng(3)
    domain = {"a": 3, "b": 4, "c": 2}
    a = rng.integers(0, 3, rows)
    b = (a + (rng.random(rows) < 0.3)) % 4
    table = CountsTable(np.stack([a, b, rng.integers(0, 2, rows)], axis=1), domain)
    task = SynthesisTask.build(
        domain, interest=[["a", "b"], ["b", "c"], ["a", "b", "c"]], options={"rounds": 5}
    )
    mechanism = synthesizer(name)
    plan = mechanism.plan(task, ONE, 9)
    kept: dict[bool, list[bool]] = {False: [], True: []}
    reached, typical = [], []
    for _ in range(150):
        transcript = mechanism.measure(table, plan, Journal())
        model = mechanism.fit(transcript, plan)
        answers = {m.clique: np.array(m.counts, float) for m in transcript.marginals}
        rows_hat = max(model.total, 1.0)
        for with_model in (False, True):
            errors = interest_errors(transcript, plan, model if with_model else None)
            for error in errors:
                with table.spending():
                    exact = table.counts(error.clique) / rows
                shown = model.marginal(error.clique) if with_model else answers[error.clique]
                distance = np.abs(shown / rows_hat - exact).sum() / 2
                assert error.bound95_tv is not None
                kept[with_model].append(bool(distance <= error.bound95_tv or distance > 1))
                if with_model:
                    reached.append(distance)
                    typical.append(error.typical_tv)
    for outcomes in kept.values():
        assert np.mean(outcomes) >= 0.95
    assert 0.3 * np.mean(typical) < np.mean(reached) < 1.5 * np.mean(typical)
