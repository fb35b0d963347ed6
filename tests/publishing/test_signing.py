"""Keys: private to their owner, made once, rotated without losing old signatures."""

from __future__ import annotations

import stat
import subprocess
import threading

import pytest

from include.publishing.signing import (
    PRIVATE_NAME,
    KeyFileError,
    key_id,
    load_signer,
    rotate,
    verify,
)


def test_a_key_is_made_once_and_only_its_owner_may_read_it(tmp_path):
    keys = tmp_path / "keys"
    first, second = load_signer(keys), load_signer(keys)
    assert first.key_id == second.key_id == key_id(first.public_pem)
    assert stat.S_IMODE((keys / PRIVATE_NAME).stat().st_mode) == 0o600
    assert stat.S_IMODE(keys.stat().st_mode) == 0o700
    assert (keys / "public" / f"{first.key_id}.pem").read_bytes() == first.public_pem
    assert sorted(p.name for p in keys.iterdir()) == ["public", PRIVATE_NAME]
    assert "PRIVATE" not in repr(first)


def test_many_first_users_end_with_one_key(tmp_path):
    found, barrier = [], threading.Barrier(6)

    def use() -> None:
        barrier.wait()
        found.append(load_signer(tmp_path).key_id)

    threads = [threading.Thread(target=use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6
    assert len(set(found)) == 1


def test_signatures_are_deterministic_and_verify(tmp_path):
    signer = load_signer(tmp_path)
    signature = signer.sign(b"message")
    assert signature == signer.sign(b"message")
    assert len(signature) == 64
    assert verify(signer.public_pem, signature, b"message")
    assert not verify(signer.public_pem, signature, b"massage")
    assert not verify(load_signer(tmp_path / "other").public_pem, signature, b"message")


def test_rotation_keeps_old_signatures_verifiable(tmp_path):
    old = load_signer(tmp_path)
    signature = old.sign(b"old")
    new = rotate(tmp_path)
    assert new.key_id != old.key_id
    assert load_signer(tmp_path).key_id == new.key_id
    kept = (tmp_path / "public" / f"{old.key_id}.pem").read_bytes()
    assert verify(kept, signature, b"old")


def test_a_key_that_others_may_read_is_refused(tmp_path):
    load_signer(tmp_path)
    (tmp_path / PRIVATE_NAME).chmod(0o644)
    with pytest.raises(KeyFileError, match="run chmod 600"):
        load_signer(tmp_path)


def test_a_file_that_is_no_key_is_refused(tmp_path):
    path = tmp_path / PRIVATE_NAME
    path.touch(mode=0o600)
    path.write_text("not a key")
    with pytest.raises(KeyFileError, match="not a private key"):
        load_signer(tmp_path)
    with pytest.raises(KeyFileError, match="public key"):
        verify(b"nonsense", b"", b"")


def test_openssl_agrees(package):
    """The command that the README gives to recipients."""
    done = subprocess.run(
        [
            *("openssl", "pkeyutl", "-verify", "-rawin", "-pubin"),
            *("-inkey", "SHA256SUMS.key.pem", "-sigfile", "SHA256SUMS.sig", "-in", "SHA256SUMS"),
        ],
        cwd=package.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Signature Verified Successfully" in done.stdout, done.stderr
