"""What an encrypted store holds: everything but ids, numbers, times and sums, sealed where it stands.

The associated data of each ciphertext is the place it belongs to (store, key, kind, workflow, sequence) and
the bytes that stand in the clear beside it: a ciphertext put anywhere else, or under another heading, does
not open. Nothing is decompressed or parsed before its seal has been checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from holdfast.application.secrecy.data_key import DataKey
from holdfast.application.secrecy.keyring import Keyring
from holdfast.domain import plainjson
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.base64_text import from_base64, to_base64
from holdfast.domain.checkpoint import CheckpointStatus
from holdfast.domain.errors import (
    CheckpointCorruptError,
    KeyDestroyedError,
    KeyUnavailableError,
    SealBrokenError,
)
from holdfast.domain.event import Event, encode_event
from holdfast.domain.keyring_file import STORE_SCOPE, subject_scope, workflow_scope
from holdfast.domain.payload import commitment, decode_payload
from holdfast.domain.record import EventRecord
from holdfast.domain.time import timestamp_text
from holdfast.domain.value import value
from holdfast.ports import Store

VERSION = 1
MAGIC = "holdfast-sealed/1"
#: Blobs and files begin with the line that says what they are sealed with.
_FRAME_START = b'{"sealed":'
CREATED_EVENT = "CHECKPOINT_CREATED"
_HINT = "Restore an older checkpoint, run `holdfast doctor`, and find out who wrote to the store."


@value
class Sealer:
    """Seals what is written to one workflow, all of it with one key."""

    vault: Vault
    key: DataKey
    workflow_id: str

    @property
    def key_id(self) -> str:
        """Id of the key."""
        return self.key.id

    @property
    def guard(self) -> dict[str, bytes | None]:
        """What a commit expects of the store's files: that the key has not been destroyed meanwhile."""
        return {self.key.lookup: self.key.id.encode()}

    @property
    def about(self) -> dict[str, Any]:
        """What stands beside a ciphertext."""
        return {"v": VERSION, "alg": self.vault.algorithm, "key": self.key.id}

    @property
    def overhead_bytes(self) -> int:
        """How much longer than its plaintext is what is sealed."""
        return self.vault.keyring.cipher.overhead_bytes

    def record(self, sequence: int, secret: bytes, clear: bytes) -> bytes:
        """Seal what a record keeps to itself."""
        return self.key.seal(secret, self._bound("record", sequence, clear))

    def keyframe(self, sequence: int, secret: bytes, clear: bytes) -> bytes:
        """Seal the state of a keyframe."""
        return self.key.seal(secret, self._bound("keyframe", sequence, clear))

    def event(self, event: Event, previous_hash: str) -> EventRecord:
        """Write an event whose data and cost are sealed."""
        if says_nothing(event):
            return encode_event(event, previous_hash)
        secret = plainjson.dumps({"data": dict(event.data), "cost": event.cost and dict(event.cost)})
        clear = readable_data(event)
        bound = self.vault.of_event(replace(event, data=clear), self.key, previous_hash)
        sealed = to_base64(self.key.seal(secret, bound))
        about = {**self.about, "prev": previous_hash, "data": sealed}
        return encode_event(replace(event, data=clear, cost=None, sealed=about), previous_hash)

    def blob(self, data: bytes) -> bytes:
        """Seal a large value: the same value of this workflow gives the same bytes."""
        sealed = self.key.seal(data, self.vault.bound(self.key, "blob"))
        return plainjson.dumps({"sealed": self.about}) + b"\n" + sealed

    def _bound(self, kind: str, sequence: int, clear: bytes) -> bytes:
        return self.vault.bound(self.key, kind, self.workflow_id, sequence) + clear


