"""Replays a journal from nothing: what every balance, state and declaration must be.

Pure: entries in, tables and problems out. It believes no table and no balance, only the entries,
and it never raises on a malformed one: a forged journal is a finding, not a crash.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from include.accounting.accountant import Cost, cost_in_currency
from include.budget import states
from include.budget.costing import recost, require_within
from include.budget.journal import ACCOUNTS, HELD, ISSUED, SPENT, entry_hash, genesis
from include.budget.models import same_person
from include.budget.partitions import claim_id, due_pools
from include.budget.statements import APPROVE, REPORT, asks_approval

MOST_PROBLEMS = 100
"""Findings kept; after so many a journal is beyond doubt."""

_POOL_FIXED = ("kind", "subject", "owner", "accounting", "delta_exponent", "generation", "cap_pico")
_OPENS_POOLS = ("register_population", "register_user_pool", "register_partitions", "generation")


@dataclass(frozen=True)
class Problem:
    """Something that cannot be true of an honest ledger.

    Args:
        seq: The journal entry it is about; None when it is about a table or an anchor.
        what: One sentence.

    Privacy: ledger only.
    """

    seq: int | None
    what: str

    def __str__(self) -> str:
        return self.what if self.seq is None else f"entry {self.seq}: {self.what}"

    def to_dict(self) -> dict[str, Any]:
        """Describe the problem in JSON types."""
        return asdict(self)


class Replay:
    """The state of a ledger, rebuilt entry by entry.

    Args:
        ledger_id: Id of the ledger; fixes the hash before the first entry.

    Privacy: ledger only.
    """

    def __init__(self, ledger_id: str) -> None:
        self.seq = 0
        self.hash = genesis(ledger_id)
        self.tables: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        self.balances: dict[str, dict[str, int]] = {}
        self.postings: list[tuple[int, int, str, str, int]] = []
        self.problems: list[Problem] = []
        # What every pool had spent right after the reconciliation that gave up an entry.
        self.lost: dict[tuple[int, str], Mapping[str, int]] = {}
        self.reconciled: dict[str, int] = defaultdict(int)
        self.spent_rounds: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        self.due: dict[tuple[str, str, str | None], set[str]] = {}  # until a declaration changes
        self.stated: dict[str, str] = {}  # the digest of the one table of a charge
        self.reported: dict[str, Mapping[str, Any]] = {}  # the last report of a charge
        self.approved: dict[str, set[str]] = defaultdict(set)  # the reports of a charge

    def feed(self, row: Mapping[str, Any]) -> None:
        """Replay one stored entry: seq, kind, charge_id, prev_hash, hash, body."""
        seq, before = row.get("seq"), len(self.problems)
        try:
            self._link(row)
            body = json.loads(row["body"])
            self._columns(row, body)
            self._post(body)
            self._change(body)
            self._facts(body)
        except Exception as fault:
            if len(self.problems) == before:
                self._report(f"is malformed ({type(fault).__name__})", seq)

    def finish(self) -> None:
        """Compare the accounts with what the charges say they hold and have spent."""
        held: dict[str, int] = defaultdict(int)
        spent = defaultdict(int, self.reconciled)
        for charge in self.tables["charge"].values():
            side = held if charge["state"] == states.RESERVED else spent
            if charge["state"] not in states.FREE_PERIOD:
                for pool_id, amount in json.loads(charge["amounts"]).items():
                    side[pool_id] += amount
        for pool_id, pool in self.tables["pool"].items():
            accounts = self.balances.get(pool_id, {})
            if (held[pool_id], spent[pool_id]) != self.balance(pool_id):
                self._report(f"by the end {pool_id} holds or has spent what no charge says")
            if -accounts.get(ISSUED, 0) != pool["cap_pico"]:
                self._report(f"by the end {pool_id} was issued another amount than its cap")

    def balance(self, pool_id: str) -> tuple[int, int]:
        """Return what a pool holds and has spent, units of 1e-12."""
        found = self.balances.get(pool_id, {})
        return found.get(HELD, 0), found.get(SPENT, 0)

    def uncharged(self, seq: int, hashed: str, used: Sequence[tuple[str, int]]) -> list[str]:
        """List the pools charged less for a lost entry than a witness had seen used by then.

        Args:
            seq: Number of the lost entry.
            hashed: Its hash.
            used: What the witness saw held or spent, by pool id, units of 1e-12.

        Returns:
            Pool ids; a pool this journal never opened cannot sell and is not among them.
        """
        spent = self.lost.get((seq, hashed), {})
        short = []
        for pool_id, told in used:
            pool = self.tables["pool"].get(pool_id)
            if pool is None:
                continue
            # A pool opened anew later owes all of it, whatever its own charges have spent since.
            paid = spent[pool_id] if pool_id in spent else self.reconciled[pool_id]
            if paid < min(told, pool["cap_pico"]):
                short.append(pool_id)
        return short

    def _report(self, what: str, seq: object = None) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            at = self.seq if seq is None else seq
            self.problems.append(Problem(at if isinstance(at, int) else None, what))

    def _link(self, row: Mapping[str, Any]) -> None:
        seq = row["seq"]
        if seq != self.seq + 1:
            self._report(f"stands where entry {self.seq + 1} must", seq)
        if row["prev_hash"] != self.hash:
            self._report("does not follow the hash before it", seq)
        if row["hash"] != entry_hash(seq, row["prev_hash"], row["body"]):
            self._report("its text does not give its hash: it was changed", seq)
        self.seq, self.hash = seq, row["hash"]

    def _columns(self, row: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        for name in ("seq", "kind", "charge_id"):
            if body[name] != row[name]:
                self._report(f"column {name} differs from its text")

    def _post(self, body: Mapping[str, Any]) -> None:
        totals: dict[str, int] = defaultdict(int)
        for line, (pool_id, account, amount) in enumerate(body["postings"]):
            if account not in ACCOUNTS or type(amount) is not int:
                self._report("has a posting that is no account and whole amount")
                continue
            if account == ISSUED and body["kind"] not in _OPENS_POOLS:
                self._report(f"issues budget to {pool_id} without opening a pool")
            if account == SPENT and amount <= 0:
                self._report(f"takes back what {pool_id} has spent")
            totals[pool_id] += amount
            accounts = self.balances.setdefault(pool_id, dict.fromkeys(ACCOUNTS, 0))
            accounts[account] += amount
            self.postings.append((self.seq, line, pool_id, account, amount))
        for pool_id, total in totals.items():
            if total:
                self._report(f"the postings of {pool_id} do not sum to zero")
            if any(self.balances[pool_id][name] < 0 for name in ACCOUNTS if name != ISSUED):
                self._report(f"an account of {pool_id} falls below zero: it is overdrawn")

    def _change(self, body: Mapping[str, Any]) -> None:
        for change in body["changes"]:
            table, key, values = change["table"], change["key"], change["values"]
            rows = self.tables[table]
            old, was = rows.get(key), change.get("was")
            if was is None:
                if old is not None:
                    self._report(f"creates {table} {key} a second time")
                rows[key] = dict(values)
            elif old is None:
                self._report(f"changes {table} {key}, which does not exist")
                rows[key] = dict(values)
            else:
                if any(old.get(name) != value for name, value in was.items()):
                    self._report(f"starts from a state that {table} {key} is not in")
                rows[key] = old | values
            self._check(body, table, key, old, rows[key])

    def _check(
        self,
        body: Mapping[str, Any],
        table: str,
        key: str,
        old: Mapping[str, Any] | None,
        new: Mapping[str, Any],
    ) -> None:
        if table in ("pool", "dataset_population"):
            self.due.clear()
        if table == "charge":
            self._check_charge(body, key, old, new)
        elif table == "pool" and old is None:
            if -self.balances.get(key, {}).get(ISSUED, 0) != new["cap_pico"]:
                self._report(f"opens pool {key} with another amount than its cap")
        elif table == "pool" and old is not None:
            if any(old[name] != new[name] for name in _POOL_FIXED):
                self._report(f"changes what pool {key} is for or its cap")
            if old["status"] == "retired" != new["status"]:
                self._report(f"reopens the retired pool {key}")

    def _check_charge(
        self,
        body: Mapping[str, Any],
        key: str,
        old: Mapping[str, Any] | None,
        new: Mapping[str, Any],
    ) -> None:
        kind, start = body["kind"], old["state"] if old else None
        if not states.is_legal(kind, start, new["state"]):
            self._report(f"moves charge {key} from {start} to {new['state']} by {kind}")
        if old is not None and new["fence"] < old["fence"]:
            self._report(f"lowers the fence of charge {key}")
        moved: dict[str, int] = {
            pool_id: amount
            for pool_id, account, amount in body["postings"]
            if account == (SPENT if kind == "open" else HELD) and amount > 0
        }
        if kind == "reserve" and new["snapshot_id"] is not None:
            held = self.tables["snapshot"].get(new["snapshot_id"], {"dataset": None})
            if any(held.get(name, new[name]) != new[name] for name in ("dataset", "partition")):
                self._report(f"lets charge {key} measure rows of another dataset or partition")
        if kind in ("reserve", "open"):
            told = {pool: amount for pool, amount in json.loads(new["amounts"]).items() if amount}
            if moved != told:
                self._report(f"posts other amounts than charge {key} says")
            self._check_pools(key, old, new)
        if kind == "open":
            self._check_cost(key, new)
        if kind in ("seal", "publish") and not new["transcript_digest"]:
            self._report(f"{kind}s charge {key} without a transcript")

    def _check_pools(self, key: str, old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> None:
        """Every pool of the dataset and the requester pays, and goes on paying, or none."""
        told = set(json.loads(new["amounts"]))
        if new["state"] != states.DENIED:
            due = set(json.loads(old["amounts"])) if old else self._due(new)
            if not due or told != due:
                self._report(f"charges {key} to other pools than those of its dataset and user")
        if any(self.tables["pool"][pool_id]["status"] == "frozen" for pool_id in told):
            self._report(f"charges {key} to a pool that is frozen")

    def _due(self, charge: Mapping[str, Any]) -> set[str]:
        asked = (charge["dataset"], charge["requester"], charge["partition"])
        if asked not in self.due:
            dataset, requester, partition = asked
            links = self.tables["dataset_population"].values()
            self.due[asked] = due_pools(
                self.tables["pool"],
                {link["population"] for link in links if link["dataset"] == dataset},
                dataset=dataset,
                requester=requester,
                partition=partition,
            )
        return self.due[asked]

    def _check_cost(self, key: str, charge: Mapping[str, Any]) -> None:
        cost = Cost(charge["cost_rho_pico"], charge["cost_epsilon_pure_pico"])
        try:
            require_within(recost(json.loads(charge["events"])), cost, "its events")
        except Exception:
            self._report(f"the events of charge {key} cost more than it paid for, or are unknown")
        for pool_id, amount in json.loads(charge["amounts"]).items():
            pool = self.tables["pool"][pool_id]
            due = cost_in_currency(cost, pool["accounting"], pool["delta_exponent"])
            if amount < due:
                self._report(f"charge {key} pays {pool_id} less than its plan costs")

    def _facts(self, body: Mapping[str, Any]) -> None:
        facts, kind = body["facts"], body["kind"]
        if kind == "reconcile":
            for pool_id, account, amount in body["postings"]:
                self.reconciled[pool_id] += amount if account == SPENT else 0
            spent = {pool_id: self.balance(pool_id)[1] for pool_id in self.tables["pool"]}
            for seq, hashed in facts["lost_anchors"]:
                # The first reconciliation counts: what is sold after it must not pay for the loss.
                self.lost.setdefault((int(seq), str(hashed)), spent)
        if kind == "begin_round":
            key = body["charge_id"]
            self.spent_rounds[key].extend(facts["events"])
            charge = self.tables["charge"][key]
            cost = Cost(charge["cost_rho_pico"], charge["cost_epsilon_pure_pico"])
            try:
                require_within(recost(self.spent_rounds[key]), cost, "its rounds")
            except Exception:
                self._report(f"the rounds of charge {key} cost more than its plan")
        if kind in ("table", REPORT, APPROVE, "begin_publishing"):
            self._statement(kind, body)
        if self.tables["claim"] and body["postings"]:
            self._check_partitions({pool_id for pool_id, _, _ in body["postings"]})

    def _statement(self, kind: str, body: Mapping[str, Any]) -> None:
        """Check what is said of a release; a charge that does not exist is malformed."""
        key, facts = body["charge_id"], body["facts"]
        charge, last = self.tables["charge"][key], self.reported.get(key)
        if kind == "begin_publishing":
            named = last["digest"] if last else ""
            asked = asks_approval(json.loads(charge["parameters"]))
            if asked and named not in self.approved[key]:
                self._report(f"begins publishing charge {key} without the approval it asked for")
            if last and not last["passed"]:
                self._report(f"begins publishing charge {key}, which did not pass its gate")
            return
        if charge["state"] not in (states.SEALED, states.PUBLISHING):
            self._report(f"states what is published of charge {key}, which is {charge['state']}")
        if kind == "table":
            if self.stated.setdefault(key, facts["digest"]) != facts["digest"]:
                self._report(f"names a second table of charge {key}")
            return
        if kind == REPORT:
            self._check_report(key, charge, facts)
            return
        self.approved[key].add(facts["report"])
        if same_person(body["actor"], charge["actor"]):
            self._report(f"lets {body['actor']} approve charge {key}, which they asked for")
        if facts["table"] != self.stated.get(key):
            self._report(f"approves another table of charge {key} than the journal names")
        if not last or facts["report"] != last["digest"]:
            self._report(f"approves another report of charge {key} than the journal names last")

    def _check_report(self, key: str, charge: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        last = self.reported.get(key)
        self.reported[key] = facts
        if key not in self.stated:
            self._report(f"states a report of charge {key} before its table")
        if charge["state"] == states.PUBLISHING:
            self._report(f"states a report of charge {key} after publishing began")
        if facts["passed"] and last and not last["passed"]:
            self._report(f"lets charge {key} pass after a report that did not")

    def _check_partitions(self, touched: set[str]) -> None:
        pools = self.tables["pool"]
        owners = {pools[pool_id]["owner"] for pool_id in touched}
        for pool_id, pool in pools.items():
            counts = pool["kind"] == "dataset" and pool["owner"] in owners
            if counts and self._figure(pool_id, pool) > pool["cap_pico"]:
                self._report(f"with its largest partitions {pool_id} is above its cap")

    def _figure(self, pool_id: str, parent: Mapping[str, Any]) -> int:
        lanes: dict[str, list[int]] = defaultdict(list)
        for lane_id, lane in self.tables["pool"].items():
            same = all(lane[name] == parent[name] for name in ("owner", "accounting", "generation"))
            if lane["kind"] == "partition" and same:
                lanes[claim_id(lane["owner"], lane["dataset"])].append(sum(self.balance(lane_id)))
        whole = sum(self.balance(pool_id))
        for claim, totals in lanes.items():
            seats = self.tables["claim"][claim]["at_most"]
            whole += sum(sorted(totals, reverse=True)[:seats])
        return whole
