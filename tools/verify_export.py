"""Verify an export of the privacy ledger without the product: Python's standard library only.

    python verify_export.py LEDGER.jsonl [--key PUBLIC.pem ...] [--manifest datapackage.json ...]
                            [--checkpoint checkpoint-*.json ...]

It walks the hash chain, replays every balance and state from the journal alone, compares them with
the figures the export claims, checks each signed checkpoint with the public keys you give (get them
from the publisher by another way), and checks that the entry a published manifest names is in the
export, and that its charge was published under this very manifest. It prints the first thing that
is wrong and exits with 1; a file it cannot read is 2.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EXPORT, JOURNAL, CHECKPOINT = "cusyn-ledger-export-1", "cusyn-ledger-1", "cusyn-checkpoint-1"
ACCOUNTS = ("issued", "available", "held", "spent")
ARROWS: dict[str, set[tuple[str | None, str]]] = {
    "reserve": {(None, "reserved"), (None, "denied")},
    "open": {("reserved", "opened")},
    "resume": {("opened", "opened")},
    "begin_round": {("opened", "opened")},
    "answer_round": {("opened", "opened")},
    "seal": {("opened", "sealed")},
    "forfeit": {("opened", "forfeited")},
    "void": {("reserved", "void")},
    "expire": {("reserved", "void")},
    "withhold": {("sealed", "withheld")},
    "begin_publishing": {("sealed", "publishing")},
    "publish": {("publishing", "published")},
}


class Bad(Exception):
    """The first thing that is wrong."""


def _folded(name: str) -> str:
    """Return a name without case, blanks and Unicode's compatible forms: Anna is no second anna."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    return " ".join(unicodedata.normalize("NFKC", plain).split())


# Ed25519, verification only (RFC 8032, section 5.1.7 and appendix A). Nothing secret is touched
# here, so plain integers will do.

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)
Point = tuple[int, int, int, int]