class Vault:
    """Seals and opens with the keys of one store's keyring."""

    def __init__(self, keyring: Keyring) -> None:
        self.keyring = keyring
        self.algorithm = keyring.cipher.name

    @property
    def is_locked(self) -> bool:
        """True where nothing can be opened for want of the key-encryption key."""
        return self.keyring.is_locked

    def is_shut(self, workflow_id: str) -> bool:
        """Tell whether nothing of a workflow can be opened: no key is configured, or it was erased."""
        if self.is_locked and not self.keyring.sources:
            return True
        return self.keyring.find(workflow_scope(workflow_id)) is None

    def sealer(self, workflow_id: str) -> Sealer:
        """Answer what seals for a workflow, its key made now if it has none."""
        return Sealer(self, self.keyring.key_for(workflow_scope(workflow_id)), workflow_id)

    def look_again(self, workflow_id: str) -> None:
        """Remember the key of a workflow no longer: what was written with it last was refused."""
        self.keyring.forget_scope(workflow_scope(workflow_id))

    def sealer_with(self, key_id: str, workflow_id: str) -> Sealer:
        """Answer what seals for a workflow with just that key.

        Raises:
            KeyDestroyedError: it is gone.
        """
        return Sealer(self, self._of_workflow(key_id, workflow_id), workflow_id)

    def open_record(self, about: Any, sealed: bytes, clear: bytes, workflow_id: str, sequence: int) -> bytes:
        """Open what a record keeps to itself."""
        key = self._of_workflow(self._key_id(about, f"{workflow_id}@{sequence}"), workflow_id)
        bound = self.bound(key, "record", workflow_id, sequence) + clear
        return _opened(key.open(sealed, bound), f"{workflow_id}@{sequence}")

    def open_keyframe(
        self, about: Any, sealed: bytes, clear: bytes, workflow_id: str, sequence: int
    ) -> bytes:
        """Open the state of a keyframe."""
        place = f"keyframe {workflow_id}@{sequence}"
        key = self._of_workflow(self._key_id(about, place), workflow_id)
        bound = self.bound(key, "keyframe", workflow_id, sequence) + clear
        return _opened(key.open(sealed, bound), place)

    def open_event(self, event: Event, workflow_id: str, previous_hash: str | None) -> Event:
        """Answer an event with its data; one whose key was destroyed has none, and says that it is erased."""
        place = f"event {event.seq} of {workflow_id}"
        about = event.sealed
        if about is None:
            if says_nothing(event) and event.workflow_id == workflow_id:
                return event
            raise plaintext(place)
        if previous_hash is not None and about.get("prev") != previous_hash:
            raise broken(place)
        try:
            key = self._of_workflow(self._key_id(about, place), workflow_id)
        except KeyDestroyedError:
            return replace(event, erased=True)
        try:
            sealed, before = from_base64(about["data"], "the data of an event", place), about["prev"]
        except (KeyError, TypeError, AttributeError) as fault:
            raise broken(place) from fault
        secret = plainjson.loads(_opened(key.open(sealed, self.of_event(event, key, before)), place))
        return replace(event, data=secret["data"], cost=secret["cost"], sealed=None)

    def load_blob(self, store: Store, sha256: str) -> bytes:
        """Read a blob and open it."""
        return self.open_blob(store.blob(sha256), sha256)

    def open_blob(self, data: bytes, sha256: str) -> bytes:
        """Open a blob."""
        place = f"blob {sha256}"
        about, sealed = _framed(data, place)
        key = self.keyring.key(self._key_id(about, place))
        return _opened(key.open(sealed, self.bound(key, "blob")), place)

    def seal_payload(self, line: bytes, session_id: str, type: str, workflow_id: str | None) -> bytes:
        """Seal the payload of an audit entry, with the workflow's key if it concerns one."""
        scope = STORE_SCOPE if workflow_id is None else workflow_scope(workflow_id)
        key = self.keyring.key_for(scope)
        sealed = key.seal(line, self.bound(key, "audit", session_id, type, workflow_id))
        about = {"v": VERSION, "alg": self.algorithm, "key": key.id, "data": to_base64(sealed)}
        return plainjson.dumps({"sealed": about}) + b"\n"

    def open_payload(self, entry: AuditEntry, stored: bytes) -> bytes:
        """Open the payload of an audit entry: the line that was sealed.

        Raises:
            KeyDestroyedError: it was erased.
            SealBrokenError: it is not this entry's, or was never sealed.
        """
        place = f"the payload of entry {entry.seq} of {entry.session_id}"
        fields = plainjson.loads(stored, strict=True)
        about = fields.get("sealed") if type(fields) is dict else None
        if type(about) is not dict:
            raise plaintext(place)
        key = self.keyring.key(self._key_id(about, place))
        try:
            sealed = from_base64(about["data"], "a payload", place)
        except (KeyError, TypeError, AttributeError) as fault:
            raise broken(place) from fault
        bound = self.bound(key, "audit", entry.session_id, str(entry.type), entry.workflow_id)
        return _opened(key.open(sealed, bound), place)

    def seal_file(self, name: str, data: bytes) -> bytes:
        """Seal a small file of the store that tells more than ids and sums."""
        key = self.keyring.key_for(STORE_SCOPE)
        about = {"v": VERSION, "alg": self.algorithm, "key": key.id}
        return plainjson.dumps({"sealed": about}) + b"\n" + key.seal(data, self.bound(key, "file", name))

    def open_file(self, name: str, data: bytes) -> bytes:
        """Open a small file of the store."""
        about, sealed = _framed(data, name)
        key = self.keyring.key(self._key_id(about, name))
        return _opened(key.open(sealed, self.bound(key, "file", name)), name)

    def seal_personal(self, subject: str, packed: bytes) -> tuple[str, str]:
        """Seal a person's value with the person's key; answers the key's id and the text to store."""
        key = self.keyring.key_for(subject_scope(subject))
        return key.id, to_base64(key.seal(packed, self.bound(key, "personal")))

    def open_personal(self, key_id: str, text: str) -> tuple[str, bytes] | None:
        """Answer whose value it is, and the value packed; None if the person's key was destroyed."""
        place = f"a value under key {key_id}"
        try:
            key = self.keyring.key(key_id)
        except KeyDestroyedError:
            return None
        kind, _, subject = key.scope.partition(":")
        if kind != "subject":
            raise broken(place)
        sealed = from_base64(text, "a person's value", place)
        return subject, _opened(key.open(sealed, self.bound(key, "personal")), place)

    def bound(self, key: DataKey, kind: str, *place: Any) -> bytes:
        """Write what a ciphertext belongs to."""
        return (
            plainjson.dumps([MAGIC, self.algorithm, self.keyring.id, key.id, key.scope, kind, *place]) + b"\n"
        )

    def of_event(self, event: Event, key: DataKey, previous_hash: str) -> bytes:
        """Bind the data of an event to everything else that its line says."""
        clear = (event.type, event.agent, event.step_id, event.parent_id, event.cp_seq, dict(event.data))
        when = timestamp_text(event.timestamp)
        return self.bound(key, "event", event.workflow_id, event.seq, previous_hash, when, *clear)

    def _of_workflow(self, key_id: str, workflow_id: str) -> DataKey:
        key = self.keyring.key(key_id)
        if key.scope != workflow_scope(workflow_id):
            raise SealBrokenError("this was sealed for another workflow", place=workflow_id, hint=_HINT)
        return key

    def _key_id(self, about: Any, place: str) -> str:
        if type(about) is not dict or type(about.get("key")) is not str:
            raise plaintext(place)
        if (about.get("v"), about.get("alg")) != (VERSION, self.algorithm):
            raise broken(place)
        key_id: str = about["key"]
        return key_id


