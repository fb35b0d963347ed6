"""Ed25519 signatures of packages and checkpoints.

The private key lies outside the database, in one file only its owner may read. Every signature is
named by its key id, so that a rotated key still verifies what it signed.
"""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from include.folders import make_folder
from include.publishing.errors import PublishError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

PRIVATE_NAME = "signing-ed25519.pem"
PUBLIC_FOLDER = "public"


class KeyFileError(PublishError):
    """The signing key cannot be used as it is.

    Privacy: ledger only.
    """


@dataclass(frozen=True)
class Signer:
    """A signing key in use.

    Privacy: ledger only.
    """

    key_id: str
    public_pem: bytes
    _private: Ed25519PrivateKey

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature of a message; the same message gives the same bytes.

        Source: RFC 8032, section 5.1.6.

        Privacy: ledger only.
        """
        return self._private.sign(message)

    def __repr__(self) -> str:
        """Name the key without its secret."""
        return f"Signer(key_id={self.key_id!r})"


def load_signer(keys_dir: Path, *, used: bool = False) -> Signer:
    """Open the signing key; make one on first use, and never in the place of a lost one.

    Args:
        keys_dir: folder of the keys; made with mode 0700 where it is missing.
        used: whether something is known to be signed already; the key's public half tells as well.

    Returns:
        The signer. Its public key is also kept as public/<key id>.pem.

    Raises:
        KeyFileError: the file is no Ed25519 key, others than its owner may read it, or it is
            missing after it was used.

    Privacy: ledger only.
    """
    path = keys_dir / PRIVATE_NAME
    try:
        # First this: of two first users the other one may make the key meanwhile.
        known = used or any((keys_dir / PUBLIC_FOLDER).glob("*.pem"))
        if not path.exists():
            _require_first_use(path, known)
            _create(path)
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise KeyFileError(f"{path}: others may read the signing key; run chmod 600 on it.")
        signer = _signer(path.read_bytes(), path)
        _keep_public(keys_dir / PUBLIC_FOLDER / f"{signer.key_id}.pem", signer.public_pem)
    except OSError as fault:
        raise KeyFileError(
            f"{path}: the signing key cannot be used ({fault.strerror}); "
            "check the owner and the mode of the folder."
        ) from fault
    return signer


def key_id(public_pem: bytes) -> str:
    """Return the short name of a public key: 16 hex digits of the SHA-256 of its raw bytes.

    Privacy: ledger only.
    """
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    raw = _public(public_pem).public_bytes(Encoding.Raw, PublicFormat.Raw)
    return hashlib.sha256(raw).hexdigest()[:16]


def verify(public_pem: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether a signature of a message was made with the private half of this key.

    Raises:
        KeyFileError: the PEM holds no Ed25519 public key.

    Privacy: post-processing.
    """
    from cryptography.exceptions import InvalidSignature

    try:
        _public(public_pem).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def rotate(keys_dir: Path) -> Signer:
    """Retire the signing key, where there is one, and make a new one; old public keys stay.

    Args:
        keys_dir: folder of the keys.

    Returns:
        The new signer.

    Raises:
        KeyFileError: the old key cannot be used, or the new one cannot be made.

    Privacy: ledger only.
    """
    path = keys_dir / PRIVATE_NAME
    if path.exists():
        path.rename(keys_dir / f"retired-{load_signer(keys_dir).key_id}.pem")
    _create(path)
    return load_signer(keys_dir)


def _require_first_use(path: Path, known: bool) -> None:
    if known:
        raise KeyFileError(
            f"{path}: the signing key is missing, and packages or checkpoints were signed with it; "
            "restore it from its backup, or where there is none make another with rotate() "
            "(docs/operations.md, Keys)."
        )


def _create(path: Path) -> None:
    """Make a key under a name of its own, then link it: two first users end with the same key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    make_folder(path.parent, mode=0o700)
    pem = Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    draft = path.with_name(f".{path.name}.{os.urandom(6).hex()}")
    try:
        _write_private(draft, pem)
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink(missing_ok=True)


def _write_private(path: Path, pem: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(pem)
        file.flush()
        os.fsync(file.fileno())


def _signer(pem: bytes, path: Path) -> Signer:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        PublicFormat,
        load_pem_private_key,
    )

    try:
        private = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as fault:
        raise KeyFileError(
            f"{path}: not a private key in PEM; restore it from its backup."
        ) from fault
    if not isinstance(private, Ed25519PrivateKey):
        raise KeyFileError(f"{path}: not an Ed25519 key; restore it from its backup.")
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return Signer(key_id(public), public, private)


def _public(pem: bytes) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        public = load_pem_public_key(pem)
    except ValueError as fault:
        raise KeyFileError(
            "The public key is not in PEM; ask the publisher for it again."
        ) from fault
    if not isinstance(public, Ed25519PublicKey):
        raise KeyFileError("The public key is not an Ed25519 key; ask the publisher for it again.")
    return public


def _keep_public(path: Path, pem: bytes) -> None:
    if not path.exists():
        make_folder(path.parent)
        path.write_bytes(pem)
