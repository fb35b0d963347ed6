"""How numbers, amounts, times and declared names are written for people."""

from __future__ import annotations

import re
import unicodedata
from decimal import ROUND_DOWN, ROUND_UP, Context, Decimal


def share(value: float | None) -> str:
    """Format a share for reading: three significant digits at most.

    Privacy: post-processing.
    """
    if value is None:
        return "–"
    percent = 100 * value
    digits = 0 if abs(percent) >= 10 else 1 if abs(percent) >= 1 else 2
    return f"{percent:.{digits}f}%"


def up(amount: str) -> str:
    """Shorten a cost for reading: four significant digits, rounded against the reader's favour.

    Privacy: ledger only.
    """
    return _short(amount, ROUND_UP)


def down(amount: str) -> str:
    """Shorten what is left for reading: four significant digits, rounded down.

    Privacy: ledger only.
    """
    return _short(amount, ROUND_DOWN)


def _short(amount: str, rounding: str) -> str:
    number = Decimal(amount)
    if number:
        number = number.normalize(Context(prec=4, rounding=rounding))
    return f"{number:f}"


def sentence(text: str) -> str:
    """Begin with a capital letter and end with a stop, and show no invisible characters.

    Privacy: post-processing.
    """
    shown = visible(text.strip())
    return shown[:1].upper() + shown[1:] + ("" if shown.endswith((".", "!", "?")) else ".")


def moment(time: str) -> str:
    """Write an RFC 3339 UTC time as a person would; other texts as they are.

    Privacy: ledger only.
    """
    match = re.fullmatch(r"(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2})[\d:.]*(?:Z|\+00:00)", time)
    return f"{match[1]}, {match[2]} UTC" if match else time


def at(value: float, top: float = 1.0) -> str:
    """Place a value on a track from 0 to `top`, as an SVG percentage inside the track.

    Privacy: post-processing.
    """
    return f"{100 * min(1.0, max(0.0, value / top if top > 0 else 0.0)):.3f}%"


def visible(text: str) -> str:
    """Make a declared name safe to show: control and direction-changing characters get a picture.

    Args:
        text: a column name or value, any script.

    Returns:
        Text without invisible characters; the exact name stands in the JSON twin.

    Privacy: post-processing.
    """
    if not text:
        return "(empty)"

    def show(character: str) -> str:
        code = ord(character)
        if code < 0x20:
            return chr(0x2400 + code)
        # Joiners (Cf) shape words in many scripts: only the direction controls are dangerous.
        if unicodedata.bidirectional(character) in _DIRECTION or code in (0x7F, 0x2028, 0x2029):
            return "␣"
        return character

    shown = "".join(show(character) for character in text)
    leading = len(shown) - len(shown.lstrip(" "))
    trailing = len(shown) - len(shown.rstrip(" "))
    return "␣" * leading + shown.strip(" ") + "␣" * (trailing if shown.strip(" ") else 0)


_DIRECTION = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
