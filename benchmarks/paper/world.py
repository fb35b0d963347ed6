"""A scratch project for MUL: one dataset, one pool of epsilon 10, four users; real stages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.paper.research import Table
from benchmarks.tables import Clique, write_codes
from include.budget.models import Charge
from include.budget.reader import Pool
from include.config.loader import load_checked
from include.settings import load_settings
from include.stages.run import ReleaseRun, Workplace

USERS = ("user1", "user2", "user3", "user4")
TOTAL_EPSILON = 10
LENGTH = 5
ACTOR = "benchmark"


class World:
    """Four users who may each spend epsilon 10 on one dataset, whose own pool holds 10 as well.

    The declarations are files, as a steward writes them (YAML reads JSON); the ledger is a SQLite
    database of its own below `root`.

    Args:
        root: an empty folder.
        data: the research table; it becomes the dataset's source.
        accounting: currency of the dataset pool, `zcdp` or `epsilon`.
        reuse: whether a release may draw on earlier ones, `off` or `dataset`.
        mechanism, epsilon: what every request asks for; epsilon as decimal text.
        interest: each user's queries.
    """

    def __init__(
        self,
        root: Path,
        data: Table,
        *,
        accounting: str,
        reuse: str,
        mechanism: str,
        epsilon: str,
        interest: Sequence[Sequence[Clique]],
    ) -> None:
        self.root, self.data = root, data
        self._declare(accounting, reuse)
        for user, queries in zip(USERS, interest, strict=True):
            self._write(
                f"releases/{user}.yaml",
                {
                    "release": user,
                    "dataset": "table",
                    "requester": user,
                    "mechanism": mechanism,
                    "epsilon": epsilon,
                    "accept_at_least": f"{float(epsilon) / 2:.6f}",
                    "interest": [list(query) for query in queries],
                    "publish": {"uri": "releases"},
                },
            )
        self.place = self._open()

    def run(self, user: str, turn: int) -> ReleaseRun:
        """Return the run of one request."""
        config = self.root / "config"
        checked = load_checked(config / "releases" / f"{user}.yaml", config)
        return ReleaseRun(
            checked.release, checked.dataset, checked.budgets, period=f"turn-{turn}", actor=ACTOR,
            scheduled=True, dag_id=f"release__{user}", run_id=f"turn-{turn}",
        )  # fmt: skip

    def ask(self, user: str, turn: int) -> tuple[ReleaseRun, Charge]:
        """Take the snapshot and put one request to BudgetEval."""
        from include.stages.budget_eval import budget_eval
        from include.stages.load import load

        run = self.run(user, turn)
        return run, budget_eval(run, self.place, load(run, self.place))

    def dataset_pool(self) -> Pool:
        """Return the dataset pool as anybody reads it."""
        (pool,) = (pool for pool in self.place.reader.pools() if pool.kind == "dataset")
        return pool

    def _declare(self, accounting: str, reuse: str) -> None:
        for name in ("datasets", "releases"):
            (self.root / "config" / name).mkdir(parents=True)
        write_codes(self.root / "source.csv", self.data.domain, self.data.codes)
        columns = {
            name: {"type": "category", "values": [str(code) for code in range(cells)]}
            for name, cells in self.data.domain.items()
        }
        self._write(
            "datasets/table.yaml",
            {
                "dataset": "table",
                "populations": ["people"],
                "privacy_unit": {"what": "row", "max_rows": 1},
                "source": {"path": "source.csv"},
                "columns": columns,
                "reuse": reuse,
            },
        )
        whole = str(TOTAL_EPSILON)
        pool = {"epsilon": whole, "delta": "1e-9", "accounting": accounting, "privacy_unit": "row"}
        users = {user: {"datasets": {"table": {"epsilon": whole}}} for user in USERS}
        self._write("budgets.yaml", {"populations": {"people": pool}, "users": users})

    def _write(self, name: str, content: object) -> None:
        (self.root / "config" / name).write_text(json.dumps(content, indent=1), encoding="utf-8")

    def _open(self) -> Workplace:
        from include.budget.migrations import migrate
        from include.budget.store import connect
        from include.stages.ledger import open_ledger
        from include.stages.register import register

        settings = replace(
            load_settings(),
            project_root=self.root,
            config_dir=self.root / "config",
            var_dir=self.root,
            protected_dir=self.root / "protected",
            work_dir=self.root / "work",
            keys_dir=self.root / "keys",
            checkpoints_dir=self.root / "checkpoints",
            releases_uri=str(self.root / "releases"),
            ledger_url=f"sqlite:///{self.root / 'ledger.db'}",
        )
        migrate(connect(settings.ledger_url, create=True))
        ledger = open_ledger(settings, settings.ledger_url)
        checked = self.run(USERS[0], 0)
        register(ledger, checked.budgets, [checked.dataset], actor=ACTOR)
        return Workplace(settings, ledger)
