"""synthesize: open the charge, measure, seal; then fit and sample as often as need be.

The order is the guarantee: what is spent is durable before a row is read (`open`, then `begin` of
each round), and the noisy answers are sealed before anything is made of them. Whatever happens
after the seal is post-processing: free, repeatable, and always of the same measurements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from include.accounting import event_from_dict, format_amount
from include.budget.errors import AlreadyOpened
from include.errors import CuSynError
from include.stages.asked import DeclarationChanged, require_as_asked
from include.stages.declared import require_registered
from include.stages.desk import Desk
from include.stages.ledger import require_witness, witness
from include.stages.reuse import earlier_transcripts
from include.stages.run import ReleaseRun, Workplace, paid_charge
from include.stages.sealed import sealed_transcript
from include.stages.stated import Held, require_known
from include.stages.store import protect, require_snapshot
from include.stages.table import make_table_once
from include.stages.task import budget_request, delta_exponent_of, schema_of, synthesis_task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from include.accounting import Event
    from include.budget.ledger import Ledger
    from include.budget.models import Charge, OpenedCharge
    from include.budget.reader import Entry
    from include.synthesis.plan import Plan
    from include.synthesis.transcript import Transcript


class BeingMeasured(CuSynError):
    """Another run has opened this charge and is still at work."""

    retry_helps = True


class Forfeited(CuSynError):
    """The charge was opened, its answers cannot be read, and nothing may be drawn again."""


@dataclass(frozen=True)
class Synthesized:
    """What the stage leaves behind.

    Privacy: post-processing.
    """

    charge_id: str
    transcript_digest: str
    words: str


class JournalledRounds:
    """The mechanism's round log: each spend in the ledger first, each answer on the desk first.

    Privacy: ledger only.
    """

    def __init__(
        self,
        ledger: Ledger,
        opened: OpenedCharge,
        desk: Desk,
        *,
        seen: Callable[[], object] = lambda: None,
    ) -> None:
        self._ledger, self._opened, self._desk = ledger, opened, desk
        self._seen: Callable[[], object] | None = seen

    def begin(self, round: int, events: Sequence[Event]) -> None:
        """Make a round's spend durable; only then may it read."""
        self._ledger.begin_round(self._opened, round, [event.to_dict() for event in events])
        if self._seen is not None:
            self._seen()
            self._seen = None

    def answer(self, round: int, payload: dict[str, Any]) -> None:
        """Make a round's noisy answer durable, then journal its digest."""
        self._ledger.answer_round(self._opened, round, self._desk.write_round(round, payload))


def synthesize(run: ReleaseRun, place: Workplace) -> Synthesized:
    """Measure what has been paid for, seal it, and make the synthetic table.

    Returns:
        The charge, the digest of its sealed transcript, and a line for the log.

    Raises:
        NothingPaid: no budget was granted for this release and period.
        DeclarationChanged, BeingMeasured, Forfeited: as named.
        CuSynError: the plan exceeds the grant, or a round failed; told without values.

    Source: CuSyn, Algorithm 3, with the plan corrected (docs/guarantee.md).

    Privacy: reads raw data through the spending primitives; every event is paid for beforehand.
    """
    charge = paid_charge(run, place)
    if charge.state == "forfeited":
        raise Forfeited(_forfeited(charge))
    require_as_asked(run, place, charge)
    desk = Desk(place.desk(charge.charge_id))
    plan = _plan(run, charge)
    if charge.transcript_digest is None:
        transcript = _measure(run, place, charge, plan, desk)
    else:
        transcript = sealed_transcript(charge, desk)
    make_table_once(run, place, charge, plan, transcript, desk)
    cost = format_amount(plan.cost.rho_pico)
    words = (
        f"charge {charge.charge_id} spent rho {cost} on {len(transcript.rounds)} rounds of "
        f"{plan.mechanism}; the noisy answers are sealed, the rest is post-processing."
    )
    return Synthesized(charge.charge_id, transcript.digest, words)


def _plan(run: ReleaseRun, charge: Charge) -> Plan:
    """Return the plan the charge was opened for, or make it for the granted epsilon."""
    from include.synthesis import synthesizer
    from include.synthesis.plan import Plan

    if charge.transcript_digest is None:
        _require_unchanged(run, charge)
    if charge.plan is not None:
        return Plan.from_dict(charge.plan)
    mechanism = synthesizer(charge.mechanism)
    return mechanism.plan(synthesis_task(run), charge.granted_pico, delta_exponent_of(run))


def _require_unchanged(run: ReleaseRun, charge: Charge) -> None:
    """Refuse to measure, or to go on measuring, what is not what was asked for."""
    if budget_request(run, None).digest() != charge.request_digest:
        raise DeclarationChanged(
            f"release {charge.release}: its declaration has changed since charge "
            f"{charge.charge_id} was reserved; restore the file, or ask again under a new period"
        )


