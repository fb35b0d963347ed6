"""Whether the quotes of a CSV pair up as RFC 4180 says, found block by block while it is read.

Arrow's reader is lenient: it takes a quote left open, with all lines behind it, for one long cell,
and a closing quote with text behind it for a part of that cell. Either way rows disappear.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
_SLICE = 1 << 16  # bytes; the arrays of one slice stay in the processor's cache


class Quoting:
    """The state of one file's quotes; it is told every block, in order.

    A quote opens a cell only at the cell's start: elsewhere, as in `5" pipe`, it is text. In an
    open cell two quotes are one, and a single one closes the cell, behind which only a delimiter or
    a line's end may stand.

    Args:
        delimiter: one ASCII character.
        quote: one ASCII character.

    Source: RFC 4180, section 2.

    Privacy: reads raw data.
    """

    def __init__(self, delimiter: str, quote: str) -> None:
        self._quote = quote.encode("ascii")
        self._ends = np.zeros(256, dtype=bool)  # bytes that end a cell
        self._ends[[ord(delimiter), ord("\r"), ord("\n")]] = True
        self._open = 0  # 1 inside a quoted cell
        self._sound = True
        self._kept = b"\n"  # the last byte that is no quote, and the quotes behind it

    def feed(self, block: bytes) -> None:
        """Look at the next bytes; what they end with waits for its neighbour.

        Args:
            block: UTF-8 text, cut anywhere.
        """
        for at in range(0, len(block), _SLICE):
            self._slice(block[at : at + _SLICE])

    def _slice(self, block: bytes) -> None:
        body = block.rstrip(self._quote)
        behind = len(block) - len(body)
        if not body:
            self._kept = self._kept[:1] + self._quote * _alike(len(self._kept) - 1 + behind)
            return
        if self._quote in body or len(self._kept) > 1:
            self._judge(self._kept + body)
        self._kept = body[-1:] + self._quote * _alike(behind)

    @property
    def sound(self) -> bool:
        """Whether no closing quote so far had text behind it."""
        return self._sound

    def ends_open(self) -> bool:
        """Tell, when all is fed, whether the file ends inside a quoted cell."""
        if len(self._kept) > 1:
            self._judge(self._kept + b"\n")
            self._kept = b"\n"
        return self._open == 1

    def _judge(self, text: bytes) -> None:
        """Follow the runs of quotes in a text that neither starts nor ends with a quote.

        Of the quotes of a run each second one undoes the one before, so only odd runs change the
        state: outside a cell one at a start opens it, inside any one closes it.
        """
        data = np.frombuffer(text, dtype=np.uint8)
        first, last = _runs(np.flatnonzero(data == self._quote[0]))
        odd = (last - first) & 1 == 0
        starts, stray = self._ends[data[first - 1]], ~self._ends[data[last + 1]]
        whole = starts & stray & ~odd  # outside, an empty cell with text behind it
        opens = starts[odd]
        if opens[self._open :: 2].all() and not whole.any():
            # Each that finds no cell open opens one: so they open and close in turn.
            self._sound &= not stray[odd][1 - self._open :: 2].any()
            self._open ^= opens.size & 1
        else:
            self._follow(odd, starts, stray, whole)

    def _follow(self, odd: Flags, starts: Flags, stray: Flags, whole: Flags) -> None:
        """Judge runs of which some stand within unquoted cells.

        After an odd run elsewhere than at a start no cell is open, whatever was before. From there
        on, or from the beginning, each odd run at a start turns the state over.
        """
        turns = np.cumsum(odd & starts)
        resets = np.maximum.accumulate(np.where(odd & ~starts, np.arange(odd.size), -1))
        after = np.where(resets < 0, turns + self._open, turns - turns[resets]) & 1
        before = np.concatenate(([self._open], after[:-1])) == 1
        self._sound &= not np.where(before, odd & stray, whole).any()
        self._open = int(after[-1])


def _runs(places: Places) -> tuple[Places, Places]:
    """Return where each run of neighbouring quotes begins and ends."""
    apart = np.diff(places) != 1
    if apart.all():
        return places, places
    return places[np.concatenate(([True], apart))], places[np.concatenate((apart, [True]))]


def _alike(count: int) -> int:
    """Return the shortest run of quotes that means what `count` of them mean."""
    return count if count < 2 else 2 - count % 2
