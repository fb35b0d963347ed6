"""Exact audit of whole mechanisms: every answer's loss, on every worst-case pair of neighbours."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from include.accounting import ONE
from include.synthesis import MECHANISM_NAMES, noise, selection
from include.synthesis.spending import OpenRound
from tests.audit.inputs import CONFIGURATIONS, PAIRS, rows, task_of
from tests.audit.lockstep import losses

SLACK = 1 + 1e-9  # float logarithms of exact probabilities


def test_every_mechanism_is_audited() -> None:
    assert {name for name, _ in CONFIGURATIONS.values()} == set(MECHANISM_NAMES)


def test_every_primitive_is_audited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The configurations together call each public method of an open round."""
    primitives = {name for name, value in vars(OpenRound).items() if _is_public(name, value)}
    assert len(primitives) >= 6
    called: set[str] = set()

    def spy(name: str, honest: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*arguments: object) -> object:
            called.add(name)
            return honest(*arguments)

        return wrapped

    for primitive in primitives:
        monkeypatch.setattr(OpenRound, primitive, spy(primitive, getattr(OpenRound, primitive)))
    for configuration in CONFIGURATIONS:
        name, task = task_of(configuration)
        losses(monkeypatch, name, task, PAIRS["two-sided"], 2 * ONE)
    assert called == primitives


def _is_public(name: str, value: object) -> bool:
    return callable(value) and not name.startswith("_")


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("pair", PAIRS)
def test_no_answer_loses_more_than_its_event(
    configuration: str, pair: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, task = task_of(configuration)
    found, plan = losses(monkeypatch, name, task, PAIRS[pair], 2 * ONE)
    assert found
    for loss in found:
        assert loss.worst <= loss.allowed * SLACK, loss
    pure = plan.cost.epsilon_pure_pico
    if pure is not None:
        assert sum(loss.worst for loss in found) <= pure / ONE * SLACK
        assert pure <= 2 * ONE


@pytest.mark.parametrize("configuration", ["mwem_pgm", "aim", "csa", "csa, gaussian"])
def test_a_unit_of_several_rows_is_covered_as_well(
    configuration: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, task = task_of(configuration, max_rows=3)
    table = rows((9800, (0, 0, 0)), (100, (1, 1, 0)), (100, (0, 0, 1)))
    for row in ((1, 1, 0), (1, 1, 1), (0, 1, 0)):
        pair = (table, np.vstack([table, rows((3, row))]))
        found, _ = losses(monkeypatch, name, task, pair, ONE)
        assert all(loss.worst <= loss.allowed * SLACK for loss in found)
        noisy = [loss for loss in found if loss.kind != "selection"]
        assert max(loss.worst / loss.allowed for loss in noisy) >= 0.999  # the bound is reached


def test_the_structure_selection_is_near_its_bound_on_the_two_sided_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A ratio near 1 shows that the audit looks where it hurts."""
    name, task = task_of("csa")
    found, _ = losses(monkeypatch, name, task, PAIRS["two-sided, all ones"], 2 * ONE)
    first = next(loss for loss in found if loss.kind == "selection")
    assert 0.97 * first.allowed <= first.worst <= first.allowed


@pytest.mark.parametrize("configuration", ["csa", "privbayes", "csa, forced"])
def test_half_the_sensitivity_would_be_caught(
    configuration: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = selection.dependence_sensitivity

    def halved(*arguments: object) -> int:
        return honest(*arguments) // 2  # type: ignore[arg-type]

    monkeypatch.setattr(selection, "dependence_sensitivity", halved)
    name, task = task_of(configuration)
    ratios = [
        loss.worst / loss.allowed
        for pair in PAIRS.values()
        for loss in losses(monkeypatch, name, task, pair, 2 * ONE)[0]
        if loss.kind == "selection" and loss.worst
    ]
    assert max(ratios) > 1.9


def test_noise_that_follows_the_data_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = noise.laplace_scale
    table = PAIRS["two-sided"]
    sizes = iter([len(table[0])] * 3 + [len(table[1])] * 3)
    monkeypatch.setattr(noise, "laplace_scale", lambda e, s: honest(e, s) * 100 / next(sizes))
    name, task = task_of("privbayes")
    with pytest.raises(AssertionError):
        losses(monkeypatch, name, task, table, 2 * ONE)
