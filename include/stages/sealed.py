"""The sealed transcript of a charge, read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from include.errors import CuSynError
from include.stages.desk import Desk

if TYPE_CHECKING:
    from include.budget.models import Charge
    from include.synthesis.transcript import Transcript


def sealed_transcript(charge: Charge, desk: Desk) -> Transcript:
    """Read a sealed transcript back and check that it is the one the ledger knows.

    Raises:
        CuSynError: it is missing, cannot be read, or is another one; names charge and file.

    Privacy: post-processing.
    """
    from include.synthesis.transcript import Transcript, TranscriptError

    sealed = desk.transcript(charge.transcript_digest or "")
    fault = "is not the one that was sealed"
    try:
        transcript = Transcript.from_bytes(sealed.read_bytes())
    except FileNotFoundError:
        fault = "is missing"
    except (OSError, TranscriptError):
        fault = "is damaged or cannot be read"
    else:
        if transcript.digest == charge.transcript_digest:
            return transcript
    raise CuSynError(
        f"charge {charge.charge_id}: its sealed transcript {sealed} {fault}; restore that file "
        "from the backup of the work folder, since it is never measured again"
    )
