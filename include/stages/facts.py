"""What a release says of its budget, its guarantee and its origin: from charge, plan and run."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from include.accounting import (
    ONE,
    Event,
    compose,
    epsilon_from_rho,
    format_amount,
    format_delta,
    parse_delta,
)
from include.quality.facts import (
    BudgetFacts,
    BurnPoint,
    PoolFacts,
    PrivacyFacts,
    PrivateBins,
    ReleaseFacts,
    Share,
    UnitBound,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from include.budget.models import Charge
    from include.budget.reader import LedgerReader, Pool
    from include.publishing.facts import LineageFacts
    from include.stages.run import ReleaseRun
    from include.synthesis.plan import Plan
    from include.synthesis.transcript import Transcript

HISTORY = 50  # the newest releases of a pool that a burn-down shows

STRICT = "that every row passed validation (the dataset is declared strict)"

PURPOSES = {
    "total": "row count",
    "selected": "general",
    "adaptive rounds": "general",
    "selection": "selection",
    "interest": "interest",
    "one-way": "one-way",
    "bins": "edges of bins",
}

MECHANISM_WORDS = {
    "mwem_pgm": "MWEM-PGM with interest queries (CuSyn, Algorithm 3, with the plan corrected)",
    "csa_privbayes": "CSAPrivBayes (Chen), every step that reads the data made to pay",
    "privbayes": "PrivBayes (Zhang et al. 2017) with score R under add/remove",
    "aim": "AIM with interest queries (McKenna et al. 2022; CuSyn)",
}


def privacy_facts(
    run: ReleaseRun, charge: Charge, plan: Plan, transcript: Transcript | None = None
) -> PrivacyFacts:
    """State the claim: what is protected, how strongly, by what, and what is not.

    With the transcript a network mechanism also states its attribute-level figure, and the bins
    whose edges it has selected.

    Privacy: ledger only.
    """
    pure = plan.cost.epsilon_pure_pico
    unprotected = ["that this release was made, its schedule, and everything declared in its files"]
    if run.dataset.strict:
        unprotected.append(STRICT)
    return PrivacyFacts(
        epsilon=format_amount(charge.granted_pico),
        delta=format_delta(plan.delta_exponent) if pure is None else "0",
        privacy_unit=run.dataset.privacy_unit.what,
        mechanism=plan.mechanism,
        rho=format_amount(plan.cost.rho_pico),
        epsilon_pure=None if pure is None else format_amount(pure),
        max_rows=run.dataset.max_rows,
        mechanism_words=MECHANISM_WORDS.get(plan.mechanism, plan.mechanism),
        unprotected=tuple(unprotected),
        row_count_rule=row_count_rule(run.release.rows),
        attribute_level=_attribute_level(plan, transcript),
        private_bins=_private_bins(run, plan, transcript),
        bounds=tuple(
            UnitBound(name, binding.max_rows, binding.id_columns)
            for name, binding in run.dataset.bindings.items()
        ),
    )


def row_count_rule(rows: int | None) -> str:
    """Say where the number of synthetic rows comes from.

    Privacy: ledger only.
    """
    if rows is None:
        return "from the noisy measurements"
    return f"{rows}, a public number declared by the steward"


def _private_bins(run: ReleaseRun, plan: Plan, transcript: Transcript | None) -> PrivateBins | None:
    from include.quality.gather import private_bins_from
    from include.stages.task import schema_of
    from include.synthesis import synthesizer

    if transcript is None:
        return None
    bins = synthesizer(plan.mechanism).bins(transcript, plan)
    paid = compose([event for event in plan.events if event.label == "bins"])
    if plan.cost.epsilon_pure_pico is None:  # no part of a claim with delta is pure by itself
        paid = replace(paid, epsilon_pure_pico=None)
    return private_bins_from(schema_of(run), bins, paid)


def _attribute_level(plan: Plan, transcript: Transcript | None) -> dict[str, str] | None:
    from include.synthesis import synthesizer
    from include.synthesis.mechanisms.csa_privbayes import PrivBayes

    mechanism = synthesizer(plan.mechanism)
    if transcript is None or not isinstance(mechanism, PrivBayes):
        return None
    loss = mechanism.attribute_loss(transcript, plan)
    return None if loss is None else loss.to_dict()


def release_facts(run: ReleaseRun, sealed_at: str) -> ReleaseFacts:
    """Say which release this is; its time is that of the seal, the same on every retry.

    Privacy: ledger only.
    """
    return ReleaseFacts(
        release=run.release.release,
        period=run.period,
        requester=run.release.requester,
        created=sealed_at,
        title=run.release.title or "",
        description=run.release.description or "",
        supersedes=run.release.supersedes,
    )


def budget_facts(charge: Charge, reader: LedgerReader, events: Iterable[Event]) -> BudgetFacts:
    """Say what was asked and granted, what bound it, and how the pools stand.

    Privacy: ledger only.
    """
    # A user's pool is access control, not privacy: it stays inside.
    charged = [
        pool
        for pool in reader.pools()
        if pool.pool_id in charge.amounts_pico and pool.kind != "user"
    ]
    earlier = [c for c in reader.charges(dataset=charge.dataset) if _counts(c, charge)]
    return BudgetFacts(
        requested_epsilon=format_amount(charge.requested_pico),
        granted_epsilon=format_amount(charge.granted_pico),
        accept_at_least_epsilon=format_amount(charge.accept_at_least_pico),
        binding=charge.binding,
        reason=charge.reason,
        pools=tuple(_pool(pool, charge, earlier) for pool in charged),
        shares=_shares(events),
    )


def lineage_facts(run: ReleaseRun, charge: Charge) -> LineageFacts:
    """Say how the release came about, down to the ledger entry that a recipient can look for.

    Privacy: ledger only.
    """
    from include.publishing.facts import LineageFacts

    assert charge.sealed_seq is not None and charge.sealed_hash is not None
    return LineageFacts(
        charge_id=charge.charge_id,
        entry_seq=charge.sealed_seq,
        entry_hash=charge.sealed_hash,
        transcript_digest=charge.transcript_digest or "",
        plan_digest=charge.plan_digest or "",
        dag_id=charge.dag_id,
        run_id=charge.run_id,
        **run.lineage,
    )


def _counts(other: Charge, charge: Charge) -> bool:
    spent = other.state not in ("denied", "void", "reserved")
    return spent and other.decided_seq <= charge.decided_seq


def _pool(pool: Pool, charge: Charge, earlier: Sequence[Charge]) -> PoolFacts:
    delta = parse_delta(pool.delta, name="delta")

    def epsilon(amount_pico: int) -> str:
        zcdp = pool.accounting == "zcdp"
        return format_amount(epsilon_from_rho(amount_pico, delta) if zcdp else amount_pico)

    here = charge.amounts_pico[pool.pool_id]
    before = pool.spent_pico - here
    return PoolFacts(
        name=pool.owner,
        kind=pool.kind,
        accounting=pool.accounting,
        cap_pico=pool.cap_pico,
        spent_before_pico=before,
        release_pico=here,
        total_epsilon=pool.epsilon,
        spent_before_epsilon=epsilon(before),
        spent_after_epsilon=epsilon(pool.spent_pico),
        remaining_epsilon=pool.largest_release_epsilon,
        held_pico=pool.held_pico,
        history=_history(pool, earlier, epsilon),
    )


def _history(pool: Pool, earlier: Sequence[Charge], epsilon: Any) -> tuple[BurnPoint, ...]:
    charged = [c for c in reversed(earlier) if pool.pool_id in c.amounts_pico]
    spent, points = 0, []
    for charge in charged:
        spent += charge.amounts_pico[pool.pool_id]
        points.append(BurnPoint(f"{charge.release} {charge.period}", spent, epsilon(spent)))
    return tuple(points[-HISTORY:])


def _shares(events: Iterable[Event]) -> tuple[Share, ...]:
    rho: dict[str, Fraction] = defaultdict(Fraction)
    for event in events:
        rho[PURPOSES.get(event.label, event.label)] += event.rho
    parts = {purpose: -int(-amount * ONE // 1) for purpose, amount in rho.items()}
    return tuple(Share(purpose, pico, format_amount(pico)) for purpose, pico in parts.items())
