"""Small inputs that broke comparable systems, at the level of the ledger."""

from __future__ import annotations

import os
import signal
import time
from fractions import Fraction

import pytest
from sqlalchemy import URL, Engine

from include.accounting.accountant import Cost
from include.accounting.amounts import ONE, AmountError, parse_amount
from include.accounting.events import event_from_dict
from include.budget.errors import AlreadyOpened, WrongState
from include.budget.ledger import Ledger
from include.budget.store import connect
from tests.budget.world import DIGEST, World, cost_of_events, gaussian_events, pico, pure, zcdp
from tests.budget.writers import FORK


@pytest.fixture
def additive(world: World) -> World:
    """A pool of 1 in the paper's additive currency."""
    world.population("one", accounting="epsilon", epsilon_pico=pico("1"))
    world.dataset("tens", "one")
    world.user("lab", "tens", "10", None)
    return world


@pytest.mark.parametrize(
    "text", ["-10", "-0.0", "NaN", "+inf", "-inf", "1e400", "0", "1_0", "１", True, 0.1, " 1", ""]
)
def test_what_is_no_amount_never_reaches_the_ledger(world: World, text: object) -> None:
    head = world.reader.head()
    with pytest.raises(AmountError):
        world.reserve(epsilon_pico=parse_amount(text, name="epsilon"))
    assert world.reader.head() == head


def test_ten_tenths_fill_a_pool_of_one_exactly(additive: World) -> None:
    for name in range(10):
        charge = additive.reserve(str(name), "0.1", pure, dataset="tens")
        assert charge.granted_pico == pico("0.1"), charge.reason
        additive.open(charge)
    assert additive.pool("one").remaining_epsilon == "0"
    assert additive.pool("one").spent_epsilon == "1"
    eleventh = additive.reserve("10", "0.1", pure, dataset="tens")
    assert eleventh.denied and eleventh.binding == "dataset_pool:one"
    additive.sound()


def test_a_then_b_is_b_then_a(world: World) -> None:
    def total(order: str, user: str) -> int:
        for name in order:
            world.opened(user + name, {"a": "0.3", "b": "0.7"}[name], requester=user)
        return world.pool(user).spent_pico

    assert total("ab", "lab") == total("ba", "press")


def test_measuring_again_on_a_sealed_charge_is_refused(world: World) -> None:
    sealed = world.sealed()
    with pytest.raises(WrongState):
        world.open(sealed, cost=zcdp(pico("1")))
    with pytest.raises(WrongState):
        world.ledger.resume(sealed.charge_id, attempt="2", last_round=0)


def test_a_death_between_measuring_and_sealing_is_paid_for(world: World, url: URL) -> None:
    charge = world.reserve()
    world.engine.dispose()

    def die() -> None:
        ledger = Ledger(connect(url))
        opened = ledger.open(charge.charge_id, plan={}, cost=charge.planned, events=[], attempt="1")
        ledger.begin_round(opened, 1, [])
        os.kill(os.getpid(), signal.SIGKILL)

    process = FORK.Process(target=die)
    process.start()
    process.join()
    spent = zcdp(pico("1")).rho_pico
    assert world.pool().spent_pico == spent
    with pytest.raises(AlreadyOpened):
        world.open(charge, attempt="2")
    again = world.ledger.resume(charge.charge_id, attempt="2", last_round=0)
    world.ledger.begin_round(again, 2, [])
    world.ledger.answer_round(again, 2, DIGEST)
    assert world.ledger.seal(again, DIGEST).state == "sealed"
    assert world.pool().spent_pico == spent
    world.sound()


def test_what_a_dry_run_prices_is_what_is_debited(world: World) -> None:
    events = gaussian_events(17.3, 4)
    price = cost_of_events(events)

    def planner(epsilon_pico: int) -> Cost:
        return price

    charge = world.reserve(planner=planner)
    world.open(charge, cost=price, events=events)
    assert world.pool().spent_pico == world.pool("lab").spent_pico == price.rho_pico


def test_what_is_charged_is_never_less_than_the_exact_sum(world: World) -> None:
    exact = Fraction(0)
    for number, sigma in enumerate([13.7, 19.1, 23.3, 29.9, 31.7]):
        events = gaussian_events(sigma, 3)
        cost = cost_of_events(events)
        charge = world.reserve(str(number), planner=lambda epsilon, cost=cost: cost)
        world.open(charge, cost=cost, events=events)
        exact += sum(event_from_dict(event).rho for event in events)
    assert exact * ONE <= world.pool().spent_pico < exact * ONE + 5


def test_a_release_that_failed_after_the_debit_is_shown_as_spent_and_unfinished(
    world: World,
) -> None:
    opened, sealed = world.opened("1"), world.sealed("2")
    unfinished = {
        state: [charge.charge_id for charge in world.reader.charges(state=state)]
        for state in ("opened", "sealed")
    }
    assert unfinished == {"opened": [opened.charge_id], "sealed": [sealed.charge_id]}
    assert world.reader.releases() == []


def _postings(world: World, count: int) -> list[float]:
    took = []
    for number in range(count):
        begun = time.perf_counter()
        charge = world.reserve(
            str(number), "0.0001", pure, dataset="tens", accept_at_least_pico=pico("0.0001")
        )
        world.open(charge)
        took.append(time.perf_counter() - begun)
    entries = world.reader.entries()
    journal = sum(
        amount
        for entry in entries
        for pool, account, amount in entry.postings
        if pool == "dataset:one:epsilon:1" and account == "spent"
    )
    assert journal == world.pool("one").spent_pico == count * pico("0.0001")
    return took


def _flat(took: list[float]) -> None:
    tenth = len(took) // 10
    early, late = sorted(took[tenth : 2 * tenth]), sorted(took[-tenth:])
    assert late[tenth // 4] < 3 * early[tenth // 4]  # a low quartile: other programs run too


def test_many_small_debits_add_up_exactly_and_take_the_same_time(additive: World) -> None:
    _flat(_postings(additive, 200))


@pytest.mark.slow
def test_ten_thousand_small_debits_fill_the_pool(sqlite: object, additive: World) -> None:
    if additive.engine.dialect.name == "postgresql":
        pytest.skip("one database is enough for the sum; the benchmark times both")
    _flat(_postings(additive, 10_000))
    assert additive.pool("one").remaining_epsilon == "0"
    assert additive.reserve("last", "0.0001", pure, dataset="tens").denied
    additive.sound()


def test_an_idle_engine_does_not_hold_the_file(engine: Engine, world: World) -> None:
    """Airflow writes to the same database: nothing of ours may stay locked between steps."""
    world.reserve()
    other = connect(engine.url)
    Ledger(other).register_population(
        "later",
        privacy_unit="person",
        epsilon_pico=pico("1"),
        delta_exponent=9,
        actor="steward",
    )
    other.dispose()