def _add(a: Point, b: Point) -> Point:
    e = (a[1] - a[0]) * (b[1] - b[0]) % P
    f = (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    s, t, u, v = f - e, h - g, h + g, f + e
    return s * t % P, u * v % P, t * u % P, s * v % P


def _times(scalar: int, point: Point) -> Point:
    total: Point = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            total = _add(total, point)
        point, scalar = _add(point, point), scalar >> 1
    return total


def _decode(encoded: bytes) -> Point | None:
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if (x & 1) != sign else x
    return x, y, 1, x * y % P


_BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = _decode(_BASE_Y.to_bytes(32, "little"))


def ed25519_verify(public: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether the 64-byte signature of the message was made by the 32-byte public key."""
    if len(public) != 32 or len(signature) != 64 or BASE is None:
        return False
    key, commitment = _decode(public), _decode(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or commitment is None or scalar >= L:
        return False
    digest = hashlib.sha512(signature[:32] + public + message).digest()
    left = _times(scalar, BASE)
    right = _add(commitment, _times(int.from_bytes(digest, "little") % L, key))
    same_x = (left[0] * right[2] - right[0] * left[2]) % P == 0
    return same_x and (left[1] * right[2] - right[1] * left[2]) % P == 0


def read_key(path: Path) -> tuple[str, bytes]:
    """Read an Ed25519 public key: PEM, or 64 hex digits. Returns its id and its 32 bytes."""
    text = path.read_text(encoding="ascii").strip()
    if "BEGIN PUBLIC KEY" in text:
        body = "".join(line for line in text.splitlines() if not line.startswith("-"))
        raw = base64.b64decode(body)[-32:]
    else:
        raw = bytes.fromhex(text)
    if len(raw) != 32:
        raise ValueError("not an Ed25519 public key")
    return hashlib.sha256(raw).hexdigest()[:16], raw


# The journal.


class Journal:
    """Replays the export, line by line; raises Bad at the first thing that is wrong."""

    def __init__(self, header: dict[str, Any], wanted: set[int]) -> None:
        if header.get("type") != "header" or header.get("format") != EXPORT:
            raise Bad("this is no export of a ledger, or of a version unknown to this script")
        self.header = header
        self.seq = 0
        self.hash = hashlib.sha256(f"{JOURNAL}\n{header['ledger_id']}".encode()).hexdigest()
        self.wanted, self.hashes = wanted, {0: self.hash}
        self.charges: dict[str, dict[str, Any]] = {}
        self.snapshots: dict[str, dict[str, Any]] = {}
        self.pools: dict[str, dict[str, Any]] = {}
        self.claims: dict[str, int] = {}
        self.populations: dict[str, set[str]] = defaultdict(set)  # of a dataset
        self.accounts: dict[str, dict[str, int]] = {}
        self.transcripts: dict[int, str] = {}
        self.sealed: dict[int, str] = {}
        # What every pool had spent right after the reconciliation that gave up an entry.
        self.lost: dict[tuple[int, str], dict[str, int]] = {}
        self.reconciled: dict[str, int] = defaultdict(int)
        self.claimed: list[dict[str, Any]] = []
        self.tables: dict[str, str] = {}  # the digest of the one table of a charge
        self.reports: dict[str, dict[str, Any]] = {}  # the last report of a charge
        self.approved: dict[str, set[str]] = defaultdict(set)  # the reports of a charge

    def entry(self, row: dict[str, Any]) -> None:
        """Replay one entry."""
        seq, text = row["seq"], row["body"]
        if seq != self.seq + 1:
            raise Bad(f"entry {seq}: stands where entry {self.seq + 1} must")
        if row["prev_hash"] != self.hash:
            raise Bad(f"entry {seq}: does not follow the hash before it")
        made = hashlib.sha256(f"{JOURNAL}\n{seq}\n{self.hash}\n{text}".encode()).hexdigest()
        if made != row["hash"]:
            raise Bad(f"entry {seq}: its text does not give its hash: it was changed")
        self.seq, self.hash = seq, made
        if seq in self.wanted:
            self.hashes[seq] = made
        body = json.loads(text)
        if any(body[name] != row[name] for name in ("seq", "kind", "charge_id")):
            raise Bad(f"entry {seq}: a column differs from its text")
        self._post(body)
        for change in body["changes"]:
            self._change(body, change)
        self._caps({pool for pool, _, _ in body["postings"]})
        if body["kind"] in ("table", "report", "approve", "begin_publishing"):
            self._statement(body["kind"], body)
        if body["kind"] == "reconcile":
            for pool, account, amount in body["postings"]:
                self.reconciled[pool] += amount if account == "spent" else 0
            spent = {pool: self.accounts[pool]["spent"] for pool in self.pools}
            for at, value in body["facts"]["lost_anchors"]:
                # The first one counts: what is sold after it must not pay for what was lost.
                self.lost.setdefault((int(at), value), spent)

    def _post(self, body: dict[str, Any]) -> None:
        totals: dict[str, int] = defaultdict(int)
        for pool, account, amount in body["postings"]:
            if account not in ACCOUNTS or type(amount) is not int:
                raise Bad(f"entry {self.seq}: has a posting that is no account and whole amount")
            if account == "spent" and amount <= 0:
                raise Bad(f"entry {self.seq}: takes back what {pool} has spent")
            totals[pool] += amount
            self.accounts.setdefault(pool, dict.fromkeys(ACCOUNTS, 0))[account] += amount
        for pool, total in totals.items():
            if total:
                raise Bad(f"entry {self.seq}: the postings of {pool} do not sum to zero")
            if any(self.accounts[pool][name] < 0 for name in ACCOUNTS[1:]):
                raise Bad(f"entry {self.seq}: an account of {pool} falls below zero: overdrawn")

    def _change(self, body: dict[str, Any], change: dict[str, Any]) -> None:
        key, values, was = change["key"], change["values"], change.get("was")
        if change["table"] == "claim":
            self.claims[key] = values["at_most"]
        if change["table"] == "dataset_population":
            self.populations[values["dataset"]].add(values["population"])
        if change["table"] == "snapshot":
            self.snapshots[change["key"]] = change["values"]
        if change["table"] not in ("charge", "pool"):
            return
        rows = self.charges if change["table"] == "charge" else self.pools
        old = rows.get(key)
        if (was is None) != (old is None):
            raise Bad(f"entry {self.seq}: {change['table']} {key} is made twice or never")
        if old and any(old.get(name) != value for name, value in (was or {}).items()):
            raise Bad(f"entry {self.seq}: starts from a state that {key} is not in")
        new = rows[key] = {**(old or {}), **values}
        if change["table"] == "charge":
            self._charge(body, key, old, new)
        elif old is None and -self.accounts[key]["issued"] != new["cap_pico"]:
            raise Bad(f"entry {self.seq}: opens pool {key} with another amount than its cap")
        elif old is not None and old["cap_pico"] != new["cap_pico"]:
            raise Bad(f"entry {self.seq}: changes the cap of pool {key}")

    def _charge(
        self, body: dict[str, Any], key: str, old: dict[str, Any] | None, new: dict[str, Any]
    ) -> None:
        kind, start = body["kind"], old["state"] if old else None
        if (start, new["state"]) not in ARROWS.get(kind, ()):
            raise Bad(f"entry {self.seq}: moves {key} from {start} to {new['state']} by {kind}")
        if old and new["fence"] < old["fence"]:
            raise Bad(f"entry {self.seq}: lowers the fence of {key}")
        account = {"reserve": "held", "open": "spent"}.get(kind)
        if account:
            moved = {p: n for p, name, n in body["postings"] if name == account and n > 0}
            told = {pool: amount for pool, amount in json.loads(new["amounts"]).items() if amount}
            if moved != told:
                raise Bad(f"entry {self.seq}: posts other amounts than {key} says")
            self._paid(key, old, new)
        if kind == "seal":
            self.transcripts[self.seq] = new["transcript_digest"]
            self.sealed[self.seq] = key
        if kind == "reserve" and new["snapshot_id"] is not None:
            held = self.snapshots.get(new["snapshot_id"], {"dataset": None})
            if any(held.get(name, new[name]) != new[name] for name in ("dataset", "partition")):
                raise Bad(f"entry {self.seq}: {key} measures rows of another dataset or partition")

    def _paid(self, key: str, old: dict[str, Any] | None, new: dict[str, Any]) -> None:
        """Every pool of the dataset and the requester pays, and goes on paying, or none."""
        told = set(json.loads(new["amounts"]))
        if new["state"] != "denied":
            due = set(json.loads(old["amounts"])) if old else self._due(new)
            if not due or told != due:
                raise Bad(f"entry {self.seq}: {key} is paid by other pools than it must be")
        if any(self.pools[pool]["status"] == "frozen" for pool in told):
            raise Bad(f"entry {self.seq}: {key} is paid by a pool that is frozen")

    def _due(self, charge: dict[str, Any]) -> set[str]:
        dataset, populations = charge["dataset"], self.populations[charge["dataset"]]
        whole, lanes, user = {}, {}, set()
        for pool, row in self.pools.items():
            same = (row["owner"], row["accounting"], row["generation"])
            if row["status"] == "retired":
                continue
            if row["kind"] == "dataset" and row["owner"] in populations:
                whole[same] = pool
            elif row["dataset"] != dataset:
                continue
            elif row["kind"] == "partition" and row["partition"] == charge["partition"]:
                lanes[same] = pool
            elif row["kind"] == "user" and row["owner"] == charge["requester"]:
                user.add(pool)
        of_data = {lanes.get(same, pool) for same, pool in whole.items()}
        return of_data | user if of_data and user else set()

    def _statement(self, kind: str, body: dict[str, Any]) -> None:
        key, facts = body["charge_id"], body["facts"]
        charge, last = self.charges[key], self.reports.get(key)
        if kind == "begin_publishing":
            asked = json.loads(charge["parameters"]).get("approval") == "required"
            if asked and (last["digest"] if last else "") not in self.approved[key]:
                raise Bad(f"entry {self.seq}: publishes {key} without the approval it asked for")
            if last and not last["passed"]:
                raise Bad(f"entry {self.seq}: publishes {key}, which did not pass its gate")
            return
        if charge["state"] not in ("sealed", "publishing"):
            raise Bad(f"entry {self.seq}: states what is published of {key}, {charge['state']}")
        if kind == "table":
            if self.tables.setdefault(key, facts["digest"]) != facts["digest"]:
                raise Bad(f"entry {self.seq}: names a second table of {key}")
            return
        if kind == "report":
            self._report(key, charge, facts)
            return
        self.approved[key].add(facts["report"])
        if _folded(body["actor"]) == _folded(charge["actor"]):
            raise Bad(f"entry {self.seq}: lets {body['actor']} approve what they asked for")
        if facts["table"] != self.tables.get(key):
            raise Bad(f"entry {self.seq}: approves another table of {key} than the journal names")
        if not last or facts["report"] != last["digest"]:
            raise Bad(f"entry {self.seq}: approves another report of {key} than the last one")

    def _report(self, key: str, charge: dict[str, Any], facts: dict[str, Any]) -> None:
        last = self.reports.get(key)
        self.reports[key] = facts
        if key not in self.tables:
            raise Bad(f"entry {self.seq}: states a report of {key} before its table")
        if charge["state"] == "publishing":
            raise Bad(f"entry {self.seq}: states a report of {key} after publishing began")
        if facts["passed"] and last and not last["passed"]:
            raise Bad(f"entry {self.seq}: lets {key} pass after a report that did not")

    def _caps(self, touched: set[str]) -> None:
        for pool in touched:
            if self._used(pool) > self.pools[pool]["cap_pico"]:
                raise Bad(f"entry {self.seq}: pool {pool} is above its cap")
        if not self.claims:
            return
        for pool, row in self.pools.items():
            if row["kind"] == "dataset" and self._figure(pool, row) > row["cap_pico"]:
                raise Bad(f"entry {self.seq}: with its largest partitions {pool} is above its cap")

    def _used(self, pool: str) -> int:
        accounts = self.accounts.get(pool, {})
        return accounts.get("held", 0) + accounts.get("spent", 0)

    def _figure(self, pool: str, parent: dict[str, Any]) -> int:
        lanes: dict[str, list[int]] = defaultdict(list)
        for name, row in self.pools.items():
            same = all(row[key] == parent[key] for key in ("owner", "accounting", "generation"))
            if row["kind"] == "partition" and same:
                lanes[f"{row['owner']}@{row['dataset']}"].append(self._used(name))
        return self._used(pool) + sum(
            sum(sorted(used, reverse=True)[: self.claims[claim]]) for claim, used in lanes.items()
        )

    def end(self) -> None:
        """Compare what was replayed with what the export claims."""
        if (self.seq, self.hash) != (self.header["seq"], self.header["hash"]):
            raise Bad(f"the export ends at entry {self.seq}, its header says {self.header['seq']}")
        self._conserved()
        pools, charges = set(self.pools), set(self.charges)
        for row in self.claimed:
            if row["type"] == "pool":
                name = row["pool_id"]
                pools.discard(name)
                held, spent = (self.accounts.get(name, {}).get(a, 0) for a in ("held", "spent"))
                if (row["held_pico"], row["spent_pico"]) != (held, spent):
                    raise Bad(f"pool {name}: its balance differs from the journal")
            elif row["type"] == "charge":
                name = row["charge_id"]
                charges.discard(name)
                if self.charges.get(name, {}).get("state") != row["state"]:
                    raise Bad(f"charge {name}: its state differs from the journal")
        if pools or charges:
            raise Bad(f"{min(pools or charges)}: journalled, and missing from the export's tables")

    def _conserved(self) -> None:
        held: dict[str, int] = defaultdict(int)
        spent = defaultdict(int, self.reconciled)
        for charge in self.charges.values():
            side = held if charge["state"] == "reserved" else spent
            if charge["state"] not in ("denied", "void"):
                for pool, amount in json.loads(charge["amounts"]).items():
                    side[pool] += amount
        for pool, row in self.pools.items():
            accounts = self.accounts[pool]
            if (held[pool], spent[pool]) != (accounts["held"], accounts["spent"]):
                raise Bad(f"pool {pool}: it holds or has spent what no charge says")
            if -accounts["issued"] != row["cap_pico"]:
                raise Bad(f"pool {pool}: it was issued another amount than its cap")

    def anchored(self, seq: int, hashed: str, source: str) -> None:
        """Check that an entry seen outside is in the journal."""
        if self.hashes.get(seq) != hashed and (seq, hashed) not in self.lost:
            raise Bad(f"entry {seq}: missing or changed although {source} has seen it")

    def published(self, seq: int, path: Path) -> None:
        """Check that the charge an entry seals was published under this manifest, if it was."""
        told = self.charges.get(self.sealed.get(seq, ""), {}).get("manifest_digest")
        if told not in (None, hashlib.sha256(path.read_bytes()).hexdigest()):
            raise Bad(
                f"entry {seq}: its charge was published under another manifest than {path.name}: "
                "the manifest was changed"
            )

    def charged(self, body: dict[str, Any], source: str) -> None:
        """Check that a lost checkpoint's reconciliation charged all that it had seen used."""
        seq, hashed = body["seq"], body["hash"]
        if self.hashes.get(seq) == hashed:
            return
        spent = self.lost[seq, hashed]
        for pool, told in body["pools"].items():
            row = self.pools.get(pool)
            if row is None:
                continue  # never opened here, so nothing can be sold from it
            # A pool opened anew later owes all of it, whatever its own charges have spent since.
            paid = spent[pool] if pool in spent else self.reconciled[pool]
            if paid < min(sum(told), row["cap_pico"]):
                raise Bad(
                    f"entry {seq}: lost, and its reconciliation charged {pool} less than {source} "
                    "had seen used: budget was given back"
                )


def check_checkpoint(
    journal: Journal, row: dict[str, Any], keys: dict[str, bytes], source: str
) -> str:
    """Check a checkpoint's signature and entry; returns the key's id, '' when it is not given."""
    body = json.loads(row["body"])
    if body["ledger_id"] != journal.header["ledger_id"]:
        raise Bad(f"{source}: it is about another ledger")
    journal.anchored(body["seq"], body["hash"], source)
    journal.charged(body, source)
    key = keys.get(row["key_id"])
    if key is None:
        return ""
    message = f"{CHECKPOINT}\n{row['body']}".encode()
    if not ed25519_verify(key, message, bytes.fromhex(row["signature"])):
        raise Bad(f"{source}: its signature was not made by key {row['key_id']}")
    return str(row["key_id"])


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read the export line by line."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def lineage_of(path: Path) -> dict[str, Any]:
    """Read which entry a manifest names."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["dp"]["lineage"]
    return found


def verify(
    export: Path, keys: dict[str, bytes], manifests: list[Path], checkpoints: list[Path]
) -> str:
    """Verify an export; returns a summary, raises Bad with the first thing that is wrong."""
    lineages = {path: lineage_of(path) for path in manifests}
    outside = [(path, json.loads(path.read_text(encoding="utf-8"))) for path in checkpoints]
    wanted = {int(one["entry_seq"]) for one in lineages.values()}
    wanted |= {json.loads(row["body"])["seq"] for _, row in outside}
    source = lines(export)
    journal = Journal(next(source, {}), wanted)
    inside = []
    for row in source:
        if row["type"] == "entry":
            journal.entry(row)
        elif row["type"] == "checkpoint":
            inside.append((f"checkpoint of entry {json.loads(row['body'])['seq']}", row))
        else:
            journal.claimed.append(row)
    journal.end()
    if inside:  # a second reading keeps memory flat: only now is it known which hashes are needed
        needed = {json.loads(row["body"])["seq"] for _, row in inside}
        journal.hashes |= {
            row["seq"]: row["hash"] for row in lines(export) if row.get("seq") in needed
        }
    signed = [
        check_checkpoint(journal, row, keys, name)
        for name, row in [*inside, *((f"checkpoint {path.name}", row) for path, row in outside)]
    ]
    for path, lineage in lineages.items():
        seq = int(lineage["entry_seq"])
        journal.anchored(seq, lineage["entry_hash"], f"the manifest {path.name}")
        if journal.transcripts.get(seq) != lineage["transcript_digest"]:
            raise Bad(f"entry {seq}: seals no such transcript as the manifest {path.name} names")
        journal.published(seq, path)
    known = sum(map(bool, signed))
    verdict = "nothing is wrong"
    loud = ""
    if journal.lost:
        verdict = "nothing else is wrong"
        loud = (
            f"RECONCILED: {len(journal.lost)} entries were lost (of those seen outside: "
            f"{', '.join(str(seq) for seq, _ in sorted(journal.lost))}); their budget was charged "
            "by an administrator's word: ask the publisher why\n"
        )
    return loud + (
        f"{journal.seq} entries, {len(journal.charges)} charges, {len(journal.pools)} pools, "
        f"{len(signed)} checkpoints ({known} with a signature checked), "
        f"{len(lineages)} manifests: {verdict}; head {journal.hash}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("export", type=Path, help="JSON Lines written by the product's export")
    parser.add_argument("--key", type=Path, nargs="*", default=[], help="public keys you trust")
    parser.add_argument("--manifest", type=Path, nargs="*", default=[], help="datapackage.json")
    parser.add_argument("--checkpoint", type=Path, nargs="*", default=[], help="signed checkpoints")
    told = parser.parse_args(arguments)
    try:
        keys = dict(read_key(path) for path in told.key)
        *loud, summary = verify(told.export, keys, told.manifest, told.checkpoint).splitlines()
        print("\n".join([*loud, f"good: {summary}"]))
    except Bad as fault:
        print(f"BAD: {fault}")
        return 1
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as fault:
        print(f"UNREADABLE: {type(fault).__name__}: {fault}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
