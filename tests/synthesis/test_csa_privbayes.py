"""CSAPrivBayes and PrivBayes: what is special to networks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.accounting import (
    ONE,
    AdaptiveBlock,
    DiscreteLaplace,
    ExponentialMechanism,
    Gaussian,
    compose,
    cost_in_currency,
)
from include.errors import CuSynError
from include.synthesis import Plan, PlanError, SynthesisTask, TaskError, cost_of, synthesizer
from include.synthesis.mechanisms.csa_privbayes import CsaPrivBayes, PrivBayes
from include.synthesis.mechanisms.csa_privbayes.budget import divide_tables, short_epsilon
from include.synthesis.mechanisms.csa_privbayes.consistency import (
    Table,
    clipped,
    consistent,
    margin,
)
from include.synthesis.mechanisms.csa_privbayes.model import NetworkModel, network_nodes
from include.synthesis.mechanisms.csa_privbayes.policy import NetworkPolicy
from include.synthesis.mechanisms.csa_privbayes.structure import (
    candidates,
    merged_tables,
    table_weights,
)
from include.synthesis.transcript import Round
from tests.synthesis.tables import CountsTable, Journal

DOMAIN = {"a": 2, "b": 3, "c": 4, "d": 2, "e": 2}


def task(domain: Mapping[str, int] = DOMAIN, **options: Any) -> SynthesisTask:
    return SynthesisTask.build(domain, options={"sensitive": "d"} | options)


def checked(**options: Any) -> Any:
    return CsaPrivBayes().settings(task(**options))


def table(rows: int = 4000) -> CountsTable:
    rng = np.random.default_rng(11)
    a = rng.integers(0, 2, rows)
    b = (a + (rng.random(rows) < 0.2)) % 3
    c = (b + rng.integers(0, 2, rows)) % 4
    d = (a ^ (rng.random(rows) < 0.1)).astype(np.int64)
    e = (rng.random(rows) < 0.3).astype(np.int64)
    return CountsTable(np.stack([a, b, c, d, e], axis=1), DOMAIN)


# Faults: one plain sentence each, before anything is spent.


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"sensitive": None}, "needs to know the sensitive attribute"),
        ({"sensitive": "z"}, "'z' is not modelled"),
        ({"sensitive": 3}, "name of one column"),
        ({"degree": 5}, "degree is 5, and of 5 attributes each has at most 4 others"),
        ({"degree": 0}, "from 1 to 8"),
        ({"theta": 0.1}, "theta needs `regions: noisy_information`"),
        (
            {"theta": -0.1, "regions": "noisy_information"},
            "theta is -0.1; write a number from 0 to 10",
        ),
        ({"theta": 2, "regions": "noisy_information"}, "all would be in region B"),
        ({"theta": 0, "regions": "noisy_information"}, "everything is in region A"),
        ({"sensitive_weight": 0}, "sensitive_weight is 0; write a number from 0.01 to 1"),
        ({"sensitive_weight": 1.5}, "sensitive_weight is 1.5; write a number from 0.01"),
        ({"sensitive_weight": float("nan")}, "sensitive_weight is nan"),
        ({"sensitive_weight": 0.5, "force_sensitive_parent": True}, "everything is in region A"),
        ({"sensitive_weight": 0.5, "degree": 4}, "everything is in region A"),
        ({"sensitive_weight": 0.5, "also_sensitive": ["a", "b", "c", "e"]}, "everything is in"),
        ({"also_sensitive": ["z"]}, "'z', which is not modelled"),
        ({"force_sensitive_parent": True, "root": "selected"}, "remove `root: selected`"),
        ({"force_sensitive_parent": "yes"}, "true or false"),
        ({"structure_share": 0.85, "count_share": 0.2}, "structure 0.85, total 0.2"),
        ({"noise": "cauchy"}, "laplace or gaussian"),
        ({"regions": "raw"}, "structure or noisy_information"),
        ({"rounds": 3}, "no option 'rounds'"),
    ],
)
def test_faults_are_one_sentence_before_spending(options: dict[str, Any], fault: str) -> None:
    for ask in (
        lambda: CsaPrivBayes().plan(task(**options), ONE, 9),
        lambda: cost_of(task(**options), "csa_privbayes", 9),
    ):
        with pytest.raises(TaskError) as caught:
            ask()
        assert fault in str(caught.value)
        assert str(caught.value).endswith(".")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"interest": [["a", "b"]]}, "remove the interest queries"),
        ({"workload": [["a", "b"]]}, "remove the workload"),
    ],
)
def test_what_a_network_does_not_measure_is_refused(changes: dict[str, Any], fault: str) -> None:
    asked = SynthesisTask.build(DOMAIN, options={"sensitive": "d"}, **changes)
    with pytest.raises(TaskError, match=fault):
        CsaPrivBayes().plan(asked, ONE, 9)


def test_one_attribute_and_a_constant_sensitive_attribute_are_refused() -> None:
    with pytest.raises(TaskError, match="at least two"):
        CsaPrivBayes().plan(task({"d": 2}), ONE, 9)
    with pytest.raises(TaskError, match="single level"):
        CsaPrivBayes().plan(task({"a": 2, "d": 1}), ONE, 9)


def test_a_parent_set_above_the_memory_bound_is_refused_with_the_number() -> None:
    domain = dict.fromkeys("abcd", 50) | {"d": 50, "e": 50}
    with pytest.raises(PlanError, match=r"312500000 cells \(2.38e\+03 MB\) and the bound is 80 MB"):
        CsaPrivBayes().plan(task(domain, degree=4), ONE, 9)
    wide = task({"d": 5000, "x": 5000}, force_sensitive_parent=True)
    with pytest.raises(PlanError, match="25000000 cells"):
        CsaPrivBayes().plan(wide, ONE, 9)
    plan = CsaPrivBayes().plan(task(domain), ONE, 9)  # smaller parent sets are then chosen
    codes = np.random.default_rng(0).integers(0, 50, (300, 5))
    assert CsaPrivBayes().measure(CountsTable(codes, domain), plan, Journal()).rounds


def test_an_attribute_that_is_all_null_is_no_fault() -> None:
    """One level that holds every row, or the only level there is: both work, as for neighbours."""
    domain = {"s": 2, "null": 3, "only": 1}
    asked = SynthesisTask.build(domain, options={"sensitive": "s"})
    plan = CsaPrivBayes().plan(asked, ONE, 9)
    codes = np.stack([np.arange(60) % 2, np.full(60, 2), np.zeros(60, int)], axis=1)
    for some in (codes, codes[:1], codes[:0]):
        transcript = CsaPrivBayes().measure(CountsTable(some, domain), plan, Journal())
        model = CsaPrivBayes().fit(transcript, plan)
        assert CsaPrivBayes().sample(model, 7, b"").shape == (7, 3)


def test_two_attributes_make_one_table_of_one_region() -> None:
    asked = task({"a": 3, "d": 2}, public_rows=4000)
    assert CsaPrivBayes().settings(asked).weight == 1
    plan = CsaPrivBayes().plan(asked, ONE, 9)
    transcript = CsaPrivBayes().measure(
        CountsTable(np.zeros((40, 2)), {"a": 3, "d": 2}), plan, Journal()
    )
    assert [turn.purpose for turn in transcript.rounds] == ["structure", "table"]


# The plan.


def test_a_pure_plan_divides_the_grant_as_stated() -> None:
    plan = CsaPrivBayes().plan(task(public_rows=4000), ONE, 9)
    selections = [event for event in plan.events if isinstance(event, ExponentialMechanism)]
    (block,) = (event for event in plan.events if isinstance(event, AdaptiveBlock))
    assert len(selections) == 4
    assert float(sum(event.epsilon_pure for event in selections)) == pytest.approx(0.3)
    assert float(block.epsilon_pure or 0) == pytest.approx(0.7)
    assert plan.cost.epsilon_pure_pico is not None
    assert ONE - 10**4 <= plan.cost.epsilon_pure_pico <= ONE
    assert cost_in_currency(plan.cost, "epsilon", 9) == plan.cost.epsilon_pure_pico
    assert cost_in_currency(plan.cost, "zcdp", 9) == plan.cost.rho_pico


def test_every_part_that_reads_data_pays() -> None:
    options = {"root": "selected", "regions": "noisy_information", "theta": 0.05}
    plan = CsaPrivBayes().plan(task(**options), ONE, 9)
    by_label: dict[str, Fraction] = {}
    for event in plan.events:
        pure = event.epsilon_pure
        assert pure is not None
        by_label[event.label] = by_label.get(event.label, Fraction(0)) + pure
    shares = {label: round(float(amount), 6) for label, amount in by_label.items()}
    assert shares == {"total": 0.02, "root": 0.05, "structure": 0.3, "region": 0.1, "table": 0.53}


def test_ten_binary_tables_cost_what_was_computed_by_hand() -> None:
    """9 selections and d - k tables at epsilon 1.6: sums of e^2 / 8 and e tanh(e / 2)."""
    domain = {f"x{i}": 2 for i in range(9)} | {"d": 2}
    options = {"sensitive_weight": 1, "degree": 3, "public_rows": 10**6}
    plan = CsaPrivBayes().plan(task(domain, **options), 16 * ONE // 10, 9)
    select, each = 0.48 / 9, 1.12 / 7
    by_hand = 9 * select**2 / 8 + 7 * each * np.tanh(each / 2)
    assert plan.cost.rho_pico / ONE == pytest.approx(by_hand, rel=1e-6)


def test_gaussian_plans_claim_the_grant_with_delta() -> None:
    plan = CsaPrivBayes().plan(task(noise="gaussian"), ONE, 9)
    assert plan.cost.epsilon_pure_pico is None
    assert plan.cost.rho_pico <= 14973057673
    transcript = CsaPrivBayes().measure(table(), plan, Journal())
    kinds = {event.kind for event in transcript.events}
    assert kinds == {"gaussian", "exponential_mechanism"}
    assert CsaPrivBayes().attribute_loss(transcript, plan) is None


def test_cost_never_falls_as_epsilon_grows() -> None:
    """Negotiation bisects it: also where the largest useful parent set changes."""
    for options in ({}, {"public_rows": 500}, {"noise": "gaussian"}, {"sensitive_weight": 0.05}):
        price = cost_of(task(**options), "csa_privbayes", 9)
        costs = [price(step * ONE // 50) for step in range(1, 250)]
        rhos = [cost.rho_pico for cost in costs]
        assert rhos == sorted(rhos)
        pures = [cost.epsilon_pure_pico or 0 for cost in costs]
        assert pures == sorted(pures)


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["1", "1/2", "1/20"]), min_size=1, max_size=12),
    st.fractions(Fraction(1, 1000), 50),
    st.fractions(Fraction(1, 10**6), 5),
)
def test_tables_get_the_largest_budgets_that_fit_both_currencies(
    texts: list[str], epsilon: Fraction, rho: Fraction
) -> None:
    weights = [Fraction(text) for text in texts]
    found = divide_tables(checked(), weights, epsilon, rho)
    events = [DiscreteLaplace(one) for one in found]
    spent = sum((event.epsilon_pure or Fraction(0) for event in events), Fraction(0))
    assert spent <= epsilon
    assert sum((event.rho for event in events), Fraction(0)) <= rho
    for one, weight in zip(found, weights, strict=True):
        assert one / float(weight) == pytest.approx(found[0] / float(weights[0]), rel=1e-7)
    more = [DiscreteLaplace(one * (1 + 1e-6)) for one in found]
    over = sum((event.epsilon_pure or Fraction(0) for event in more), Fraction(0)) > epsilon
    assert over or sum((event.rho for event in more), Fraction(0)) > rho


def test_gaussian_tables_share_rho_by_their_weights() -> None:
    weights = [Fraction(1), Fraction(1, 2)]
    sigmas = divide_tables(checked(noise="gaussian"), weights, None, Fraction(1, 10))
    assert sum(Gaussian(sigma).rho for sigma in sigmas) <= Fraction(1, 10)
    assert sigmas[1] / sigmas[0] == pytest.approx(2, rel=1e-6)


@given(st.fractions(Fraction(1, 10**9), 1000))
def test_short_epsilons_are_never_above(value: Fraction) -> None:
    short = Fraction(short_epsilon(value))
    assert value * (1 - Fraction(1, 10**8)) <= short <= value


def test_a_network_that_noise_would_swamp_is_warned_of_before_spending() -> None:
    """176 rows, 80 columns, epsilon 1; with as many rows as it asks for there is no warning."""
    domain = {f"x{i}": 3 for i in range(79)} | {"d": 2}
    for options in ({}, {"noise": "gaussian"}, {"force_sensitive_parent": True}):
        asked = SynthesisTask.build(domain, options={"sensitive": "d"} | options, expected_rows=176)
        plan = CsaPrivBayes().plan(asked, ONE, 9)
        (warning,) = plan.warnings
        assert "swamp every pair of columns: with about 176 rows" in warning
        assert plan.predictions[0].expected_tv is not None
        assert 0.1 < plan.predictions[0].expected_tv <= 1
        assert json.loads(json.dumps(plan.to_dict())) == Plan.from_dict(plan.to_dict()).to_dict()
    usable = int(
        float(
            CsaPrivBayes().plan(task(domain, public_rows=176), ONE, 9).predictions[0].usable_epsilon
            or 0
        )
        * ONE
    )
    assert not CsaPrivBayes().plan(task(domain, public_rows=176), usable, 9).warnings
    assert not CsaPrivBayes().plan(task(), ONE, 9).warnings


# Structure, tables, regions.


def test_parent_sets_are_maximal_and_useful() -> None:
    pairs = candidates(checked(degree=2), ["d", "a", "c"], most_cells=12)
    assert [parents for child, parents in pairs if child == "e"] == [("a", "d"), ("c",)]
    # b has three cells: with four for its parents only the pair of binary ones, or c alone.
    assert [parents for child, parents in pairs if child == "b"] == [("a", "d"), ("c",)]


def test_without_a_useful_table_an_attribute_stands_alone() -> None:
    pairs = candidates(checked(), ["d", "a"], most_cells=3)
    assert pairs == [("b", ()), ("c", ()), ("e", ())]


def test_the_sensitive_attribute_is_forced_into_every_parent_set() -> None:
    forced = checked(force_sensitive_parent=True, degree=2)
    for most in (0.1, 12, 1e9):
        pairs = candidates(forced, ["d", "a", "b"], most_cells=most)
        assert {child for child, _ in pairs} == {"c", "e"}
        assert all("d" in parents for _, parents in pairs)


def test_many_attributes_lower_the_degree_of_a_step() -> None:
    domain = {f"x{i}": 2 for i in range(60)} | {"d": 2}
    settings = CsaPrivBayes().settings(task(domain, degree=3))
    pairs = candidates(settings, [f"x{i}" for i in range(30)], most_cells=1e9)
    assert len(pairs) <= 10_000
    assert {len(parents) for _, parents in pairs} == {1}


def test_tables_inside_others_are_merged_and_lie_in_the_region_of_any_part() -> None:
    settings = checked()
    nodes = [("d", ()), ("a", ("d",)), ("b", ("a", "d")), ("c", ("b",)), ("e", ())]
    tables = merged_tables(settings, nodes)
    assert tables == [("a", "b", "d"), ("b", "c"), ("e",)]
    assert table_weights(settings, nodes, tables, None) == [1, 0, 0]
    assert table_weights(settings, nodes, tables, frozenset({"c"})) == [0, 1, 0]
    assert table_weights(settings, nodes, tables, frozenset({"a"})) == [1, 0, 0]
    tagged = checked(also_sensitive=["e"])
    assert table_weights(tagged, nodes, tables, None) == [1, 0, 1]


def test_region_a_gets_its_weight_in_epsilon() -> None:
    plan = CsaPrivBayes().plan(task(sensitive_weight=0.25, degree=1, public_rows=4000), ONE, 9)
    transcript = CsaPrivBayes().measure(table(), plan, Journal())
    tables = [turn for turn in transcript.rounds if turn.purpose == "table"]
    near = {turn.events[0].epsilon_pure for turn in tables if "d" in turn.marginals[0].clique}
    far = {turn.events[0].epsilon_pure for turn in tables if "d" not in turn.marginals[0].clique}
    assert near
    assert far
    for one in near:
        for other in far:
            assert float(one / other) == pytest.approx(0.25, rel=1e-6)  # type: ignore[operator]


def test_noisy_regions_find_the_attribute_that_tells() -> None:
    options = {"regions": "noisy_information", "theta": 0.2, "degree": 1, "public_rows": 4000}
    plan = CsaPrivBayes().plan(task(**options), 20 * ONE, 9)
    transcript = CsaPrivBayes().measure(table(), plan, Journal())
    amounts: dict[tuple[str, ...], float] = {
        turn.marginals[0].clique: float(turn.events[0].epsilon_pure or 0)
        for turn in transcript.rounds
        if turn.purpose == "table"
    }
    light = {clique for clique, one in amounts.items() if one < 0.9 * max(amounts.values())}
    assert any("a" in clique for clique in light)  # a tells 0.3 nats of d, e nothing
    assert not any("e" in clique for clique in light)


# After the fact.


def test_the_attribute_figure_counts_what_reads_it_twice() -> None:
    plan = CsaPrivBayes().plan(task(degree=1, public_rows=4000), ONE, 9)
    transcript = CsaPrivBayes().measure(table(), plan, Journal())
    expected = Fraction(0)
    for turn in transcript.rounds:
        holds = any("d" in item.clique for item in turn.marginals) or turn.purpose == "structure"
        expected += sum((e.epsilon_pure or Fraction(0)) for e in turn.events) * holds
    loss = CsaPrivBayes().attribute_loss(transcript, plan)
    assert loss is not None
    assert 0 <= loss.ex_post_pico - 2 * expected * ONE < 1
    assert loss.ex_post_pico < loss.a_priori_pico
    assert loss.a_priori_pico == 2 * (plan.cost.epsilon_pure_pico or 0)
    assert "no second guarantee" in loss.to_dict()["not"]
    assert PrivBayes().attribute_loss(*_privbayes()) is None


def test_an_interrupted_round_counts_in_full() -> None:
    plan = CsaPrivBayes().plan(task(degree=1, public_rows=4000), ONE, 9)
    first = Journal(crash_in=6)
    with pytest.raises(KeyboardInterrupt):
        CsaPrivBayes().measure(table(), plan, first)
    second = Journal()
    second.begun = dict(first.begun)
    transcript = CsaPrivBayes().measure(
        table(), plan, second, resume_from=first.answers, interrupted=[first.begun[6]]
    )
    loss = CsaPrivBayes().attribute_loss(transcript, plan)
    assert loss is not None
    burned = sum(event.epsilon_pure or Fraction(0) for event in first.begun[6])
    assert loss.ex_post_pico >= 2 * burned * ONE
    assert loss.ex_post_pico <= loss.a_priori_pico


def _privbayes() -> Any:
    asked = SynthesisTask.build(DOMAIN)
    plan = PrivBayes().plan(asked, ONE, 9)
    return PrivBayes().measure(table(), plan, Journal()), plan


@pytest.mark.parametrize("root", ["sensitive", "selected"])
def test_interrupted_anywhere_it_ends_within_both_currencies(root: str) -> None:
    """The pure ceiling holds as well as rho; parents come before their children."""
    asked = task(root=root, regions="noisy_information", theta=0.05)
    plan = CsaPrivBayes().plan(asked, ONE, 9)
    whole = CsaPrivBayes().measure(table(), plan, Journal())
    for crash in range(1, len(whole.rounds) + 1):
        first = Journal(crash_in=crash)
        try:
            CsaPrivBayes().measure(table(), plan, first)
        except KeyboardInterrupt:
            pass
        else:
            continue
        second = Journal()
        second.begun = dict(first.begun)
        transcript = CsaPrivBayes().measure(
            table(), plan, second, resume_from=first.answers, interrupted=[first.begun[crash]]
        )
        spent = compose(event for events in second.begun.values() for event in events)
        assert spent.epsilon_pure_pico is not None
        assert plan.cost.epsilon_pure_pico is not None
        assert spent.epsilon_pure_pico <= plan.cost.epsilon_pure_pico
        assert spent.rho_pico <= plan.cost.rho_pico
        placed: set[str] = set()
        for child, parents in network_nodes(CsaPrivBayes().settings(asked), transcript):
            assert set(parents) <= placed
            placed.add(child)
        assert placed == set(DOMAIN)
        model = CsaPrivBayes().fit(transcript, plan)
        assert CsaPrivBayes().sample(model, 50, b"").shape == (50, 5)


# Fit and sample.


@given(
    st.lists(st.floats(-50, 50), min_size=1, max_size=30),
    st.floats(1, 1000),
)
def test_clipping_is_the_nearest_table_of_that_sum(values: list[float], total: float) -> None:
    found = clipped(np.array(values), total)
    assert found.min() >= 0
    assert found.sum() == pytest.approx(total)
    kept = found > 0
    shifts = (np.array(values) - found)[kept]
    assert np.ptp(shifts) <= 1e-6  # the same is taken from every cell that stays
    if not kept.all():
        assert np.array(values)[~kept].max() <= shifts.max() + 1e-6


def test_tables_agree_on_what_they_share() -> None:
    rng = np.random.default_rng(2)
    domain = {"a": 2, "b": 3, "c": 4}
    tables = [
        Table(clique, rng.normal(40, 9, [domain[name] for name in clique]), variance)
        for clique, variance in ((("a", "b"), 4.0), (("b", "c"), 1.0), (("a", "b", "c"), 9.0))
    ]
    consistent(tables, domain, 300.0)
    for table in tables:
        assert table.values.min() >= 0
        assert table.values.sum() == pytest.approx(300)
    assert np.allclose(margin(tables[0], ("b",)), margin(tables[1], ("b",)), atol=0.5)
    assert np.allclose(margin(tables[0], ("a", "b")), margin(tables[2], ("a", "b")), atol=0.5)


def _random_network() -> NetworkModel:
    rng = np.random.default_rng(8)
    nodes = [("d", ()), ("a", ("d",)), ("b", ("a", "d")), ("c", ("b", "d")), ("e", ("a", "c"))]
    conditionals = []
    for child, parents in nodes:
        shape = [DOMAIN[name] for name in parents]
        conditionals.append(rng.dirichlet(np.ones(DOMAIN[child]), size=shape or None))
    return NetworkModel(DOMAIN, nodes, conditionals, 1000.0)


def test_marginals_are_those_of_the_joint_distribution() -> None:
    model = _random_network()
    joint = np.einsum("d,da,adb,bdc,ace->abcde", *model._conditionals)
    letters = "abcde"
    for clique in ("a", "ce", "eb", "dac", "abcde"):
        expected = np.einsum(f"{letters}->{clique}", joint).reshape(-1) * 1000
        assert np.allclose(model.marginal(tuple(clique)), expected)
    with pytest.raises(CuSynError, match="unknown"):
        model.marginal(("a", "zz"))


def test_rows_follow_the_network() -> None:
    model = _random_network()
    rows = model.sample(200_000, np.random.default_rng(0))
    counted = CountsTable(rows, DOMAIN)
    with counted.spending():
        for clique in (("a", "b"), ("c", "e"), ("d", "e"), ("a", "c", "d")):
            shown = counted.counts(clique) / 200_000
            assert np.abs(shown - model.marginal(clique) / 1000).sum() < 0.02


@pytest.mark.parametrize("options", [{}, {"fit": "pgm"}, {"noise": "gaussian"}, {"degree": 1}])
def test_with_a_large_budget_the_tables_come_out_close(options: dict[str, Any]) -> None:
    plan = CsaPrivBayes().plan(task(**options), 50 * ONE, 9)
    data = table()
    transcript = CsaPrivBayes().measure(data, plan, Journal())
    model = CsaPrivBayes().fit(transcript, plan)
    with data.spending():
        for clique in (("a", "d"), ("a", "b"), ("b", "c")):
            exact = data.counts(clique) / 4000
            assert np.abs(model.marginal(clique) / model.total - exact).sum() / 2 < 0.03


def test_parents_are_chosen_so_that_a_graphical_model_fits_its_memory() -> None:
    """Joining b and e would tie four attributes of 24 levels together: 2.5 MB."""
    domain = dict.fromkeys("abcef", 24) | {"d": 2}
    kept = {}
    for fit in ("network", "pgm"):
        asked = task(domain, fit=fit, degree=2, public_rows=10**6, max_model_mb=1)
        settings = CsaPrivBayes().settings(asked)
        policy = NetworkPolicy(settings, CsaPrivBayes().plan(asked, ONE, 9).parameters)
        chosen = (("a", "d"), ("b", "a"), ("c", "a", "b"), ("e", "a", "c"))
        for number, choice in enumerate(chosen, 1):
            policy.absorb(Round(number, "structure", (), (), choices=(choice,)))
        kept[fit] = {tuple(sorted(parents)) for _, parents in policy._candidates()}
    assert ("b", "e") in kept["network"]
    assert ("b", "e") not in kept["pgm"]
    assert {("a", "c"), ("a", "b"), ("a", "e")} <= kept["pgm"]


def test_names_are_registered() -> None:
    assert isinstance(synthesizer("csa_privbayes"), CsaPrivBayes)
    assert type(synthesizer("privbayes")) is PrivBayes
