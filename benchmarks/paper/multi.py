"""MUL: four users ask in turn, each for epsilon 10 / R in each of R rounds, of one dataset pool.

A cell is a whole sequence of requests. With the `epsilon` pool every granted release is really
made, by the stages of the product. With the `zcdp` pool the decisions alone are taken: what a
release holds does not depend on the currency of the pool, and nothing of the rows enters a
decision, so what is granted there is counted, not measured.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import stamp
from benchmarks.paper.research import DELTA_EXPONENT, Table, table
from benchmarks.paper.single import MECHANISMS
from benchmarks.paper.world import LENGTH, TOTAL_EPSILON, USERS, World
from benchmarks.runs import run_release
from include.accounting import format_amount, parse_amount

ROUNDS = (10, 5, 15)
"""In the order in which they are run: at 10 rounds a request is of epsilon 1."""
VARIANTS = (("epsilon", "off"), ("epsilon", "dataset"), ("zcdp", "off"), ("none", "plain"))
KEY = ("table", "mechanism", "rounds", "pool", "reuse", "seed")
FIELDS = (
    *KEY,
    *("turn", "user", "answer", "epsilon", "granted", "binding", "left", "left_epsilon"),
    *("largest", "interest_rows", "workload_rows", "cpu_s", "date", "versions", "machine"),
)


@dataclass(frozen=True)
class Sequence:
    """One sequence of requests; `none`/`plain` is the baseline: releases without queries."""

    table: str
    mechanism: str
    rounds: int
    pool: str
    reuse: str
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """The cell as the results file spells it."""
        rounds, seed = str(self.rounds), str(self.seed)
        return (self.table, self.mechanism, rounds, self.pool, self.reuse, seed)

    @property
    def epsilon(self) -> str:
        """What one request asks for, decimal text, rounded down."""
        return format_amount(TOTAL_EPSILON * parse_amount("1", name="one") // self.rounds)


def sequences(names: list[str], seeds: int, *, quick: bool) -> Iterator[Sequence]:
    """List the sequences, rounds by rounds; decisions do not depend on noise and need one seed."""
    for rounds in (5,) if quick else ROUNDS:
        for seed in range(seeds):
            for name in names:
                for mechanism in MECHANISMS:
                    for pool, reuse in VARIANTS:
                        if pool != "zcdp" or seed == 0:
                            yield Sequence(name, mechanism, rounds, pool, reuse, seed)


def run_sequence(cell: Sequence, folder: Path) -> list[dict[str, Any]]:
    """Put all requests of a sequence and measure what was released."""
    data = table(folder, cell.table)
    interest = [data.queries(100 * cell.seed + place, LENGTH) for place in range(len(USERS))]
    if cell.pool == "none":
        found = _plain(cell, data, interest)
    else:
        with tempfile.TemporaryDirectory() as root:
            found = _asked(cell, data, interest, Path(root))
    named, where = dict(zip(KEY, cell.key, strict=True)), stamp()
    return [named | {"epsilon": cell.epsilon} | row | where for row in found]


def _asked(cell: Sequence, data: Table, interest: Any, root: Path) -> list[dict[str, Any]]:
    world = World(
        root,
        data,
        accounting=cell.pool,
        reuse=cell.reuse,
        mechanism=cell.mechanism,
        epsilon=cell.epsilon,
        interest=interest,
    )
    found = []
    for turn in range(1, cell.rounds * len(USERS) + 1):
        user = (turn - 1) % len(USERS)
        begun = time.process_time()
        run, charge = world.ask(USERS[user], turn)
        row = _decision(turn, USERS[user], charge, world)
        if cell.pool == "epsilon" and not charge.denied:
            row |= _released(world, run, data, interest[user])
            row["cpu_s"] = f"{time.process_time() - begun:.2f}"
        found.append(row)
        if charge.denied and cell.seed > 0:
            break  # the decisions do not depend on noise: the first seed has told the rest
    return found


def _decision(turn: int, user: str, charge: Any, world: World) -> dict[str, Any]:
    pool = world.dataset_pool()
    answer = "refused" if charge.denied else "negotiated" if charge.negotiated else "granted"
    return {
        "turn": turn,
        "user": user,
        "answer": answer,
        "granted": format_amount(charge.granted_pico) if charge.granted_pico else "0",
        "binding": charge.binding,
        "left": format_amount(pool.remaining_pico) if pool.remaining_pico else "0",
        "left_epsilon": pool.remaining_epsilon,
        "largest": pool.largest_release_epsilon,
    }


def _released(world: World, run: Any, data: Table, queries: Any) -> dict[str, str]:
    """Make the release as the product does, and judge its rows."""
    import numpy as np

    from include.stages.desk import Desk
    from include.stages.synthesize import synthesize

    made = synthesize(run, world.place)
    rows = np.load(Desk(world.place.desk(made.charge_id)).codes)
    return {
        "interest_rows": f"{data.rows_tv(rows, queries):.6f}",
        "workload_rows": f"{data.rows_tv(rows):.6f}",
    }


def _plain(cell: Sequence, data: Table, interest: Any) -> list[dict[str, Any]]:
    """One release without queries, judged on each user's own."""
    epsilon = parse_amount(cell.epsilon, name="epsilon")
    run = run_release(cell.mechanism, data.codes, data.task(), epsilon, DELTA_EXPONENT)
    return [
        {
            "turn": place + 1,
            "user": user,
            "answer": "granted",
            "granted": cell.epsilon,
            "interest_rows": f"{data.rows_tv(run.rows, interest[place]):.6f}",
            "workload_rows": f"{data.rows_tv(run.rows):.6f}",
            "cpu_s": f"{run.cpu_total_s:.2f}",
        }
        for place, user in enumerate(USERS)
    ]
