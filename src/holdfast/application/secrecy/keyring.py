"""The keyring of an encrypted store: one data key per workflow and per person, wrapped, each in a small file.

The key that wraps them (the key-encryption key) is never in the store. Data keys are made when first
needed; of two processes that make one for the same scope at once, one wins and the other takes that.
"""

from __future__ import annotations

import hmac
import re
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from holdfast.application.secrecy.data_key import DataKey
from holdfast.domain import plainjson
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType
from holdfast.domain.base64_text import from_base64, to_base64
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    ConfigError,
    KeyDestroyedError,
    KeyUnavailableError,
    SealBrokenError,
)
from holdfast.domain.keyring_file import (
    DATA_KEYS,
    KEYRING,
    TOMBSTONE,
    KeyringFile,
    WrappedKey,
    check_value,
    data_key_name,
    lookup_name,
    tombstone_name,
)
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.value import value
from holdfast.ports import Cipher, KeySource, SecretKey, Store

KEY_BYTES = 32
PSEUDONYM_CHARS = 32
#: A key that was destroyed elsewhere stops working here after this long at most.
RECHECK_SECONDS = 0.5
#: Unwrapped keys that a process remembers.
CACHE_MAX = 1024
_ATTEMPTS_MAX = 8
_KEY_ID = re.compile(r"[0-9a-f]{32}")
LOCKED = "Set encryption_key (or HOLDFAST_ENCRYPTION_KEY) to file:PATH, env:NAME or command:PROGRAM."


class Tell(Protocol):
    """Makes the audit entry of a key operation."""

    def __call__(self, type: str, *, facts: dict[str, int | str]) -> tuple[AuditEntry, ...]: ...


@dataclass(slots=True)
class _Remembered:
    key: DataKey
    checked_at: float


@value
class Destruction:
    """What a commit must hold to destroy a key: files that go, and what they must be until then."""

    key_ids: tuple[str, ...]
    files: dict[str, bytes | None]
    expected_files: dict[str, bytes | None]


