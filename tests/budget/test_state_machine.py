"""The state machine on both databases; `-m slow` runs it at length."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from sqlalchemy import Engine

from include.budget.store import connect
from tests.budget.machine import LedgerMachine
from tests.budget.servers import PostgresServer, SqliteFiles


def _run(place: SqliteFiles | PostgresServer, examples: int, steps: int) -> None:
    class Machine(LedgerMachine):
        def make_engine(self) -> Engine:
            self.url = place.fresh()
            return connect(self.url)

        def finished(self) -> None:
            place.done(self.url)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_the_ledger_does_what_the_model_does(place: SqliteFiles | PostgresServer) -> None:
    _run(place, examples=6, steps=20)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # nine thousand steps, on whatever else the machine does
def test_the_ledger_does_what_the_model_does_at_length(
    place: SqliteFiles | PostgresServer,
) -> None:
    _run(place, examples=150, steps=60)
