"""Transcripts: one canonical form, nothing else is read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.accounting import ExponentialMechanism, Gaussian
from include.synthesis import NoisyMarginal, Round, Transcript, TranscriptError, noisy_rows
from include.synthesis.transcript import noisy_total

names = st.text(min_size=1, max_size=8)
sigmas = st.floats(1e-3, 1e9)
marginals = st.builds(
    NoisyMarginal,
    st.lists(names, max_size=3, unique=True).map(tuple),
    sigmas,
    st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=6).map(tuple),
    st.sampled_from(["interest", "selected"]),
)
events = st.one_of(
    st.builds(Gaussian, sigmas, st.integers(1, 5), names), st.builds(ExponentialMechanism, sigmas)
)
rounds = st.builds(
    Round,
    st.integers(1, 99),
    st.just("selected"),
    st.lists(events, max_size=2).map(tuple),
    st.lists(marginals, max_size=2).map(tuple),
    st.lists(events, max_size=1).map(tuple),
)
transcripts = st.builds(
    Transcript,
    st.just("aim"),
    st.just("0" * 64),
    st.lists(rounds, max_size=3).map(tuple),
    st.lists(events, max_size=1).map(tuple),
    st.just(("1" * 64,)),
)


@given(transcripts)
def test_bytes_round_trip(transcript: Transcript) -> None:
    data = transcript.to_bytes()
    again = Transcript.from_bytes(data)
    assert again == transcript
    assert again.digest == transcript.digest
    assert data.isascii()


@given(transcripts, st.data())
def test_any_other_spelling_is_refused(transcript: Transcript, data: st.DataObject) -> None:
    written = transcript.to_bytes()
    record = json.loads(written)
    for other in (json.dumps(record, indent=1).encode(), written + b" ", written[:-1]):
        with pytest.raises(TranscriptError):
            Transcript.from_bytes(other)
    key = data.draw(st.sampled_from(sorted(record)))
    del record[key]
    with pytest.raises(TranscriptError):
        Transcript.from_bytes(json.dumps(record).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"{}", b"\xff", b'{"format": "other"}'])
def test_foreign_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(TranscriptError):
        Transcript.from_bytes(data)


def test_a_damaged_payload_is_refused_in_a_sentence() -> None:
    with pytest.raises(TranscriptError, match="KeyError"):
        Round.from_payload({"round": 1})


def test_the_row_count_weighs_by_precision() -> None:
    exact = NoisyMarginal(("a",), 1.0, (50, 50), "interest")
    vague = NoisyMarginal((), 1000.0, (900,), "total")
    total, deviation = noisy_total([exact, vague])
    assert total == pytest.approx(100, abs=0.01)
    assert deviation == pytest.approx(2**0.5, rel=1e-3)
    assert noisy_total([]) == (0.0, float("inf"))


def test_the_row_count_is_never_negative() -> None:
    turn = Round(1, "total", (), (NoisyMarginal((), 5.0, (-7,), "total"),))
    assert noisy_rows(Transcript("aim", "", (turn,))) == 0
