"""The state of any checkpoint: a keyframe and the changes after it, each verified before it is used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from holdfast.application.keyframes import ReadKeyframe, read_keyframe
from holdfast.application.records import (
    Opened,
    all_operations,
    claimed_checksum,
    is_complete,
    may_be_redacted,
    open_record,
    read_fields,
    schema_of,
    unsealed,
)
from holdfast.application.revealing import WatchedBlobs
from holdfast.application.secrecy.sealing import Vault
from holdfast.domain import delta
from holdfast.domain.checkpoint import SCHEMA_VERSION
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    ChecksumMismatchError,
)
from holdfast.domain.lift import lower
from holdfast.domain.plain import LoadBlob
from holdfast.domain.record import KeyframeEntry
from holdfast.domain.value import value
from holdfast.ports import Formats, Store

_HINT = "Restore an older checkpoint, and run `holdfast doctor`."

#: Where a keyframe says which checkpoint it is of.
_KEYFRAME_OF = re.compile(rb'"checkpoint_id":\{[^{}]*"checksum":"(sha256:[0-9a-f]{64})"')
#: What a keyframe says of the checkpoint before its own.
_KEYFRAME_AFTER = re.compile(rb'"prev_checkpoint":\{"sequence":\d+,"checksum":"(sha256:[0-9a-f]{64})"')


@value
class Restored:
    """A state as a plain tree; large values may still be references to blobs."""

    tree: dict[str, Any]
    #: Checksum of the checkpoint, as the chain from the keyframe gives it.
    checksum: str
    #: False if the tree certainly holds no tagged object, so that reviving it would change nothing.
    tagged: bool
    #: False if it certainly holds no placeholder, the blobs it refers to aside.
    redacted: bool = False
    #: What was damaged and worked around.
    notes: tuple[str, ...] = ()
    #: Version of the state's shape, as hashed with it.
    schema: str = SCHEMA_VERSION


@dataclass(slots=True)
class _Attempts:
    """What went wrong with the keyframes tried so far."""

    notes: list[str] = field(default_factory=list)
    first: CheckpointError | None = None

    def add(self, place: str, problem: CheckpointError) -> None:
        self.notes.append(f"keyframe {place}: {problem.message}; an older one was used")
        self.first = self.first or problem


class Restorer:
    """Reads states back from a store."""

    def __init__(self, store: Store, formats: Formats, vault: Vault | None = None) -> None:
        self._store = store
        self._formats = formats
        self._vault = vault
        self.load_blob: LoadBlob = store.blob if vault is None else partial(vault.load_blob, store)

    def restore(self, workflow_id: str, sequence: int, *, is_from_oldest: bool = False) -> Restored:
        """Rebuild the state of one checkpoint.

        A keyframe that is damaged, or whose changes are, is passed over for an older one.

        Args:
            is_from_oldest: begin with the oldest keyframe that is kept, so that every change counts.

        Raises:
            CheckpointNotFoundError: if there is no such checkpoint, or nothing left to build it from.
            CheckpointCorruptError: if it is there and no way to it verifies.
        """
        attempts = _Attempts()
        newest = self._store.newest_keyframe(workflow_id, sequence)
        for keyframe in self._starts(workflow_id, newest, is_from_oldest=is_from_oldest) if newest else ():
            try:
                return self._from_keyframe(workflow_id, keyframe, sequence, attempts.notes)
            except CheckpointError as problem:
                attempts.add(f"{workflow_id}@{keyframe.sequence}", problem)
            if newest and self._is_cut(workflow_id, newest.sequence, sequence):
                break
        if attempts.first is not None:
            raise attempts.first
        raise CheckpointNotFoundError(
            "there is no such checkpoint", place=f"{workflow_id}@{sequence}", hint="See `holdfast list`."
        )

    def _starts(
        self, workflow_id: str, newest: KeyframeEntry, *, is_from_oldest: bool
    ) -> Iterator[KeyframeEntry]:
        """Give keyframes to begin with, the newest first; older ones are looked for where it will not do."""
        if not is_from_oldest:
            yield newest
        older = [one for one in self._store.keyframes(workflow_id) if one.sequence < newest.sequence]
        if is_from_oldest:
            yield from [*older, newest][:1]
            yield from [*older, newest][:0:-1]
        else:
            yield from reversed(older)

    def _is_cut(self, workflow_id: str, start: int, sequence: int) -> bool:
        """Tell whether a record after the last keyframe is damaged: then no other leads any further."""
        try:
            read_chain(self._store, workflow_id, start + 1, sequence)
        except CheckpointError:
            return True
        return False

    def whole(self, restored: Restored) -> dict[str, Any]:
        """Answer the tree with the values of its blobs in place."""
        if not restored.tagged:
            return restored.tree
        tree: dict[str, Any] = lower(restored.tree, self.load_blob)
        return tree

    def _from_keyframe(
        self, workflow_id: str, keyframe: KeyframeEntry, sequence: int, notes: Sequence[str]
    ) -> Restored:
        first = keyframe.sequence
        data = self._store.keyframe(workflow_id, first)
        read = read_keyframe(data, self._formats, workflow_id, first, self._vault)
        if read.checksum:
            first += 1
            chain = read_chain(self._store, workflow_id, first, sequence, read.checksum)
        else:
            chain = self._chain_with_own_record(workflow_id, keyframe, sequence)
        complete = [first + at for at, record in enumerate(chain) if is_complete(record)]
        if complete and complete[-1] > keyframe.sequence:
            # Made where the state before could not be read: nothing that lies before is a part of it.
            own = self._keyframe_of(workflow_id, complete[-1])
            return self._from_keyframe(workflow_id, own, sequence, notes)
        opened = unsealed(chain, self._vault, workflow_id, first, read.checksum)
        return self._apply(read, opened, tuple(notes))

    def _keyframe_of(self, workflow_id: str, sequence: int) -> KeyframeEntry:
        """Look up the keyframe that a complete checkpoint has its state in."""
        found = self._store.newest_keyframe(workflow_id, sequence)
        if found is None or found.sequence != sequence:
            place = f"{workflow_id}@{sequence}"
            raise CheckpointNotFoundError(
                "the keyframe of a complete checkpoint is gone", place=place, hint=_HINT
            )
        return found

    def _chain_with_own_record(
        self, workflow_id: str, keyframe: KeyframeEntry, sequence: int
    ) -> list[Opened]:
        """Read the chain from a record that names its keyframe by its hash instead of the reverse."""
        first = keyframe.sequence
        chain = read_chain(self._store, workflow_id, first, sequence)
        if read_fields(chain[:1])[0].get("full") != f"sha256:{keyframe.sha256}":
            raise ChecksumMismatchError(
                "the keyframe is not the one its record names", place=f"{workflow_id}@{first}", hint=_HINT
            )
        return chain

    def _apply(self, read: ReadKeyframe, chain: Sequence[Opened], notes: tuple[str, ...]) -> Restored:
        blobs = WatchedBlobs(self.load_blob)
        ops = all_operations(chain, self._formats, blobs.load)
        tree: Any = delta.apply(ops, read.tree, blobs.load)
        tagged = read.tagged or any(record.payload or b'"$hf"' in record.line for record in chain)
        if not isinstance(tree, dict):
            raise CheckpointCorruptError("the restored state is not an object", hint=_HINT)
        redacted = read.redacted or blobs.is_redacted or any(map(may_be_redacted, chain))
        if not chain:
            return Restored(tree, read.checksum, tagged, redacted, notes, read.schema)
        return Restored(tree, chain[-1].checksum, tagged, redacted, notes, schema_of(chain[-1]))


def read_chain(
    store: Store, workflow_id: str, first: int, last: int, parent_checksum: str | None = None
) -> list[Opened]:
    """Read records first..last, each verified on top of the one before.

    Without the checksum of the first one's parent it is looked for, and proven by the record's own checksum:
    who knows the checksum of the last one knows that everything is right.
    """
    opened: list[Opened] = []
    if first > last:
        return opened
    parent = parent_checksum
    for sequence, data in enumerate(store.records(workflow_id, first, last), start=first):
        if parent is None:
            record, _ = open_alone(store, data, workflow_id, sequence)
        else:
            record = open_record(data, parent, workflow_id, sequence)
        opened.append(record)
        parent = record.checksum
    if len(opened) != last - first + 1:
        raise CheckpointNotFoundError(
            "a checkpoint that later ones build on is gone", place=f"{workflow_id}@{last}", hint=_HINT
        )
    return opened


def open_alone(
    store: Store, data: bytes, workflow_id: str, sequence: int, listed_parent: str = ""
) -> tuple[Opened, str]:
    """Open a record by itself; answer it and the checksum of its parent.

    Args:
        store: what is asked for that where the record does not tell it.
        data: the record.
        workflow_id: whose it is.
        sequence: its own.
        listed_parent: the checksum that a listing has for the checkpoint before, if that is at hand.

    Raises:
        ChecksumMismatchError: it is not the one that was committed on top of the checkpoint before it.
        CheckpointCorruptError: nothing tells what it was committed on top of.
    """
    problem = CheckpointCorruptError(
        "nothing tells what the record was committed on", place=f"{workflow_id}@{sequence}", hint=_HINT
    )
    told = _told_parent(data)
    for parent in _parents(store, workflow_id, sequence - 1, listed_parent) if told is None else (told,):
        try:
            return open_record(data, parent, workflow_id, sequence), parent
        except ChecksumMismatchError as found:
            problem = found
    raise problem


def _told_parent(data: bytes) -> str | None:
    """Read what a record says its parent is; None if it says nothing that can be read."""
    # A record whose line has no end has no fields either.
    with suppress(CheckpointCorruptError):
        for fields in read_fields([Opened(data[: data.find(b"\n") + 1], b"", "")]):
            parent = fields.get("parent")
            return parent if isinstance(parent, str) else None
    return None


def _parents(store: Store, workflow_id: str, sequence: int, listed: str) -> Iterator[str]:
    """Yield what may be the checksum of a checkpoint: what its record, the listing, or a keyframe says.

    The record is quickly read; where it is gone or damaged the others may still know.
    """
    if listed:
        yield listed
    with suppress(CheckpointError):
        yield from map(claimed_checksum, store.records(workflow_id, sequence, sequence))
    for entry in store.entries(workflow_id, newest_first=True):
        if entry.sequence == sequence:
            yield entry.checksum
            return
    with suppress(CheckpointError):
        found = _KEYFRAME_OF.search(store.keyframe(workflow_id, sequence))
        if found is not None:
            yield found[1].decode()
    with suppress(CheckpointError):
        after = _KEYFRAME_AFTER.finditer(store.keyframe(workflow_id, sequence + 1))
        yield from (found[1].decode() for found in after)
