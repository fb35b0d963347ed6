"""Amounts of privacy loss as integers of 1e-12: parsed strictly, printed exactly.

Binary floating point and SQL NUMERIC both lose units on the way; a budget must not.
"""

from __future__ import annotations

import re

from include.errors import CuSynError

ONE = 10**12
"""One unit of a currency (epsilon or rho) in the integers every account is kept in."""

DELTA_EXPONENTS = range(5, 16)
"""Exponents N of delta = 1e-N for which sums of epsilon charges are proven (rho superadditive)."""

_AMOUNT = re.compile(r"([0-9]{1,6})(?:\.([0-9]{1,12}))?")
_DELTA = re.compile(r"1e-([0-9]{1,2})")
_MAX_WHOLE = 999_999
_GRAMMAR = 'write a decimal such as "0.5": up to 6 digits, then up to 12 after the point'


class AmountError(CuSynError, ValueError):
    """An amount or a delta was not written in the one accepted way.

    Privacy: ledger only.
    """


def parse_amount(value: object, *, name: str) -> int:
    """Read an amount of privacy loss exactly.

    Args:
        value: Decimal text such as "0.5", or an int; 1e-12 to 999999.999999999999.
        name: What the amount is called where the person wrote it; opens the error sentence.

    Returns:
        The amount in units of 1e-12, at least 1.

    Raises:
        AmountError: The value is refused; the sentence names the fault and the fix.

    Privacy: ledger only.
    """
    if isinstance(value, bool):
        raise AmountError(f"{name}: true/false is not an amount; {_GRAMMAR}.")
    if isinstance(value, float):
        raise AmountError(
            f"{name}: a binary float is not exact; put the amount in quotes, {_GRAMMAR}."
        )
    if isinstance(value, int):
        return _from_int(value, name)
    if not isinstance(value, str):
        kind = "a missing value" if value is None else f"a {type(value).__name__}"
        raise AmountError(f"{name}: {kind} is not an amount; {_GRAMMAR}.")
    match = _AMOUNT.fullmatch(value)
    if match is None:
        raise AmountError(f"{name}: {_shown(value)} {_text_fault(value)}; {_GRAMMAR}.")
    whole, fraction = match.group(1), match.group(2) or ""
    pico = int(whole) * ONE + int(fraction.ljust(12, "0"))
    if pico == 0:
        raise AmountError(f"{name}: zero buys nothing; write an amount above 0.")
    return pico


def format_amount(pico: int) -> str:
    """Print an amount as the shortest decimal that reads back exactly.

    Args:
        pico: Amount in units of 1e-12; a negative one prints with its sign.

    Returns:
        Decimal text such as "0", "0.5" or "0.000000000001".

    Privacy: ledger only.
    """
    whole, fraction = divmod(abs(pico), ONE)
    sign = "-" if pico < 0 else ""
    digits = f"{fraction:012d}".rstrip("0")
    return f"{sign}{whole}.{digits}" if digits else f"{sign}{whole}"


def parse_delta(value: object, *, name: str) -> int:
    """Read a delta, which is a constant of a budget pool and always a power of ten.

    Args:
        value: Text "1e-N" with N from 5 to 15.
        name: What the delta is called where the person wrote it; opens the error sentence.

    Returns:
        The exponent N.

    Raises:
        AmountError: The value is anything else.

    Privacy: ledger only.
    """
    match = _DELTA.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match.group(1)) not in DELTA_EXPONENTS:
        shown = _shown(value) if isinstance(value, str) else f"a {type(value).__name__}"
        raise AmountError(
            f'{name}: {shown} is not accepted; write delta as "1e-N" in quotes, N from 5 to 15.'
        )
    return int(match.group(1))


def format_delta(delta_exponent: int) -> str:
    """Print the delta of a pool in the form `parse_delta` reads.

    Args:
        delta_exponent: N of delta = 1e-N.

    Returns:
        Text such as "1e-9".

    Privacy: ledger only.
    """
    return f"1e-{delta_exponent}"


def _from_int(value: int, name: str) -> int:
    if value < 0:
        raise AmountError(f"{name}: a negative amount would refill a budget; write it above 0.")
    if value == 0:
        raise AmountError(f"{name}: zero buys nothing; write an amount above 0.")
    if value > _MAX_WHOLE:
        raise AmountError(f"{name}: the amount is above the largest accepted, {_MAX_WHOLE}.")
    return value * ONE


def _shown(value: str) -> str:
    return repr(value if len(value) <= 40 else value[:37] + "...")


def _text_fault(value: str) -> str:
    """Name what is wrong with text that is not an amount, the most telling fault first."""
    lowered = value.strip().lower().lstrip("+-")
    if lowered in {"nan", "snan"}:
        return "is not a number (NaN)"
    if lowered in {"inf", "infinity"}:
        return "is infinite"
    if value != value.strip() or not value:
        return "is empty or has blanks around it"
    if value[0] in "+-":
        return "carries a sign"
    if "_" in value:
        return "has an underscore between digits"
    if not value.isascii():
        return "has characters that are not plain ASCII digits"
    if re.fullmatch(r"[0-9.]+[eE][+-]?[0-9]+", value):
        return "is written with an exponent"
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", value):
        return "has too many digits"
    return "is not a decimal number"
