"""Many statements in one packet to PostgreSQL, through the driver's own libpq.

The driver's pipeline sends every statement by itself, and the server wakes for each. A step that
makes others wait should arrive whole. Values are text and whole numbers only, so the text format
carries them.
"""

from __future__ import annotations

import itertools
import select
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

Values = Sequence[str | int | None]
Statement = tuple[str, Values]

_NUMBERS = itertools.count(1)
_WHOLE = {20, 21, 23}  # the types int8, int2, int4 in pg_type
_FORGOTTEN = {"26000", "0A000"}  # a statement is gone, or its table has other columns now
_DONE = {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK}


@dataclass(slots=True)
class Known:
    """A statement that a connection has prepared. Privacy: ledger only.

    Args:
        name: Its name on the server.
        reads: How the columns of its rows are read; None before its first rows.
    """

    name: bytes
    reads: tuple[Callable[[bytes], Any], ...] | None = None


@dataclass
class Wire:
    """A connection that takes statements by the packet.

    Args:
        connection: A psycopg connection in autocommit mode.
        known: The statements this connection has prepared, by their text; kept with it.

    Privacy: ledger only.
    """

    connection: psycopg.Connection[Any]
    known: dict[str, Known]

    def send(self, *groups: Iterable[Statement]) -> list[list[tuple[Any, ...]]]:
        """Run groups of statements in this order; outside BEGIN each group is one transaction.

        Args:
            groups: Statements with numbered parameters ($1) and their values.

        Returns:
            The rows of every statement, in order.

        Raises:
            psycopg.Error: The first refusal; nothing of its group was done.
        """
        server = self.connection.pgconn
        asked: list[tuple[Known, str]] = []  # one for each result; with a text where it is prepared
        server.enter_pipeline_mode()
        try:
            for group in groups:
                for text, values in group:
                    self._queue(server, text, values, asked)
                server.pipeline_sync()
            results = _answers(server, len(groups))
            server.exit_pipeline_mode()
        except BaseException:
            server.finish()  # half a conversation: nobody else may go on with it
            raise
        return self._read(results, asked)

    def _queue(
        self, server: PGconn, text: str, values: Values, asked: list[tuple[Known, str]]
    ) -> None:
        known = self.known.get(text)
        if known is None:
            known = Known(b"dp_%d" % next(_NUMBERS))
            server.send_prepare(known.name, text.encode())
            asked.append((known, text))
        told = [
            None if value is None else (value if type(value) is str else str(value)).encode()
            for value in values
        ]
        if any(b"\0" in one for one in told if one):
            raise psycopg.DataError("a text of PostgreSQL cannot hold the character NUL")
        server.send_query_prepared(known.name, told)
        asked.append((known, ""))

    def _read(
        self, results: Sequence[PGresult], asked: Sequence[tuple[Known, str]]
    ) -> list[list[tuple[Any, ...]]]:
        # A commit that is refused answers no statement: then there is one result too many.
        refused = next((result for result in results if result.status not in _DONE), None)
        rows = []
        for result, (known, prepared) in zip(results, asked, strict=refused is None):
            if result is refused:
                break  # what follows was passed over, or stands for another statement
            if prepared:
                self.known[prepared] = known
            else:
                rows.append(_rows(result, known))
        if refused is not None:
            fault = _refusal(refused)
            if fault.sqlstate in _FORGOTTEN:
                self.known.clear()
            raise fault
        return rows


def _answers(server: PGconn, syncs: int) -> list[PGresult]:
    ready = select.poll()
    while server.flush():
        ready.register(server.socket, select.POLLIN | select.POLLOUT)
        ready.poll()
        server.consume_input()  # or both sides may wait for the other to read
    ready.register(server.socket, select.POLLIN)
    results: list[PGresult] = []
    while syncs:
        while server.is_busy():
            ready.poll()
            server.consume_input()
        result = server.get_result()
        if result is None:
            continue  # between two statements
        if result.status == ExecStatus.PIPELINE_SYNC:
            syncs -= 1
        else:
            results.append(result)
    return results


def _rows(result: PGresult, known: Known) -> list[tuple[Any, ...]]:
    if not result.ntuples:
        return []
    if known.reads is None:
        types = map(result.ftype, range(result.nfields))
        known.reads = tuple(int if one in _WHOLE else bytes.decode for one in types)
    value, reads = result.get_value, tuple(enumerate(known.reads))
    return [
        tuple([None if (told := value(row, at)) is None else read(told) for at, read in reads])
        for row in range(result.ntuples)
    ]


def _refusal(result: PGresult) -> psycopg.Error:
    state = (result.error_field(psycopg.pq.DiagnosticField.SQLSTATE) or b"XX000").decode()
    message = (result.error_field(psycopg.pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode()
    try:
        kind: type[psycopg.Error] = psycopg.errors.lookup(state)
    except KeyError:
        kind = psycopg.DatabaseError
    return kind(message)
