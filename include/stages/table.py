"""The synthetic table of a sealed transcript: made once, and named in the journal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from include.stages.ledger import witness
from include.stages.reuse import named_transcripts
from include.stages.stated import require_stated, stated_table
from include.stages.task import schema_of

if TYPE_CHECKING:
    import numpy.typing as npt

    from include.budget.models import Charge
    from include.stages.desk import Desk
    from include.stages.run import ReleaseRun, Workplace
    from include.synthesis.plan import Plan
    from include.synthesis.transcript import Transcript


def make_table_once(
    run: ReleaseRun,
    place: Workplace,
    charge: Charge,
    plan: Plan,
    transcript: Transcript,
    desk: Desk,
) -> None:
    """Make the table and name it in the journal; what nobody has named yet is made again.

    Before that the seal gets its witness outside the database: a ledger restored to any earlier
    moment is refused, so no other transcript can be measured while a release waits.

    Raises:
        DigestMismatch: the journal names another table than the one in the work folder.

    Privacy: post-processing.
    """
    over = charge.state in ("published", "withheld")
    named = over or stated_table(place, charge.charge_id) is not None
    if not named:
        witness(place)
        digest, beside = _make_table(run, place, plan, transcript, desk)
        place.ledger.state_table(charge.charge_id, digest, beside=beside)
    elif not desk.table.exists():
        _make_table(run, place, plan, transcript, desk)
    if not over:
        require_stated(place, charge, desk)


def _make_table(
    run: ReleaseRun, place: Workplace, plan: Plan, transcript: Transcript, desk: Desk
) -> tuple[str, dict[str, str]]:
    """Fit, sample and decode; a pure function of the transcript and public declarations.

    Returns:
        SHA-256 of the table, and of the files beside it by name, as they were made.
    """
    import io

    import numpy as np

    from include.data.constraints import draw_possible
    from include.data.encode import decode
    from include.synthesis import synthesizer
    from include.synthesis.errors import interest_errors
    from include.synthesis.plan import canonical_json
    from include.synthesis.transcript import noisy_rows

    mechanism = synthesizer(plan.mechanism)
    seed = bytes.fromhex(transcript.digest)
    earlier = named_transcripts(run, place, transcript.earlier)
    model = mechanism.fit(transcript, plan, earlier=earlier)
    rows = noisy_rows(transcript) if run.release.rows is None else run.release.rows
    schema, never = schema_of(run), run.dataset.constraints

    def draw(count: int, chosen: bytes) -> npt.NDArray[Any]:
        return mechanism.sample(model, count, chosen)

    codes = draw_possible(draw, rows, seed, schema, never)
    frame = decode(codes, schema, np.random.Generator(np.random.PCG64(list(seed))))
    buffer = io.BytesIO()
    np.save(buffer, codes, allow_pickle=False)
    codes_digest = desk.write(desk.codes, buffer.getvalue())
    errors = interest_errors(transcript, plan, model)
    errors_digest = desk.write(desk.errors, canonical_json([error.to_dict() for error in errors]))
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    # Last: its presence says that all is there.
    digest = desk.write(desk.table, buffer.getvalue())
    return digest, {desk.codes.name: codes_digest, desk.errors.name: errors_digest}
