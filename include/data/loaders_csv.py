"""CSV files of any encoding, delimiter and quoting, read as text with bounded memory."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, cast

import pyarrow as pa
import pyarrow.csv as pv

from include.config.datasets import SourceConfig
from include.data.errors import RowFaultError, SourceError
from include.data.places import Place
from include.data.quoting import Quoting

_BLOCK_BYTES = 4 << 20


def csv_names(place: Place, source: SourceConfig) -> list[str]:
    """Return the column names of the first line.

    Args:
        place: the file, plain or gzip.
        source: encoding, delimiter and quote character.

    Raises:
        SourceError: the file is empty or not CSV, or does not unpack.

    Privacy: post-processing (names only).
    """
    with _text(place, source) as raw, io.TextIOWrapper(raw, "utf-8", newline="") as text:
        reader = csv.reader(text, delimiter=source.delimiter, quotechar=source.quote, strict=True)
        try:
            names = next(reader, None)
        except csv.Error:
            raise _malformed(source) from None
    if not names:
        raise SourceError(f"{source.path} has no header line; write the column names there")
    return names


def read_csv(
    place: Place, source: SourceConfig, names: list[str], *, strict: bool = False
) -> Iterator[pa.Table]:
    """Read the named columns that the file has, all as text, in chunks.

    A line with too many or too few fields is left out: a map of that line alone. A quote that is
    left open, or closed before the end of its cell, stops the reading: where the lines behind it
    begin is not known. Bytes that are not text in the declared encoding become the replacement
    character.

    Args:
        place: the file, plain or gzip.
        source: encoding, delimiter, quote character and the words that mean "missing".
        names: columns in the source's words.
        strict: stop at such a line instead of leaving it out.

    Yields:
        Tables of text columns; the first one is empty and carries the columns.

    Raises:
        SourceError: the file has no header, quotes that do not pair up, or does not unpack.
        RowFaultError: `strict`, and a line has another number of fields than the header.

    Privacy: reads raw data.
    """
    uneven = _Uneven()
    present = [name for name in names if name in csv_names(place, source)]
    yield pa.schema([pa.field(name, pa.string()) for name in present]).empty_table()
    if not present or _only_header(place, source):
        return
    quoting = Quoting(source.delimiter, source.quote)
    with _text(place, source, quoting) as raw:
        reader = _opened(raw, source, present, uneven)
        try:
            while (batch := _next(reader, source)) is not None and quoting.sound:
                if strict and uneven.seen:
                    break
                yield pa.Table.from_batches([batch])
        finally:
            _finish(reader, raw)
    if not quoting.sound or (batch is None and quoting.ends_open()):
        raise _malformed(source)
    if strict and uneven.seen:
        raise RowFaultError("", "as many fields in a line as in the header")


def _opened(
    raw: io.BufferedReader, source: SourceConfig, present: list[str], uneven: _Uneven
) -> pv.CSVStreamingReader:
    try:
        return pv.open_csv(
            raw,
            read_options=pv.ReadOptions(block_size=_BLOCK_BYTES, use_threads=False),
            parse_options=pv.ParseOptions(
                delimiter=source.delimiter,
                quote_char=source.quote,
                newlines_in_values=True,
                invalid_row_handler=uneven,
            ),
            convert_options=pv.ConvertOptions(
                include_columns=present,
                column_types=dict.fromkeys(present, pa.string()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=True,
                null_values=list(source.null_values),
            ),
        )
    except pa.ArrowInvalid:  # it reads the first block at once
        raise _malformed(source) from None


def _next(reader: pv.CSVStreamingReader, source: SourceConfig) -> pa.RecordBatch | None:
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None
    except pa.ArrowInvalid:  # its text quotes the place in the file
        raise _malformed(source) from None


def _finish(reader: pv.CSVStreamingReader, raw: io.BufferedReader) -> None:
    """Lead a reader to its end: given up before, a thread of Arrow's waits for itself for ever."""
    cast("_Recoded", raw.raw).stop()
    with suppress(pa.ArrowInvalid, StopIteration):
        while True:
            reader.read_next_batch()


def _malformed(source: SourceConfig) -> SourceError:
    return SourceError(
        f"{source.path} is not well-formed CSV: a quote may be left open or closed inside a cell, "
        "or a line is longer than 4 MB; correct the file (a quote inside quotes is written twice) "
        "or source.quote"
    )


class _Uneven:
    """Leaves out lines of another length than the header's, and remembers that there was one."""

    seen = False

    def __call__(self, row: pv.InvalidRow) -> str:
        self.seen = True
        return "skip"


def _only_header(place: Place, source: SourceConfig) -> bool:
    with _text(place, source) as raw, io.TextIOWrapper(raw, "utf-8", newline="") as text:
        lines = csv.reader(text, delimiter=source.delimiter, quotechar=source.quote)
        try:
            next(lines, None)
            return next(lines, None) is None
        except csv.Error:  # a cell beyond the limit of this reader, which is not Arrow's
            return False


def _text(place: Place, source: SourceConfig, quoting: Quoting | None = None) -> io.BufferedReader:
    """Open a file as a stream of UTF-8 bytes, whatever its encoding is; let `quoting` see them."""
    codec = codecs.lookup(source.encoding)
    name = "utf-8-sig" if codec.name == "utf-8" else codec.name
    file = place.open()
    if place.relative.lower().endswith(".gz"):
        file = cast("IO[bytes]", _Unpacked(file, source))
    return io.BufferedReader(_Recoded(file, name, quoting), buffer_size=1 << 20)


class _Unpacked:
    """What a gzip file holds; damage is told with its cure."""

    def __init__(self, file: IO[bytes], source: SourceConfig) -> None:
        self._file, self._source = file, source
        self._unpacked = gzip.GzipFile(fileobj=file)

    def read(self, size: int) -> bytes:
        try:
            return self._unpacked.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise SourceError(
                f"{self._source.path} is damaged or cut short, or a file in it is: it ends in .gz "
                "and does not unpack; copy it again from where it came (gzip -t checks a file), or "
                "take the ending away where it is not packed"
            ) from None

    def close(self) -> None:
        self._unpacked.close()
        self._file.close()


class _Recoded(io.RawIOBase):
    """Bytes of one encoding read as bytes of UTF-8; what does not decode is replaced."""

    def __init__(self, file: IO[bytes], encoding: str, quoting: Quoting | None) -> None:
        self._file, self._quoting = file, quoting
        self._decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
        self._ready = b""
        self._stopped = False

    def stop(self) -> None:
        """Let the text end here."""
        self._stopped = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._stopped:
            return 0
        while not self._ready:
            block = self._file.read(1 << 20)
            text = self._decoder.decode(block, final=not block)
            # A NUL would end a field early in some readers; it is never part of a text.
            self._ready = text.replace("\x00", "\ufffd").encode("utf-8", "replace")
            if self._quoting is not None:
                self._quoting.feed(self._ready)
            if not block:
                break
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