def _measure(
    run: ReleaseRun, place: Workplace, charge: Charge, plan: Plan, desk: Desk
) -> Transcript:
    from include.synthesis import synthesizer

    if charge.snapshot_id is None:
        raise CuSynError(f"charge {charge.charge_id}: it names no snapshot to measure")
    require_registered(run, place)
    require_witness(place.settings)
    require_snapshot(place.settings, charge)
    earlier_transcripts(run, place, charge, plan)  # a lost one is told of before it is opened
    opened, resume_from = _open_or_resume(run, place, charge, plan, desk)
    table = protect(place.settings, charge.snapshot_id, schema_of(run), run.dataset)
    transcript = synthesizer(plan.mechanism).measure(
        table,
        plan,
        # Seen outside the database once the first round is begun, before a row is read: a ledger
        # restored to any moment before this is refused, and one restored to it burns that round.
        JournalledRounds(place.ledger, opened, desk, seen=lambda: witness(place)),
        earlier=earlier_transcripts(run, place, charge, plan),
        **resume_from,
    )
    desk.write(desk.transcript(transcript.digest), transcript.to_bytes())
    place.ledger.seal(opened, transcript.digest)
    return transcript


def _open_or_resume(
    run: ReleaseRun, place: Workplace, charge: Charge, plan: Plan, desk: Desk
) -> tuple[OpenedCharge, dict[str, Any]]:
    # The folder first: another run may be at work, and it journals before it writes.
    held = Held(set(desk.rounds()), desk.sealed_rounds())
    rounds = _journalled_rounds(place.reader.entries(charge.charge_id))
    begun = {turn.number for turn in rounds}
    answered = {turn.number for turn in rounds if turn.digest is not None}
    require_known(place, charge, held, begun, answered)
    if charge.state == "reserved":
        return _open(run, place, charge, plan), {}
    answers = _answers(rounds, desk)
    if answers is None:
        place.ledger.forfeit(charge.charge_id, "the noisy answers of its rounds cannot be read")
        raise Forfeited(_forfeited(charge))
    opened = place.ledger.resume(
        charge.charge_id, attempt=_attempt(run, charge), last_round=charge.rounds_answered
    )
    unanswered = [turn.events for turn in rounds if turn.number > charge.rounds_answered]
    return opened, {"resume_from": answers, "interrupted": unanswered}


def _open(run: ReleaseRun, place: Workplace, charge: Charge, plan: Plan) -> OpenedCharge:
    try:
        return place.ledger.open(
            charge.charge_id,
            plan=plan.to_dict(),
            cost=plan.cost,
            events=[event.to_dict() for event in plan.events],
            attempt=str(run.attempt),
        )
    except AlreadyOpened:
        if charge.key == run.key:
            raise
        raise _being_measured(charge) from None  # another run was quicker, a moment ago


def _being_measured(charge: Charge) -> BeingMeasured:
    return BeingMeasured(
        f"charge {charge.charge_id} is being measured by run {charge.run_id} of "
        f"{charge.dag_id}; wait for it"
    )


def _forfeited(charge: Charge) -> str:
    return (
        f"charge {charge.charge_id}: it was opened, but its noisy answers cannot be read; the "
        "budget stays spent. Release this data under a new period"
    )


@dataclass(frozen=True)
class _JournalledRound:
    number: int
    events: tuple[Event, ...]
    digest: str | None  # of its noisy answer; None: begun, never answered


def _journalled_rounds(entries: Sequence[Entry]) -> list[_JournalledRound]:
    answered = {
        entry.facts["round"]: entry.facts["digest"]
        for entry in entries
        if entry.kind == "answer_round"
    }
    return [
        _JournalledRound(
            number=entry.facts["round"],
            events=tuple(event_from_dict(event) for event in entry.facts["events"]),
            digest=answered.get(entry.facts["round"]),
        )
        for entry in entries
        if entry.kind == "begin_round"
    ]


def _answers(rounds: Sequence[_JournalledRound], desk: Desk) -> list[dict[str, Any]] | None:
    """Return the answers of all answered rounds, or None unless each is the journalled one."""
    answers = []
    for turn in rounds:
        if turn.digest is None:
            continue
        found = desk.read_round(turn.number)
        if found is None or found[1] != turn.digest:
            return None
        answers.append(found[0])
    return answers


def _attempt(run: ReleaseRun, charge: Charge) -> str:
    """Return the number under which this try may take the opened charge over.

    Airflow numbers the tries of one run. A charge opened by another run is taken over only when
    Airflow says that run is at work no more; should its process live on all the same, the fence
    stops it.
    """
    if charge.key == run.key:
        return str(run.attempt)
    if run.is_alive(charge.dag_id, charge.run_id):
        raise _being_measured(charge)
    return str(max(run.attempt, int(charge.attempt or 0) + 1))
