"""A data key: what seals and opens for one workflow, one person, or the store itself."""

from __future__ import annotations

import hmac
from dataclasses import field

from holdfast.domain.value import value
from holdfast.ports import SecretKey


@value
class DataKey:
    """An unwrapped key. Nothing of it is ever shown."""

    id: str
    #: What it is for: a workflow, a person, or the store.
    scope: str
    #: Name of the file that leads from the scope to the key.
    lookup: str
    secret: SecretKey = field(repr=False, compare=False)
    nonces: bytes = field(repr=False, compare=False)
    nonce_bytes: int = 0

    def seal(self, plaintext: bytes, associated: bytes) -> bytes:
        """Seal under a nonce that is made from all that is sealed.

        Equal content in an equal place gives equal bytes, anything else another nonce: there is no randomness
        to run out of, to repeat after a fork or a snapshot of a machine, or to be counted.
        """
        length = len(associated).to_bytes(8)
        nonce = hmac.digest(self.nonces, length + associated + plaintext, "sha256")[: self.nonce_bytes]
        return self.secret.seal(plaintext, associated, nonce)

    def open(self, sealed: bytes, associated: bytes) -> bytes | None:
        """Open; None if it was not sealed with this key and just these associated bytes."""
        return self.secret.open(sealed, associated)
