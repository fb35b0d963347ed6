"""Many statements in one packet to PostgreSQL, through the driver's own libpq.

The driver's pipeline sends every statement by itself, and the server wakes for each. A step that
makes others wait should arrive whole. Values are text and whole numbers only, so the text format
carries them.
"""

from __future__ import annotations

import itertools
import select
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

Values = Sequence[str | int | None]
Statement = tuple[str, Values]

_NUMBERS = itertools.count(1)
_WHOLE = {20, 21, 23}  # the types int8, int2, int4 in pg_type
_DONE = {ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK}


@dataclass
class Wire:
    """A connection that takes statements by the packet.

    Args:
        connection: A psycopg connection in autocommit mode.
        known: Names of the statements this connection has prepared, by their text; kept with it.

    Privacy: ledger only.
    """

    connection: psycopg.Connection[Any]
    known: dict[str, str]
    _learnt: list[tuple[str, str] | None] = field(default_factory=list)

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
        self._learnt.clear()
        server.enter_pipeline_mode()
        try:
            for group in groups:
                for text, values in group:
                    self._queue(server, text, values)
                server.pipeline_sync()
            results = list(self._answers(server, len(groups)))
            server.exit_pipeline_mode()
        except BaseException:
            server.finish()  # half a conversation: nobody else may go on with it
            raise
        return self._read(results)

    def _queue(self, server: PGconn, text: str, values: Values) -> None:
        name = self.known.get(text)
        if name is None:
            name = f"dp_{next(_NUMBERS)}"
            server.send_prepare(name.encode(), text.encode())
            self._learnt.append((text, name))
        server.send_query_prepared(name.encode(), [_told(value) for value in values])
        self._learnt.append(None)

    def _answers(self, server: PGconn, syncs: int) -> Iterable[PGresult]:
        ready = select.poll()
        while server.flush():
            ready.register(server.socket, select.POLLIN | select.POLLOUT)
            ready.poll()
            server.consume_input()  # or both sides may wait for the other to read
        ready.register(server.socket, select.POLLIN)
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
                yield result

    def _read(self, results: Sequence[PGresult]) -> list[list[tuple[Any, ...]]]:
        rows, refused = [], None
        for result, learnt in zip(results, self._learnt, strict=True):
            if result.status not in _DONE:
                refused = refused or result  # the rest of its group was passed over
            elif learnt is None:
                rows.append(_rows(result))
            else:
                self.known[learnt[0]] = learnt[1]
        if refused is not None:
            raise _refusal(refused)
        return rows


def _told(value: str | int | None) -> bytes | None:
    if value is None:
        return None
    told = (value if isinstance(value, str) else str(value)).encode()
    if b"\0" in told:
        raise psycopg.DataError("a text of PostgreSQL cannot hold the character NUL")
    return told


def _rows(result: PGresult) -> list[tuple[Any, ...]]:
    reads = [
        int if result.ftype(place) in _WHOLE else bytes.decode for place in range(result.nfields)
    ]
    value = result.get_value
    return [
        tuple(
            [
                None if (told := value(row, place)) is None else read(told)
                for place, read in enumerate(reads)
            ]
        )
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
