"""What may not depend on rows: plans, shapes, errors, row counts, the samplers' scales."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import include.synthesis as synthesis
from include.accounting import ONE, DiscreteLaplace, ExponentialMechanism, Gaussian, compose
from include.data.errors import PrivateReadError
from include.data.private import ProtectedTable
from include.errors import CuSynError
from include.synthesis import SpendingError, Transcript, noise, noisy_rows, synthesizer
from include.synthesis.mechanisms.base import Policy, Step
from include.synthesis.spending import SpendingSession
from tests.audit.inputs import CONFIGURATIONS, DOMAIN, PAIRS, task_of
from tests.synthesis.tables import CountsTable, Journal


def finish(configuration: str, codes: np.ndarray) -> tuple[Transcript, np.ndarray]:
    name, task = task_of(configuration)
    mechanism = synthesizer(name)
    plan = mechanism.plan(task, ONE, 9)
    transcript = mechanism.measure(CountsTable(codes, task.domain), plan, Journal())
    return transcript, mechanism.sample(mechanism.fit(transcript, plan), 25, b"")


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("pair", ["empty", "one row", "a rare category", "two-sided"])
def test_neighbours_give_the_same_columns_shapes_types_and_rules(
    configuration: str, pair: str
) -> None:
    found = set()
    for codes in PAIRS[pair]:
        transcript, rows = finish(configuration, codes)
        found.add((rows.shape, rows.dtype))
        cells = list(task_of(configuration)[1].domain.values())
        assert (rows.max(axis=0) < cells).all()
        total = noisy_rows(transcript)
        assert total >= 0
        kinds = {type(value) for item in transcript.marginals for value in item.counts}
        assert kinds == {int}
    assert len(found) == 1


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("pair", ["empty", "one row", "a rare category", "two-sided"])
def test_neighbours_fail_alike(
    configuration: str, pair: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault while counting: the same class and the same words, whatever its own text quotes."""

    def burst(self: CountsTable, clique: tuple[str, ...]) -> np.ndarray:
        raise IndexError(f"{len(self.codes)} rows, {self.codes.tolist()}")

    monkeypatch.setattr(CountsTable, "counts", burst)
    said = set()
    for codes in PAIRS[pair]:
        with pytest.raises(CuSynError) as caught:
            finish(configuration, codes)
        said.add((type(caught.value), str(caught.value)))
    assert len(said) == 1


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_the_row_count_is_noisy(configuration: str) -> None:
    """It is read off the transcript alone, and two releases of one table differ in it."""
    table = PAIRS["two-sided"][0]
    totals = {noisy_rows(finish(configuration, table)[0]) for _ in range(6)}
    assert len(totals) > 1


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_scales_of_the_drawn_noise_are_those_in_the_ledger(
    configuration: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[tuple[str, float]] = []

    def spy(kind: str, place: int, real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any) -> Any:
            drawn.append((kind, arguments[place]))
            return real(*arguments)

        return wrapped

    for function, kind, place in (
        ("discrete_gaussian", "gaussian", 1),
        ("discrete_laplace", "discrete_laplace", 1),
        ("exponential_mechanism", "exponential_mechanism", 2),
    ):
        monkeypatch.setattr(noise, function, spy(kind, place, getattr(noise, function)))
    name, task = task_of(configuration, max_rows=2)
    plan = synthesizer(name).plan(task, ONE, 9)
    table = CountsTable(PAIRS["xor"][0], task.domain, max_rows=2)
    journal = Journal()
    transcript = synthesizer(name).measure(table, plan, journal)
    booked: list[tuple[str, float]] = []
    for event in (event for events in journal.begun.values() for event in events):
        if isinstance(event, Gaussian):
            booked.append((event.kind, event.sigma))
        elif isinstance(event, DiscreteLaplace):
            booked.append((event.kind, noise.laplace_scale(event.epsilon, 2)))
        elif isinstance(event, ExponentialMechanism):
            booked.append((event.kind, event.epsilon))
    assert drawn == booked
    spent = compose(transcript.events)
    assert spent.rho_pico <= plan.cost.rho_pico
    if plan.cost.epsilon_pure_pico is not None:
        assert spent.epsilon_pure_pico is not None
        assert spent.epsilon_pure_pico <= plan.cost.epsilon_pure_pico


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_the_protected_table_serves_every_mechanism_and_no_one_else(configuration: str) -> None:
    name, task = task_of(configuration)
    table = ProtectedTable.from_codes(PAIRS["xor"][0].astype(np.uint8), task.domain)
    plan = synthesizer(name).plan(task, ONE, 9)
    assert synthesizer(name).measure(table, plan, Journal()).rounds
    for look in (len, list, repr, lambda t: t.codes, lambda t: t.counts(("s",))):
        with pytest.raises(PrivateReadError):
            look(table)


class _Thief(Policy):
    """A policy that looks at the table by itself."""

    def __init__(self, look: Callable[[Any], Any]) -> None:
        self._look = look

    def absorb(self, turn: Any) -> None: ...

    def next(self, left: Any) -> Step | None:
        event = Gaussian(1000.0, 1, "theft")
        return Step("theft", (event,), self._look)


@pytest.mark.parametrize(
    "look",
    [
        lambda turn: turn._session._data.counts(("s",)),
        lambda turn: turn._session._data.counts_many([("s",), ("x",)]),
        lambda turn: len(turn._session._data),
        lambda turn: turn._session._data.codes,
        lambda turn: turn._session._data.gathered({"s": (0, 0)}),
        lambda turn: turn._session._whole.counts(("s",)),
        lambda turn: (turn.measure(("s",), "theft"), turn.measure(("x",), "again")),
        lambda turn: turn.measure_laplace(("s",), "theft"),
        lambda turn: turn.select_node([("x", ("s",))]),
        lambda turn: turn.select_root(("x", "s")),
        lambda turn: turn.select_edge("s", 2, 1, 2),
    ],
)
def test_a_round_can_do_nothing_but_what_it_has_journalled(
    look: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    name, task = task_of("mwem_pgm")
    mechanism = synthesizer(name)
    plan = mechanism.plan(task, ONE, 9)
    monkeypatch.setattr(type(mechanism), "_policy", lambda *arguments: _Thief(look))
    table = ProtectedTable.from_codes(PAIRS["xor"][0].astype(np.uint8), DOMAIN)
    with pytest.raises(CuSynError):
        mechanism.measure(table, plan, Journal())


def test_bins_are_looked_through_inside_a_journalled_round_only() -> None:
    """Also the recoding reads rows: it happens after `begin`, and its table is closed as well."""
    table = ProtectedTable.from_codes(PAIRS["xor"][0].astype(np.uint8), DOMAIN)
    begun: list[int] = []

    class Watching(Journal):
        def begin(self, round: int, events: Any) -> None:
            assert begun or session._data is table  # nothing was recoded before the first
            begun.append(round)
            super().begin(round, events)

    session = SpendingSession(table, Watching(), Fraction(10))
    event = DiscreteLaplace(0.5)
    with session.round("table", [event], {"x": (0, 0)}) as turn:
        assert session._data is not table
        assert session._data.domain == {"s": 2, "x": 1, "y": 2}
        for look in (lambda: session._data.counts(("x",)), lambda: len(session._data)):
            with pytest.raises(PrivateReadError):
                look()
        assert len(turn.measure_laplace(("s", "x"), "table").counts) == 2
    with session.round("table", [event]) as turn:
        assert session._data is table
        assert len(turn.measure_laplace(("s", "x"), "table").counts) == 4
    assert begun == [1, 2]


def test_a_pure_plan_admits_no_gaussian_and_no_more_epsilon_than_it_has() -> None:
    """Even where rho would suffice."""
    table = CountsTable(PAIRS["xor"][0], DOMAIN)
    for events in (
        [Gaussian(1000.0)],
        [DiscreteLaplace(0.75)],
        [DiscreteLaplace(0.25), ExponentialMechanism(0.5)],
    ):
        journal = Journal()
        session = SpendingSession(table, journal, Fraction(100), pure_ceiling=Fraction(7, 10))
        with pytest.raises(SpendingError, match="pure epsilon"), session.round("x", events):
            pass
        assert not journal.begun
    session = SpendingSession(table, Journal(), Fraction(100), pure_ceiling=Fraction(7, 10))
    session.burn([DiscreteLaplace(0.5)], 1)
    with pytest.raises(SpendingError), session.round("x", [DiscreteLaplace(0.25)]):
        pass


def test_only_the_spending_module_opens_or_counts_a_table() -> None:
    """No other line of the synthesis room names the doors of a protected table."""
    root = Path(synthesis.__file__).parent
    doors = {"spending", "counts_many", "gathered", "_exact", "_dependence", "_look_through"}
    found = {}
    for path in root.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        called = {
            node.func.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        }
        if called & doors:
            found[path.name] = called & doors
    assert set(found) == {"spending.py"}


def test_noise_is_drawn_in_one_module_and_seeded_nowhere() -> None:
    """OpenDP is imported by noise.py alone; nobody else under measurement draws at random."""
    root = Path(synthesis.__file__).parent
    users, generators = set(), set()
    for path in root.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "import opendp" in text:
            users.add(path.name)
        if "default_rng" in text or "numpy.random.seed" in text or "import random" in text:
            generators.add(path.name)
    assert users == {"noise.py"}
    assert generators == set()  # sampling is seeded by the sealed transcript, in base.py


def test_two_fresh_processes_differ() -> None:
    """Nothing set, nothing seeded: other noise, for every mechanism."""
    code = (
        "from include.accounting import ONE\n"
        "from include.synthesis import synthesizer\n"
        "from tests.audit.inputs import CONFIGURATIONS, DOMAIN, PAIRS, task_of\n"
        "from tests.synthesis.tables import CountsTable, Journal\n"
        "for one in ('mwem_pgm', 'aim', 'privbayes', 'csa'):\n"
        "    name, task = task_of(one)\n"
        "    plan = synthesizer(name).plan(task, ONE, 9)\n"
        "    table = CountsTable(PAIRS['xor'][0], DOMAIN)\n"
        "    print(synthesizer(name).measure(table, plan, Journal()).digest)\n"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert len(outputs[0]) == 4
    assert not set(outputs[0]) & set(outputs[1])
