"""Ed25519 keys that sign tree heads, and the check of their signatures.

A private key is kept as the one line that signed notes use, `PRIVATE+KEY+name+id+base64(kind, seed)`, and not
as PEM: a signature is by a name and a key together, and PEM has no place for the name, so that a key could
come back under another one. The tools of the Go checksum database and of witnesses read the same line.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from holdfast.adapters.crypto.private_file import refuse_shared, write_private
from holdfast.domain.base64_text import from_base64, to_base64
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    InvalidIdError,
    PermissionDeniedError,
)
from holdfast.domain.note import ED25519, VerifierKey

SEED_BYTES = 32
_FILE_BYTES_MAX = 4096
_SKEY = re.compile(r"PRIVATE\+KEY\+(?P<name>[^+\n]+)\+(?P<id>[0-9a-f]{8})\+(?P<key>[A-Za-z0-9+/]+=*)\n?")
#: Not to wait for a writer, should it be a pipe.
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key under its name. It is never shown: neither printed nor compared by what it holds."""

    key: VerifierKey
    _private: Ed25519PrivateKey = field(repr=False, compare=False)

    @classmethod
    def generate(cls, name: str, kind: int = ED25519) -> SigningKey:
        """Make a new key; a witness makes one of the kind `note.COSIGNATURE`."""
        return cls.from_seed(name, Ed25519PrivateKey.generate().private_bytes_raw(), kind)

    @classmethod
    def from_seed(cls, name: str, seed: bytes, kind: int = ED25519) -> SigningKey:
        """Make the key that belongs to 32 secret bytes."""
        private = Ed25519PrivateKey.from_private_bytes(seed)
        return cls(VerifierKey(name, private.public_key().public_bytes_raw(), kind), private)

    @classmethod
    def parse(cls, text: str) -> SigningKey:
        """Read a private key from its text form.

        Raises:
            CheckpointCorruptError: if it is none. Nothing of the text is in the message.
        """
        found = _SKEY.fullmatch(text)
        try:
            material = from_base64(found["key"], "a private key") if found else b""
            if found and len(material) == 1 + SEED_BYTES:
                signer = cls.from_seed(found["name"], material[1:], material[0])
                if signer.key.id.hex() == found["id"]:
                    return signer
        except (CheckpointCorruptError, InvalidIdError):
            pass
        raise CheckpointCorruptError(
            "this is not a private key", hint="It should read like PRIVATE+KEY+name+id+key."
        )

    @classmethod
    def load(cls, path: Path) -> SigningKey:
        """Read a private key from its file.

        Raises:
            CheckpointNotFoundError: if there is no such file.
            PermissionDeniedError: if others may read it, it is not a plain file, or it cannot be opened.
            CheckpointCorruptError: if it holds no private key.
        """
        try:
            descriptor = os.open(path, _OLD)
        except FileNotFoundError:
            raise CheckpointNotFoundError("there is no key file", place=str(path)) from None
        except OSError as fault:
            raise PermissionDeniedError(
                f"a key file cannot be opened ({fault.strerror})", place=str(path)
            ) from None
        with os.fdopen(descriptor, "rb") as file:
            refuse_shared(os.fstat(descriptor), path)
            data = file.read(_FILE_BYTES_MAX)
        return cls.parse(data.decode("utf-8", "replace"))

    def save(self, path: Path) -> None:
        """Write the key to a new file that only its owner may read; a file that is there is left alone.

        Raises:
            CheckpointWriteError: if there is one already, or it cannot be written.
        """
        write_private(path, f"{self.to_text()}\n".encode())

    def to_text(self) -> str:
        """Give the private key as text, to be kept where nobody else reads."""
        material = bytes([self.key.kind]) + self._private.private_bytes_raw()
        return f"PRIVATE+KEY+{self.key.name}+{self.key.id.hex()}+{to_base64(material)}"

    def sign(self, message: bytes) -> bytes:
        """Sign a message."""
        return self._private.sign(message)


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    """Tell whether a signature of a message is by a public key; nothing that is given makes this raise."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