def _is_number(value: Any) -> bool:
    return type(value) in (int, bool)


def _is_status(value: Any) -> bool:
    return type(value) is str and value in set(CheckpointStatus)


def _are_numbers(value: Any) -> bool:
    return type(value) is list and all(map(_is_number, value))


#: What stays readable of the events that change a listing.
_READABLE: Mapping[str, Mapping[str, Callable[[Any], bool]]] = {
    "CHECKPOINT_STATUS": {"status": _is_status, "retry_count": _is_number, "pinned": _is_number},
    "CHECKPOINTS_PRUNED": {"sequences": _are_numbers},
}


def sealer_for(vault: Vault | None, workflow_id: str) -> Sealer | None:
    """Answer what seals for a workflow; None where nothing is sealed."""
    return None if vault is None else vault.sealer(workflow_id)


def write_event(sealer: Sealer | None, event: Event, previous_hash: str) -> EventRecord:
    """Write an event as its line, sealed where the store is encrypted."""
    return encode_event(event, previous_hash) if sealer is None else sealer.event(event, previous_hash)


def read_event(vault: Vault | None, event: Event, workflow_id: str, previous_hash: str | None) -> Event:
    """Answer a verified event with its data; the hash of the one before is None where that is not at hand."""
    if vault is not None:
        return vault.open_event(event, workflow_id, previous_hash)
    if event.sealed is not None:
        raise keyless(f"event {event.seq} of {workflow_id}")
    return event


def says_nothing(event: Event) -> bool:
    """Tell whether an event only points to a checkpoint, whose sealed record says the same and more."""
    return event.type == CREATED_EVENT and event.cp_seq is not None and not event.data and event.cost is None


def readable_data(event: Event) -> dict[str, Any]:
    """Answer the status and the numbers that a store rebuilds its listing from, without keys."""
    kinds = _READABLE.get(event.type, {})
    return {
        name: event.data[name]
        for name, fits in kinds.items()
        if name in event.data and fits(event.data[name])
    }


def read_payload(vault: Vault | None, entry: AuditEntry, stored: bytes) -> dict[str, Any]:
    """Answer the payload of an audit entry, checked against the entry's commitment and opened.

    Raises:
        ChecksumMismatchError: it is not the one that the entry commits to.
        KeyDestroyedError: it was erased.
    """
    if vault is None:
        return decode_payload(stored, entry.payload)
    if commitment(stored) != entry.payload:
        decode_payload(stored, entry.payload)
    line = vault.open_payload(entry, stored)
    return decode_payload(line, commitment(line))


def keyless(place: str) -> KeyUnavailableError:
    """Say that something is encrypted in a store that has no keyring."""
    return KeyUnavailableError(
        "this is encrypted, and the store has lost its keyring",
        place=place,
        hint="Bring keys/ back from a backup.",
    )


def _framed(data: bytes, place: str) -> tuple[Any, bytes]:
    """Part a ciphertext from the line before it that says what it is sealed with."""
    if not data.startswith(_FRAME_START):
        raise plaintext(place)
    line, _, sealed = data.partition(b"\n")
    try:
        return plainjson.loads(line)["sealed"], sealed
    except (CheckpointCorruptError, KeyError, TypeError) as fault:
        raise broken(place) from fault


def _opened(secret: bytes | None, place: str) -> bytes:
    if secret is None:
        raise broken(place)
    return secret


def broken(place: str) -> SealBrokenError:
    """Say that a seal is not whole."""
    return SealBrokenError("the bytes were not sealed for the place they stand in", place=place, hint=_HINT)


def plaintext(place: str) -> SealBrokenError:
    """Say that something lies open in an encrypted store."""
    return SealBrokenError("the store is encrypted, and this is not", place=place, hint=_HINT)
