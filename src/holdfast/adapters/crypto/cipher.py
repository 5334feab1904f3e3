"""XAES-256-GCM: AES-256-GCM under a key of its own for each message, from a 256-bit key and a 192-bit nonce.

With plain GCM a key may seal 2^32 messages under random nonces, and somebody has to count them, across
processes and crashes. Here half of a 192-bit nonce derives the message's key (NIST SP 800-108, CMAC), and
the other half is the nonce of GCM: 2^80 messages need no counting. See c2sp.org/XAES-256-GCM.
"""

from __future__ import annotations

import os
import threading

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from holdfast.domain.errors import ConfigError

NAME = "XAES-256-GCM"
KEY_BYTES = 32
NONCE_BYTES = 24
_HALF_BYTES = 12
_TAG_BYTES = 16
#: What CMAC adds where the doubling of its subkey carries over.
_CARRY = 0b10000111


class XaesKey:
    """One key. It is safe to use from several threads."""

    __slots__ = ("_block_cipher", "_counters", "_local")

    def __init__(self, material: bytes) -> None:
        if len(material) != KEY_BYTES:
            raise ConfigError(f"a key has {KEY_BYTES} bytes, not {len(material)}")
        # Of single blocks only, each of which begins with its own counter.
        self._block_cipher = Cipher(algorithms.AES(material), modes.ECB())
        # Making an encryptor takes longer than all the rest; one cannot be shared among threads.
        self._local = threading.local()
        subkey = _subkey(self._encrypted(bytes(16)))
        counters = (b"\x00\x01\x58\x00" + bytes(_HALF_BYTES), b"\x00\x02\x58\x00" + bytes(_HALF_BYTES))
        self._counters = int.from_bytes(b"".join(counters)) ^ int.from_bytes(subkey + subkey)

    def seal(self, plaintext: bytes, associated: bytes, nonce: bytes | None = None) -> bytes:
        """Encrypt; answers the nonce, the ciphertext and its tag in one."""
        chosen = os.urandom(NONCE_BYTES) if nonce is None else nonce
        return chosen + self._of_message(chosen).encrypt(chosen[_HALF_BYTES:], plaintext, associated)

    def open(self, sealed: bytes, associated: bytes) -> bytes | None:
        """Decrypt; None if it was not sealed with this key and just these associated bytes."""
        if len(sealed) < NONCE_BYTES + _TAG_BYTES:
            return None
        nonce = sealed[:NONCE_BYTES]
        try:
            return self._of_message(nonce).decrypt(nonce[_HALF_BYTES:], sealed[NONCE_BYTES:], associated)
        except InvalidTag:
            return None

    def _of_message(self, nonce: bytes) -> AESGCM:
        if len(nonce) != NONCE_BYTES:
            raise ConfigError(f"a nonce has {NONCE_BYTES} bytes, not {len(nonce)}")
        half = bytes(4) + nonce[:_HALF_BYTES]
        blocks = self._counters ^ int.from_bytes(half + half)
        return AESGCM(self._encrypted(blocks.to_bytes(2 * len(half))))

    def _encrypted(self, blocks: bytes) -> bytes:
        encryptor: CipherContext | None = getattr(self._local, "encryptor", None)
        if encryptor is None:
            encryptor = self._local.encryptor = self._block_cipher.encryptor()
        return encryptor.update(blocks)


class Xaes256Gcm:
    """The cipher that stores are encrypted with."""

    name = NAME
    nonce_bytes = NONCE_BYTES
    overhead_bytes = NONCE_BYTES + _TAG_BYTES

    def key(self, material: bytes) -> XaesKey:
        """Make 32 secret bytes ready to use."""
        return XaesKey(material)


def _subkey(block: bytes) -> bytes:
    doubled = int.from_bytes(block) << 1
    if doubled >> 128:
        doubled = doubled & (1 << 128) - 1 ^ _CARRY
    return doubled.to_bytes(16)
