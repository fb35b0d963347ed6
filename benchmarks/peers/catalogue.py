"""What is compared: the peers with their environments, their mechanisms, repetitions and caps.

To add a peer: a `requirements-NAME.in`, a door in `doors/`, an entry here, a sentence in faults.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLES = ("titanic", "nltcs", "adult")
EPSILON, DELTA = "1", "1e-9"
CAP_CPU_S = 300
CAP_MB = 8_000
EARLY_REPEATS = {True: 2, False: 0}  # the last repetition that is made in the first turn
OURS = "cusyn"
BASELINE = "baseline"


@dataclass(frozen=True)
class Mechanism:
    """One mechanism of a peer.

    Args:
        name: as its door is told.
        repeats: runs on titanic, where results spread the most; one on each other table.
        cap_cpu_s: CPU seconds after which a run is ended.
        options: what our own door is told besides.
        every_table: whether the repeats are made on every table.
        late: the turn on the larger tables: 0, 1, or 3 for what is not known to finish.
    """

    name: str
    repeats: int = 3
    cap_cpu_s: int = CAP_CPU_S
    options: tuple[str, ...] = ()
    every_table: bool = False
    late: int = 0

    def seeds(self, table: str) -> range:
        """Number the repetitions; noise is never seeded, so a number is only a name."""
        return range(self.repeats if self.every_table or table == "titanic" else 1)


@dataclass(frozen=True)
class Peer:
    """One product in an environment of its own; ours runs in the environment of the benchmarks."""

    name: str
    package: str = ""
    mechanisms: tuple[Mechanism, ...] = field(default=())

    @property
    def requirements(self) -> Path | None:
        """The complete pins of its environment."""
        return HERE / f"requirements-{self.name}.txt" if self.package else None

    @property
    def door(self) -> Path:
        """The script that makes one release with it."""
        return HERE / "doors" / f"{self.name}_door.py"

    @property
    def version(self) -> str:
        """The pinned version of its package."""
        if self.requirements is None:
            return ""
        pins = self.requirements.read_text(encoding="utf-8")
        pinned = re.search(rf"^{re.escape(self.package)}(?:\[[^]]*])?==(\S+)", pins, re.MULTILINE)
        return pinned[1] if pinned else ""


ONE_WAY = ("--workload", "all 1-way")
REFERENCE = ("--options", '{"estimator": "private_pgm"}')

PEERS = (
    Peer(
        BASELINE,
        mechanisms=(
            Mechanism("resampled rows", 5, every_table=True),
            Mechanism("independent columns", 5, options=ONE_WAY, every_table=True),
        ),
    ),
    Peer(
        OURS,
        mechanisms=(
            Mechanism("aim", 5, every_table=True),
            Mechanism("mwem_pgm", 5, every_table=True),
            Mechanism("aim, private-pgm backend", 1, options=REFERENCE, late=3),
        ),
    ),
    Peer("dpmm", "dpmm", (Mechanism("mst"), Mechanism("privbayes"), Mechanism("aim", 1, late=3))),
    Peer(
        "smartnoise",
        "smartnoise-synth",
        (
            Mechanism("mst"),
            Mechanism("aim", 1, late=3),
            Mechanism("mwem", 1, cap_cpu_s=120, late=3),
        ),
    ),
    Peer("opendp", "opendp", (Mechanism("mst", 1), Mechanism("aim", cap_cpu_s=1000, late=1))),
)


@dataclass(frozen=True)
class Cell:
    """One run: which table, peer, mechanism and repetition."""

    table: str
    peer: Peer
    mechanism: Mechanism
    seed: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        """The cell as the results file spells it."""
        return (self.table, self.peer.name, self.mechanism.name, str(self.seed))

    @property
    def label(self) -> str:
        """What `--only` matches."""
        return f"{self.table}/{self.peer.name}/{self.mechanism.name}"

    @property
    def turn(self) -> tuple[int, int]:
        """Cheap runs of every table come first, so that a stopped run is broad."""
        late = self.mechanism.late if self.table != TABLES[0] else 0
        return max(late, 2 * (self.seed > EARLY_REPEATS[self.mechanism.every_table])), self.seed


def cells(quick: bool) -> Iterator[Cell]:
    """List the runs in the order in which they are made."""
    wanted = [
        Cell(table, peer, mechanism, seed)
        for table in (TABLES[:1] if quick else TABLES)
        for peer in PEERS
        for mechanism in peer.mechanisms
        for seed in ((0,) if quick else mechanism.seeds(table))
    ]
    return iter(sorted(wanted, key=lambda cell: cell.turn))
