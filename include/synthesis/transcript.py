"""The transcript: the noisy answers of one measurement, round by round, in canonical JSON.

It is all that model fitting, sampling, quality checks and reports ever see, and all that a resumed
run needs. Its digest is what the ledger seals.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from include.accounting import Event, event_from_dict
from include.errors import CuSynError
from include.synthesis.plan import canonical_json
from include.synthesis.task import Clique

FORMAT = "cusyn-transcript-1"


class TranscriptError(CuSynError, ValueError):
    """Bytes or payloads that are not a transcript of this plan.

    Privacy: post-processing.
    """


@dataclass(frozen=True)
class NoisyMarginal:
    """A measured marginal.

    Args:
        clique: Columns; empty for the noisy row count.
        sigma: Noise scale of each cell, in rows.
        counts: Noisy integer counts, C order over `clique`; may be negative.
        label: Purpose: total, one-way, interest, selected, region or table.
        noise: gaussian, or laplace: then `sigma` is its standard deviation.

    Privacy: post-processing.
    """

    clique: Clique
    sigma: float
    counts: tuple[int, ...]
    label: str
    noise: str = "gaussian"

    def to_dict(self) -> dict[str, Any]:
        """Describe the marginal in JSON types."""
        record = {
            "clique": list(self.clique),
            "sigma": self.sigma,
            "counts": list(self.counts),
            "label": self.label,
        }
        return record if self.noise == "gaussian" else record | {"noise": self.noise}


@dataclass(frozen=True)
class Round:
    """One journalled round and its noisy answer.

    Args:
        number: Position in the charge's journal, from 1; gaps are interrupted rounds.
        purpose: total, one-way, interest or selected.
        events: What was spent, as journalled before the data were read.
        marginals: The noisy answers.
        burned: Events of interrupted rounds right before this one: spent, never answered.
        choices: What its selections chose where no measurement tells: columns, in order.
        edges: What its selections of quantiles chose: (column, declared cell above the edge).

    Privacy: post-processing.
    """

    number: int
    purpose: str
    events: tuple[Event, ...]
    marginals: tuple[NoisyMarginal, ...]
    burned: tuple[Event, ...] = ()
    choices: tuple[Clique, ...] = ()
    edges: tuple[tuple[str, int], ...] = ()

    def to_payload(self) -> dict[str, Any]:
        """Describe the round in JSON types: the payload of `RoundLog.answer`."""
        payload: dict[str, Any] = {
            "round": self.number,
            "purpose": self.purpose,
            "events": [event.to_dict() for event in self.events],
            "marginals": [item.to_dict() for item in self.marginals],
            "burned": [event.to_dict() for event in self.burned],
        }
        if self.choices:
            payload["choices"] = [list(choice) for choice in self.choices]
        if self.edges:
            payload["edges"] = [list(edge) for edge in self.edges]
        return payload

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> Round:
        """Read a round back from its payload.

        Raises:
            TranscriptError: The payload is not one that `to_payload` wrote.
        """
        try:
            return cls(
                number=int(payload["round"]),
                purpose=payload["purpose"],
                events=tuple(event_from_dict(item) for item in payload["events"]),
                marginals=tuple(
                    NoisyMarginal(
                        tuple(item["clique"]),
                        item["sigma"],
                        tuple(item["counts"]),
                        item["label"],
                        item.get("noise", "gaussian"),
                    )
                    for item in payload["marginals"]
                ),
                burned=tuple(event_from_dict(item) for item in payload["burned"]),
                choices=tuple(tuple(choice) for choice in payload.get("choices", ())),
                edges=tuple((column, int(edge)) for column, edge in payload.get("edges", ())),
            )
        except (KeyError, TypeError, ValueError) as fault:
            raise TranscriptError(
                f"A stored round cannot be read ({type(fault).__name__}); resume from an intact "
                "copy or forfeit the charge."
            ) from None


@dataclass(frozen=True)
class Transcript:
    """A finished measurement.

    Args:
        mechanism: Registered name of the mechanism.
        plan_digest: Digest of the plan that was run.
        rounds: All answered rounds in order.
        burned: Events of rounds interrupted after the last answered one.
        earlier: Digests of earlier transcripts of the same snapshot that selection drew on.

    Privacy: post-processing.
    """

    mechanism: str
    plan_digest: str
    rounds: tuple[Round, ...]
    burned: tuple[Event, ...] = ()
    earlier: tuple[str, ...] = ()

    @property
    def marginals(self) -> tuple[NoisyMarginal, ...]:
        """All measured marginals, in order."""
        return tuple(item for turn in self.rounds for item in turn.marginals)

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that was spent, interrupted rounds included."""
        return tuple(_all_events(self.rounds)) + self.burned

    @property
    def digest(self) -> str:
        """SHA-256 of `to_bytes`, as hexadecimal text."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def to_bytes(self) -> bytes:
        """Write the transcript as canonical JSON (ASCII)."""
        return canonical_json(
            {
                "format": FORMAT,
                "mechanism": self.mechanism,
                "plan_digest": self.plan_digest,
                "rounds": [turn.to_payload() for turn in self.rounds],
                "burned": [event.to_dict() for event in self.burned],
                "earlier": list(self.earlier),
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Transcript:
        """Read a transcript from its canonical bytes.

        Args:
            data: What `to_bytes` wrote.

        Returns:
            The transcript, with the same digest.

        Raises:
            TranscriptError: The bytes are anything else, also if they differ in form only.

        Privacy: post-processing.
        """
        try:
            record = json.loads(data)
            if record["format"] != FORMAT:
                raise ValueError
            transcript = cls(
                mechanism=record["mechanism"],
                plan_digest=record["plan_digest"],
                rounds=tuple(Round.from_payload(item) for item in record["rounds"]),
                burned=tuple(event_from_dict(item) for item in record["burned"]),
                earlier=tuple(record["earlier"]),
            )
        except (KeyError, TypeError, ValueError):
            raise TranscriptError(
                f"The bytes are not a {FORMAT} transcript; restore the file that was sealed."
            ) from None
        if transcript.to_bytes() != data:
            raise TranscriptError(
                "The transcript is not in canonical form; restore the file that was sealed."
            )
        return transcript


def noisy_total(marginals: Iterable[NoisyMarginal]) -> tuple[float, float]:
    """Estimate the row count from everything measured.

    Args:
        marginals: Measured marginals; the sum of each estimates the row count with variance
            sigma^2 x cells.

    Returns:
        The inverse-variance mean and its standard deviation, both in rows; (0, inf) without any.

    Source: McKenna, Sheldon and Miklau 2019 (minimum variance unbiased total).

    Privacy: post-processing.
    """
    precision = weighted = 0.0
    for item in marginals:
        weight = 1.0 / (item.sigma**2 * len(item.counts))
        precision += weight
        weighted += weight * sum(item.counts)
    if precision == 0.0:
        return 0.0, float("inf")
    return weighted / precision, precision**-0.5


def noisy_rows(transcript: Transcript) -> int:
    """Derive the number of synthetic rows from the noisy row count.

    Args:
        transcript: A finished measurement.

    Returns:
        Rows, at least 0.

    Privacy: post-processing.
    """
    return max(0, round(noisy_total(transcript.marginals)[0]))


def merge_marginals(transcripts: Sequence[Transcript]) -> tuple[NoisyMarginal, ...]:
    """List the marginals of several transcripts of one snapshot.

    Privacy: post-processing.
    """
    return tuple(item for transcript in transcripts for item in transcript.marginals)


def _all_events(rounds: Iterable[Round]) -> Iterator[Event]:
    for turn in rounds:
        yield from turn.burned
        yield from turn.events
