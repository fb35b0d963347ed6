"""The export, and the standalone verifier that needs nothing of ours."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from include.budget.anchors import manifest_anchor
from include.budget.checkpoint import Checkpoint, checkpoint, export_checkpoint, message
from include.budget.export import export
from include.budget.journal import entry_hash
from include.budget.models import Charge
from include.budget.reconcile import Evidence
from tests.budget.world import World
from tools import verify_export

TOOL = Path(verify_export.__file__)
POOL = "dataset:people:zcdp:1"


class Key:
    """A signing key as the publisher keeps it: id and sign."""

    def __init__(self) -> None:
        self._private = Ed25519PrivateKey.generate()
        raw = self._private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
        self.key_id = verify_export.hashlib.sha256(raw).hexdigest()[:16]
        self.pem = self._private.public_key().public_bytes(
            Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
        )

    def sign(self, message: bytes, /) -> bytes:
        return self._private.sign(message)


class Auditor:
    """What an auditor holds: an export, the public key, a checkpoint, published manifests."""

    def __init__(self, world: World, folder: Path) -> None:
        self.folder = folder
        self.manifests = [self._publish(world, "1"), self._publish(world, "2", "0.5")]
        key = Key()
        made = checkpoint(world.engine, key)
        self.checkpoint = export_checkpoint(made, folder / "anchors")
        world.reserve("3", "3")
        world.reserve("4", "0.5")
        self.key = folder / "public.pem"
        self.key.write_bytes(key.pem)
        self.export = folder / "ledger.jsonl"
        with self.export.open("w", encoding="utf-8") as file:
            self.entries = export(world.engine, file)

    def _publish(self, world: World, name: str, epsilon: str = "1") -> Path:
        """Publish a release under the manifest that names its sealed entry."""
        charge = world.ledger.begin_publishing(world.sealed(name, epsilon).charge_id)
        path = self._manifest(charge)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        world.ledger.publish(charge.charge_id, manifest_digest=digest, uri="releases/x")
        return path

    def _manifest(self, charge: Charge) -> Path:
        path = self.folder / f"{charge.period}.json"
        lineage = {
            "entry_seq": charge.sealed_seq,
            "entry_hash": charge.sealed_hash,
            "transcript_digest": charge.transcript_digest,
            "release": charge.release,
            "period": charge.period,
        }
        path.write_text(json.dumps({"dp": {"lineage": lineage}}), encoding="utf-8")
        return path

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.export.read_text().splitlines()]

    def write(self, lines: list[dict[str, Any]]) -> None:
        self.export.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def run(self, *more: object) -> tuple[int, str]:
        told = subprocess.run(
            [sys.executable, "-I", str(TOOL), str(self.export), *map(str, more)],
            capture_output=True,
            text=True,
            check=False,
        )
        return told.returncode, told.stdout

    def everything(self) -> tuple[int, str]:
        return self.run(
            "--key", self.key, "--checkpoint", self.checkpoint, "--manifest", *self.manifests
        )


@pytest.fixture
def auditor(world: World, tmp_path: Path) -> Auditor:
    return Auditor(world, tmp_path)


def test_a_good_export_is_accepted(auditor: Auditor) -> None:
    code, told = auditor.everything()
    assert code == 0, told
    assert f"good: {auditor.entries} entries, 4 charges, 3 pools, 2 checkpoints (2 with" in told


def test_a_published_manifest_alone_is_enough(auditor: Auditor) -> None:
    assert auditor.run("--manifest", auditor.manifests[0])[0] == 0
    manifest = json.loads(auditor.manifests[0].read_text())
    manifest["dp"]["lineage"]["entry_hash"] = "0" * 64
    auditor.manifests[0].write_text(json.dumps(manifest))
    code, told = auditor.run("--manifest", auditor.manifests[0])
    assert code == 1 and "entry 7: missing or changed although the manifest" in told


def test_a_manifest_that_claims_less_than_the_published_one_is_found(
    auditor: Auditor, world: World
) -> None:
    """Whoever edits the claim keeps the entry that the ledger knows."""
    path = auditor.manifests[1]
    manifest = json.loads(path.read_text()) | {"epsilon": "0.001"}
    path.write_text(json.dumps(manifest))
    code, told = auditor.everything()
    assert code == 1 and "was published under another manifest than period_2.json" in told
    [problem] = world.verify(manifest_anchor(path)).problems
    assert "was published under another manifest than the manifest of monthly" in str(problem)
    assert world.verify(manifest_anchor(auditor.manifests[0])).ok


def test_the_script_imports_the_standard_library_only() -> None:
    tree = ast.parse(TOOL.read_text())
    names = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert {name.split(".")[0] for name in names} <= set(sys.stdlib_module_names)


def _edit(lines: list[dict[str, Any]], seq: int, change: Callable[[dict[str, Any]], None]) -> None:
    line = next(line for line in lines if line.get("seq") == seq and line["type"] == "entry")
    change(line)


def _rechain(lines: list[dict[str, Any]], seq: int, edit: Callable[[Any], None]) -> None:
    """Forge an entry and every hash after it, as the owner of the database can."""
    prev = ""
    for line in lines:
        if line["type"] != "entry":
            continue
        if line["seq"] == seq:
            body = json.loads(line["body"])
            edit(body)
            line["body"] = json.dumps(body)
        line["prev_hash"] = prev or line["prev_hash"]
        line["hash"] = prev = entry_hash(line["seq"], line["prev_hash"], line["body"])
    lines[0]["hash"] = prev


def _amounts(factor: int) -> Callable[[Any], None]:
    def edit(body: Any) -> None:
        body["postings"] = [[p, a, n * factor] for p, a, n in body["postings"]]

    return edit


def _postings_of(amount: int) -> Callable[[Any], None]:
    def edit(body: Any) -> None:
        body["postings"] = [[POOL, "available", -amount], [POOL, "spent", amount]]

    return edit


def _spare(pool: str) -> Callable[[Any], None]:
    def edit(body: Any) -> None:
        body["postings"] = [one for one in body["postings"] if one[0] != pool]
        values = body["changes"][0]["values"]
        left = {key: n for key, n in json.loads(values["amounts"]).items() if key != pool}
        values["amounts"] = json.dumps(left)

    return edit


@pytest.mark.parametrize(
    ("attack", "finding"),
    [
        (lambda ls: _edit(ls, 6, lambda e: e.update(body=e["body"] + " ")), "entry 6: its text"),
        (lambda ls: ls.remove(ls[6]), "entry 7: stands where entry 6 must"),
        (lambda ls: ls.insert(6, ls.pop(7)), "entry 7: stands where entry 6 must"),
        (lambda ls: _edit(ls, 6, lambda e: e.update(kind="void")), "entry 6: a column differs"),
        (lambda ls: _edit(ls, 5, lambda e: e.update(prev_hash="0")), "entry 5: does not follow"),
        (lambda ls: _rechain(ls, 5, _amounts(2)), "entry 5: posts other amounts"),
        (lambda ls: _rechain(ls, 6, _amounts(-1)), "entry 6: takes back"),
        (lambda ls: _rechain(ls, 5, _amounts(10**6)), "entry 5: an account"),
        (lambda ls: _rechain(ls, 5, _spare(POOL)), "entry 5: ch_"),
        (lambda ls: _rechain(ls, 6, _spare(POOL)), "is paid by other pools than it must be"),
        (lambda ls: _rechain(ls, 7, lambda b: b.update(kind="open")), "entry 7: a column differs"),
        (lambda ls: _rechain(ls, 15, _postings_of(5)), "holds or has spent what no charge says"),
        (lambda ls: ls[0].update(seq=3), "the export ends at entry"),
        (lambda ls: ls.pop(-2), "journalled, and missing"),
        (lambda ls: ls.clear(), "no export"),
    ],
)
def test_a_bad_export_is_refused_at_its_first_bad_entry(
    auditor: Auditor, attack: Callable[[Any], None], finding: str
) -> None:
    lines = [line for line in auditor.lines() if line["type"] != "checkpoint"]
    attack(lines)
    auditor.write(lines)
    code, told = auditor.run()
    assert (code, finding in told) == (1, True), told


def test_a_changed_balance_or_state_is_found(auditor: Auditor) -> None:
    good = auditor.export.read_text()
    for kind, change, finding in (
        ("pool", {"spent_pico": 0}, "its balance differs"),
        ("charge", {"state": "void"}, "its state differs"),
    ):
        auditor.export.write_text(good)
        lines = auditor.lines()
        next(line for line in lines if line["type"] == kind).update(change)
        auditor.write(lines)
        code, told = auditor.run()
        assert code == 1 and finding in told


def test_a_cut_tail_is_found_by_the_checkpoint_and_by_a_manifest(auditor: Auditor) -> None:
    lines = auditor.lines()
    kept = lines[:5]  # the header and four registrations: a perfect, younger ledger
    kept[0] |= {"seq": 4, "hash": kept[4]["hash"]}
    kept += [line | {"held_pico": 0, "spent_pico": 0} for line in lines if line["type"] == "pool"]
    auditor.write(kept)
    assert auditor.run()[0] == 0
    assert "missing or changed" in auditor.run("--manifest", auditor.manifests[1])[1]
    assert "missing or changed" in auditor.run("--checkpoint", auditor.checkpoint)[1]


def test_a_checkpoint_signed_by_another_key_is_refused(auditor: Auditor) -> None:
    forged = json.loads(auditor.checkpoint.read_text())
    forged["signature"] = Key().sign(b"anything").hex()
    auditor.checkpoint.write_text(json.dumps(forged))
    code, told = auditor.run("--key", auditor.key, "--checkpoint", auditor.checkpoint)
    assert code == 1 and "its signature was not made by key" in told


def test_a_checkpoint_repeats_until_something_happens(world: World) -> None:
    key = Key()
    first = checkpoint(world.engine, key)
    assert checkpoint(world.engine, key) == first
    world.reserve()
    second = checkpoint(world.engine, key)
    assert second.anchor.seq == first.anchor.seq + 1
    assert second.facts["charges"] == 1
    assert world.verify(first.anchor, second.anchor).ok


@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "of another entry"])
def test_a_row_put_where_a_checkpoint_is_due_vouches_for_nothing(
    world: World, signed: bool
) -> None:
    key = Key()
    first = checkpoint(world.engine, key)
    kept = first.to_dict() if signed else Checkpoint("{}", key.key_id, "00").to_dict()
    with world.engine.begin() as connection:
        connection.execute(
            text("INSERT INTO dp_checkpoint VALUES (:seq, :body, :key_id, :signature)"),
            {"seq": first.anchor.seq + 1, **kept},
        )
    world.reserve()
    second = checkpoint(world.engine, key)
    assert second.anchor.seq == first.anchor.seq + 1
    assert second.signature == key.sign(message(second.body)).hex()
    assert not world.verify().ok, "the row is still told of"


def test_an_unreadable_file_is_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("not json")
    assert verify_export.main([str(path)]) == 2
    assert "UNREADABLE" in capsys.readouterr().out


def test_nothing_that_recognises_protected_content_is_exported(world: World) -> None:
    world.ledger.register_snapshot(
        "s1", dataset="survey", commitment="aa", mac="SECRETMAC", locator="SECRETPLACE", actor="a"
    )
    target = io.StringIO()
    export(world.engine, target)
    assert "s1" in target.getvalue() and "SECRET" not in target.getvalue()


# Ed25519: the vectors of RFC 8032, section 7.1, and random ones against a real implementation.

VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b4"
        "6bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d"
        "8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6"
        "594a7c15e9716ed28dc027beceea1ec40a",
    ),
]


def _vector(public: str, message: str, signature: str) -> tuple[bytes, bytes, bytes]:
    return bytes.fromhex(public), bytes.fromhex(message), bytes.fromhex(signature)


@pytest.mark.parametrize("vector", VECTORS)
def test_the_vectors_of_rfc_8032(vector: tuple[str, str, str]) -> None:
    public, message, signature = _vector(*vector)
    assert verify_export.ed25519_verify(public, message, signature)
    assert not verify_export.ed25519_verify(public, message + b"x", signature)
    for at in (0, 31, 32, 63):
        bad = bytearray(signature)
        bad[at] ^= 1
        assert not verify_export.ed25519_verify(public, message, bytes(bad))


def test_a_scalar_above_the_group_order_is_refused() -> None:
    """S + L would verify too: signatures must not be malleable (RFC 8032, 5.1.7)."""
    public, message, signature = _vector(*VECTORS[1])
    raised = int.from_bytes(signature[32:], "little") + verify_export.L
    again = signature[:32] + raised.to_bytes(32, "little")
    assert not verify_export.ed25519_verify(public, message, again)


@settings(max_examples=15, deadline=None)
@given(seed=st.binary(min_size=32, max_size=32), message=st.binary(max_size=200))
def test_random_signatures_of_a_real_implementation(seed: bytes, message: bytes) -> None:
    key = Ed25519PrivateKey.from_private_bytes(seed)
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    assert verify_export.ed25519_verify(public, message, key.sign(message))
    assert not verify_export.ed25519_verify(public, message + b".", key.sign(message))


def _reconciled(auditor: Auditor, world: World, pools: dict[str, Any] | None) -> tuple[int, str]:
    """Reconcile with a checkpoint of lost entries whose body the administrator may belittle."""
    key = Key()
    auditor.key.write_bytes(key.pem)
    facts = checkpoint(world.engine, key).facts
    more = {name: [0, held + spent + 1] for name, (held, spent) in facts["pools"].items()}
    body = json.dumps({**facts, "seq": 999, "hash": "0" * 64, "pools": more})
    made = Checkpoint(body, key.key_id, key.sign(message(body)).hex())
    auditor.checkpoint = export_checkpoint(made, auditor.folder / "lost")
    seen = {**made.facts, "pools": more if pools is None else pools}
    world.ledger.reconcile(
        Evidence([seen]), actor="admin", authorised_by="board", reason="the disk failed"
    )
    with auditor.export.open("w", encoding="utf-8") as file:
        export(world.engine, file)
    return auditor.run("--key", auditor.key, "--checkpoint", auditor.checkpoint)


def test_an_honest_reconciliation_is_accepted_and_told_loudly(
    auditor: Auditor, world: World
) -> None:
    code, told = _reconciled(auditor, world, None)
    assert code == 0, told
    assert told.startswith("RECONCILED: 1 entries were lost")
    assert "nothing else is wrong" in told


def test_a_reconciliation_that_charges_less_than_was_seen_is_bad(
    auditor: Auditor, world: World
) -> None:
    code, told = _reconciled(auditor, world, {})
    assert code == 1
    assert "budget was given back" in told