class Keyring:
    """The keys of one store, as one process sees them."""

    def __init__(
        self,
        store: Store,
        cipher: Cipher,
        sources: Sequence[KeySource] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self.cipher = cipher
        self.sources = tuple(sources)
        self._clock = clock
        self._tell: Tell | None = None
        #: Key-encryption keys that were fetched, by check value.
        self._keks: dict[str, SecretKey] = {}
        self._index_key = b""
        self.begin(None)
        self.file = self.read_file()

    def begin(self, tell: Tell | None) -> None:
        """Take what a process needs of its own, and who makes audit entries from now on."""
        self._tell = tell
        self._mutex = threading.Lock()
        self._keys: OrderedDict[str, _Remembered] = OrderedDict()
        self._scopes: OrderedDict[str, str] = OrderedDict()

    @property
    def id(self) -> str:
        """What tells this keyring from all others."""
        return self.file.id

    @property
    def is_locked(self) -> bool:
        """True while no key-encryption key of this store is at hand: then nothing can be opened."""
        return not self._keks

    def unlock(self) -> None:
        """Fetch the key-encryption key.

        Raises:
            KeyUnavailableError: it is not configured, cannot be fetched, or is none of this store's.
        """
        if self._keks.keys() & self.file.wrappings.keys():
            self._open_index()
            return
        named = self.file.wrappings[self.file.current].source
        if not self.sources:
            raise KeyUnavailableError(
                "the store is encrypted and no key is configured",
                place=f"{self._store.url} (its key was last found in {named})",
                hint=LOCKED,
            )
        self.accept(*(source.fetch() for source in self.sources))
        if not self._keks.keys() & self.file.wrappings.keys():
            raise KeyUnavailableError(
                "the key that is configured is not the one this store is encrypted with",
                place=f"{self._store.url} (its key was last found in {named})",
                hint="Let encryption_key name the store's own key; after a rotation that is the new one.",
            )
        self._open_index()

    def accept(self, *materials: bytes) -> None:
        """Take key-encryption keys into use."""
        for material in materials:
            self._keks[check_value(material, self.id)] = self.cipher.key(material)

    def read_file(self) -> KeyringFile:
        """Read the keyring's own file."""
        data = self._store.file(KEYRING)
        if data is None:
            raise CheckpointCorruptError("the keyring of the store is gone", place=KEYRING)
        self.raw = data
        found = KeyringFile.decode(data)
        if found.algorithm != self.cipher.name:
            raise ConfigError(f"the store is encrypted with {found.algorithm}", hint="Upgrade Holdfast.")
        return found

    def key_for(self, scope: str) -> DataKey:
        """Answer the key of a scope, made now if there is none.

        Raises:
            KeyUnavailableError: the keyring is locked, or another key-encryption key is needed.
        """
        for _ in range(_ATTEMPTS_MAX):
            found = self.find(scope)
            if found is not None:
                return found
            made = self._make(scope)
            if made is not None:
                return made
        raise CheckpointConflictError("the keyring was changed by others all the time", hint="Try again.")

    def find(self, scope: str) -> DataKey | None:
        """Answer the key of a scope; None if there is none."""
        known = self._scopes.get(scope)
        if known is not None:
            try:
                return self.key(known)
            except KeyDestroyedError:
                self.forget(known)
        self._require_unlocked()
        lookup = lookup_name(self._index_key, scope)
        named = self._store.file(lookup)
        if named is None:
            return None
        key = self.key(named.decode("ascii", "replace"))
        if key.scope != scope:
            raise SealBrokenError("the keyring leads to a key of something else", place=lookup)
        self._remember_scope(key)
        return key

    def key(self, key_id: str) -> DataKey:
        """Answer a key by its id.

        Raises:
            KeyDestroyedError: it is gone.
            KeyUnavailableError: it cannot be unwrapped with the key-encryption key at hand.
        """
        remembered = self._keys.get(key_id)
        if remembered is not None and self._clock() - remembered.checked_at < RECHECK_SECONDS:
            return remembered.key
        if not _KEY_ID.fullmatch(key_id):
            raise SealBrokenError("what is stored names no key")
        self._require_unlocked()
        name = data_key_name(key_id)
        # A copy may bring the word that a key is gone before the key itself goes.
        is_gone = self._store.file(tombstone_name(key_id)) is not None
        data = None if is_gone else self._store.file(name)
        if data is None:
            self.forget(key_id)
            raise KeyDestroyedError("the key of what is asked for was destroyed", place=name)
        key = remembered.key if remembered is not None else self._unwrap(key_id, data)
        self._remember(key)
        return key

    def destruction(self, scope: str) -> Destruction | None:
        """Tell what to commit to destroy the keys of a scope; None if it has none.

        It may have several: a store and its copy each make one, and then one is copied into the other again.
        From that commit on nothing sealed with them can be opened; running processes notice with their next
        commit to the workflow, or within a second.
        """
        self._require_unlocked()
        lookup = lookup_name(self._index_key, scope)
        named = self._store.file(lookup)
        key_ids = tuple(key_id for key_id in self.key_ids() if self._is_of(key_id, scope))
        if named is None and not key_ids:
            return None
        files: dict[str, bytes | None] = {lookup: None}
        for key_id in key_ids:
            files |= {data_key_name(key_id): None, tombstone_name(key_id): TOMBSTONE}
        return Destruction(key_ids, files, {lookup: named})

    def _is_of(self, key_id: str, scope: str) -> bool:
        data = self._store.file(data_key_name(key_id))
        try:
            return data is not None and self._unwrap(key_id, data).scope == scope
        except (KeyUnavailableError, SealBrokenError):
            return False

    def pseudonym(self, subject: str) -> str:
        """Name a person so that only who can open the keyring can tell who it is."""
        self._require_unlocked()
        return lookup_name(self._index_key, f"pseudonym:{subject}").rpartition("/")[2][:PSEUDONYM_CHARS]

    def forget(self, key_id: str) -> None:
        """Drop a key from memory."""
        with self._mutex:
            dropped = self._keys.pop(key_id, None)
            if dropped is not None and self._scopes.get(dropped.key.scope) == key_id:
                del self._scopes[dropped.key.scope]

    def forget_scope(self, scope: str) -> None:
        """Drop the key of a scope from memory."""
        known = self._scopes.get(scope)
        if known is not None:
            self.forget(known)

    def key_ids(self) -> Iterator[str]:
        """Name every data key."""
        return (name.removeprefix(DATA_KEYS) for name in self._store.files(DATA_KEYS))

    def wrap(self, key_id: str, opened: dict[str, Any], check: str) -> bytes:
        """Wrap a data key and its scope with one key-encryption key."""
        return self._kek(check).seal(plainjson.dumps(opened), self._of_key(key_id, check))

    def unwrap(self, key_id: str, wrapped: WrappedKey) -> dict[str, Any]:
        """Unwrap a data key with any key-encryption key at hand."""
        for check, data in wrapped.wraps.items():
            if check in self._keks:
                opened = self._keks[check].open(data, self._of_key(key_id, check))
                fields = None if opened is None else plainjson.loads(opened, strict=True)
                if type(fields) is not dict:
                    raise SealBrokenError("a wrapped key was changed", place=data_key_name(key_id))
                return fields
        raise self._rotated(data_key_name(key_id))

    def index_for(self, check: str) -> bytes:
        """Wrap the index key with a key-encryption key."""
        return self._kek(check).seal(self._index_key, self._of_key("index", check))

    def commit(
        self,
        type: AuditType | None,
        facts: dict[str, int | str],
        files: dict[str, bytes | None],
        expected_files: dict[str, bytes | None],
    ) -> bool:
        """Change files of the keyring and tell so; False if they are not what was expected."""
        told = self._tell(type, facts=facts) if self._tell is not None and type is not None else ()
        commit = Commit(NO_WORKFLOW, Head(), audit=told, files=files, expected_files=expected_files)
        [outcome] = self._store.commit([commit])
        if outcome is not None and not isinstance(outcome, CheckpointConflictError):
            raise outcome
        return outcome is None

    def _make(self, scope: str) -> DataKey | None:
        """Make the key of a scope; None if somebody else changed the keyring first."""
        self.file = self.read_file()
        if self.file.current not in self._keks:
            self._refetch()
        if self.file.current not in self._keks:
            raise self._rotated(KEYRING)
        key_id, material = secrets.token_hex(16), secrets.token_bytes(KEY_BYTES)
        opened = {"scope": scope, "key": to_base64(material)}
        # Never by a key that is on its way out: a rotation would not come to an end, or leave this behind.
        checks = [check for check in self.file.wanted if check in self._keks]
        wrapped = WrappedKey({check: self.wrap(key_id, opened, check) for check in checks})
        key = self._ready(key_id, scope, material)
        files: dict[str, bytes | None] = {
            data_key_name(key_id): wrapped.encode(),
            key.lookup: key_id.encode(),
        }
        expected: dict[str, bytes | None] = {key.lookup: None, KEYRING: self.raw}
        if not self.commit(AuditType.KEY_CREATED, {"key": key_id}, files, expected):
            return None
        self._remember(key)
        self._remember_scope(key)
        return key

    def _unwrap(self, key_id: str, data: bytes) -> DataKey:
        wrapped = WrappedKey.decode(data, data_key_name(key_id))
        if not wrapped.wraps.keys() & self._keks.keys():
            self._refetch()
        fields = self.unwrap(key_id, wrapped)
        try:
            return self._ready(key_id, fields["scope"], from_base64(fields["key"], "a data key"))
        except (KeyError, TypeError, AttributeError) as fault:
            raise SealBrokenError("a wrapped key is none", place=data_key_name(key_id)) from fault

    def _ready(self, key_id: str, scope: str, material: bytes) -> DataKey:
        """Give each use of a key a key of its own."""
        secret, nonces = (
            hmac.digest(material, f"holdfast {use}\n{key_id}".encode(), "sha256")
            for use in ("secret", "nonces")
        )
        lookup = lookup_name(self._index_key, scope)
        return DataKey(key_id, scope, lookup, self.cipher.key(secret), nonces, self.cipher.nonce_bytes)

    def _remember(self, key: DataKey) -> None:
        with self._mutex:
            self._keys[key.id] = _Remembered(key, self._clock())
            self._keys.move_to_end(key.id)
            while len(self._keys) > CACHE_MAX:
                self._keys.popitem(last=False)

    def _remember_scope(self, key: DataKey) -> None:
        """Take a key for that of its scope: of several it is the one that the keyring leads to."""
        with self._mutex:
            self._scopes[key.scope] = key.id
            self._scopes.move_to_end(key.scope)
            while len(self._scopes) > CACHE_MAX:
                self._scopes.popitem(last=False)

    def _open_index(self) -> None:
        for check, wrapping in self.file.wrappings.items():
            if check in self._keks:
                opened = self._keks[check].open(wrapping.index, self._of_key("index", check))
                if opened is None or len(opened) != KEY_BYTES:
                    raise SealBrokenError("the index key was changed", place=KEYRING)
                self._index_key = opened
                return

    def _refetch(self) -> None:
        """Ask the sources again: after a rotation a file or a KMS may give the new key by now."""
        for source in self.sources:
            self.accept(source.fetch())

    def _kek(self, check: str) -> SecretKey:
        if check not in self._keks:
            raise self._rotated(KEYRING)
        return self._keks[check]

    def _require_unlocked(self) -> None:
        if self.is_locked:
            self.unlock()

    def _of_key(self, key_id: str, check: str) -> bytes:
        """Bind a wrapped key to its keyring, its id and the key that wraps it."""
        return plainjson.dumps(["holdfast-key/1", self.cipher.name, self.id, check, key_id])

    def _rotated(self, place: str) -> KeyUnavailableError:
        return KeyUnavailableError(
            "the key-encryption key at hand opens this no more: keys were rotated",
            place=place,
            hint="Point encryption_key to the new key.",
        )
