"""Amounts: strict on the way in, exact on the way out."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.accounting import (
    ONE,
    AmountError,
    format_amount,
    format_delta,
    parse_amount,
    parse_delta,
)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (-10, "negative"),
        ("-10", "sign"),
        ("-0.0", "sign"),
        ("+1", "sign"),
        (float("nan"), "float"),
        ("NaN", "NaN"),
        (float("inf"), "float"),
        ("+inf", "infinite"),
        ("-inf", "infinite"),
        ("Infinity", "infinite"),
        ("1e400", "exponent"),
        ("1E-3", "exponent"),
        (0, "zero"),
        ("0", "zero"),
        ("0.000", "zero"),
        ("1_0", "underscore"),
        ("１０", "ASCII"),
        ("٣", "ASCII"),
        (True, "true/false"),
        (False, "true/false"),
        (0.1, "float"),
        (None, "missing"),
        ([], "list"),
        (b"1", "bytes"),
        ("", "empty"),
        (" 1", "blanks"),
        ("1\n", "blanks"),
        ("1.", "not a decimal"),
        (".5", "not a decimal"),
        ("1,5", "not a decimal"),
        ("0x10", "not a decimal"),
        ("1234567", "too many digits"),
        ("0.0000000000001", "too many digits"),
        (1_000_000, "largest"),
        (10**400, "largest"),
    ],
)
def test_each_fault_is_refused_by_its_name(value: object, fault: str) -> None:
    with pytest.raises(AmountError) as caught:
        parse_amount(value, name="epsilon")
    message = str(caught.value)
    assert message.startswith("epsilon: ")
    assert fault in message
    assert "\n" not in message
    assert len(message) < 250


@pytest.mark.parametrize(
    ("value", "pico"),
    [
        ("1", ONE),
        (3, 3 * ONE),
        ("0.5", ONE // 2),
        ("000001.50", ONE * 3 // 2),
        ("0.000000000001", 1),
        ("999999.999999999999", 10**18 - 1),
    ],
)
def test_the_grammar_reads_exactly(value: object, pico: int) -> None:
    assert parse_amount(value, name="epsilon") == pico


@given(st.integers(1, 10**18 - 1))
def test_print_then_parse_is_the_identity(pico: int) -> None:
    text = format_amount(pico)
    assert parse_amount(text, name="epsilon") == pico
    assert Fraction(text) * ONE == pico
    assert not ("." in text and text.endswith("0"))


@given(st.text(max_size=20))
def test_no_text_ever_gives_anything_but_a_positive_int_or_a_refusal(text: str) -> None:
    try:
        pico = parse_amount(text, name="x")
    except AmountError:
        return
    assert 1 <= pico < 10**18
    assert text.isascii()
    assert Fraction(text) * ONE == pico


def test_format_of_zero_and_of_a_shortfall() -> None:
    assert format_amount(0) == "0"
    assert format_amount(-1) == "-0.000000000001"


@pytest.mark.parametrize("value", ["1e-4", "1e-16", "1e-09x", "0.000001", 1e-9, 9, None, "1E-9"])
def test_delta_has_one_form(value: object) -> None:
    with pytest.raises(AmountError, match="1e-N"):
        parse_delta(value, name="delta")


def test_delta_reads_and_prints() -> None:
    for exponent in range(5, 16):
        assert parse_delta(format_delta(exponent), name="delta") == exponent
