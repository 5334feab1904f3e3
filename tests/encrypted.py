"""Encrypted stores to look into, and what somebody who writes to one may try."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.adapters.crypto.cipher import Xaes256Gcm
from holdfast.adapters.memory import MemoryStore
from holdfast.application.secrecy.keyring import Keyring
from holdfast.application.secrecy.sealing import Vault
from holdfast.application.secrecy.unlocking import create_keyring
from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit
from holdfast.config import Config
from holdfast.domain.errors import KeyUnavailableError
from holdfast.domain.event import chain_hash
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.ports import Store

OLD_KEY, NEW_KEY = bytes(range(32)), bytes(range(32, 64))
#: In everything that is secret, and nowhere else.
MARKER = "MARKER-5f1c"


@dataclass
class GivenKey:
    """A source that just has the key, and counts how often it was asked."""

    material: bytes | None = OLD_KEY
    name: str = "given"
    fetched: int = 0

    def fetch(self) -> bytes:
        self.fetched += 1
        if self.material is None:
            raise KeyUnavailableError("there is no key today", place=self.name)
        return self.material


def encrypted_store() -> MemoryStore:
    """Make an encrypted store in memory under OLD_KEY."""
    store = MemoryStore()
    create_keyring(store, Xaes256Gcm(), [GivenKey()])
    return store


def keyring(store: Store, *materials: bytes, **settings: Any) -> Keyring:
    """Open the keyring of a store."""
    ring = Keyring(store, Xaes256Gcm(), [GivenKey(one) for one in materials or (OLD_KEY,)], **settings)
    ring.unlock()
    return ring


def vault(store: Store, *materials: bytes, **settings: Any) -> Vault:
    """Open the vault of a store."""
    return Vault(keyring(store, *materials, **settings))


class StaysOpen:
    """A store that a service closes when it ends, and that others still look into."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def close(self) -> None:
        """Leave it open."""


def service(store: Store, *keys: bytes, **settings: Any) -> CheckpointService:
    """Open the service over an encrypted store, and leave the store open at its end."""
    given: Sequence[bytes] = keys or (OLD_KEY,)
    names = ("encryption_key", "encryption_key_next")
    sources = {name: f"command:echo {key.hex()}" for name, key in zip(names, given, strict=False)}
    config = Config(**{"background": False, "redact": False, **sources, **settings})
    kept: Any = StaysOpen(store)
    return CheckpointService(build_kit(kept, config))


def rehashed(data: bytes, parent: str) -> tuple[bytes, str]:
    """Give a changed record the checksum it needs: whoever writes to a store can do that."""
    end = data.find(b"\n") + 1
    start, payload = data[: end - 74], data[end:]
    hashed = b"".join((parent.encode(), b"\n", start, b'"}\n', payload))
    checksum = "sha256:" + hashlib.sha256(hashed).hexdigest()
    return start + checksum.encode() + b'"}\n' + payload, checksum


def rechained(line: bytes, previous: str) -> tuple[bytes, str]:
    """Give a changed event the hash it needs."""
    start, end = line[:-74], line[-3:]
    digest = chain_hash(previous, start + end)
    return start + digest.encode() + end, digest


def latest(opened: CheckpointService, workflow_id: str) -> Any:
    """Give the context of a workflow's newest state."""
    state = opened.load_latest(workflow_id)
    assert state is not None
    return state.context


def vault_of(opened: CheckpointService) -> Vault:
    """Give the vault that a service works with."""
    found = opened._engine.kit.vault
    assert found is not None
    return found


def destroy(store: Store, scope: str) -> str:
    """Destroy the key of a scope behind everybody's back; answer its id."""
    going = keyring(store).destruction(scope)
    assert going is not None
    commit = Commit(NO_WORKFLOW, Head(), files=going.files, expected_files=going.expected_files)
    assert store.commit([commit]) == [None]
    (key_id,) = going.key_ids
    return key_id
