"""Commits to try a store with, and how a suite opens one."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.event import Event, encode_event
from holdfast.domain.record import (
    Commit,
    Entry,
    EventRecord,
    Keyframe,
    KeyframeEntry,
    Record,
    Transition,
)
from holdfast.domain.time import parse_timestamp
from holdfast.ports import Store

NOON = "2026-01-11T12:00:00.000000Z"


def blob_name(data: bytes) -> str:
    """Name a blob."""
    return hashlib.sha256(data).hexdigest()


class History:
    """Makes commits of one workflow, each on top of the one before."""

    def __init__(self, store: Store, workflow_id: str = "W") -> None:
        self.store = store
        self.workflow_id = workflow_id
        self.head = store.head(workflow_id)
        self.records: dict[int, bytes] = {}

    def draft(
        self,
        *,
        text: str = "",
        is_checkpoint: bool = True,
        keyframe: bytes | None = None,
        blobs: dict[str, bytes] | None = None,
        needs: tuple[str, ...] = (),
        transitions: tuple[Transition, ...] = (),
        token: int = 0,
        audit: tuple[AuditEntry, ...] = (),
        **about: Any,
    ) -> Commit:
        """Make the next commit: an event, and a checkpoint with it unless told otherwise."""
        sequence = self.head.sequence + 1
        event = self._event(about.pop("timestamp", NOON))
        named = (*(blobs or {}), *needs)
        record = self._record(sequence, text, named, event.seq, about) if is_checkpoint else None
        return Commit(
            self.workflow_id,
            self.head,
            record,
            None if keyframe is None else make_keyframe(sequence, keyframe),
            (event,),
            transitions,
            blobs or {},
            needs,
            token,
            audit,
        )

    def commit(self, **parts: Any) -> Commit:
        """Commit the next one, which must succeed."""
        draft = self.draft(**parts)
        assert self.store.commit([draft]) == [None]
        self.follow(draft)
        return draft

    def follow(self, commit: Commit) -> None:
        """Build on a commit from now on."""
        self.head = commit.head
        if commit.record is not None:
            self.records[commit.record.entry.sequence] = commit.record.data

    def _event(self, timestamp: str) -> EventRecord:
        seq = self.head.event_seq + 1
        event = Event(seq, parse_timestamp(timestamp), "STEP", self.workflow_id, data={"n": seq})
        return encode_event(event, self.head.event_hash)

    def _record(
        self, sequence: int, text: str, blobs: tuple[str, ...], event_seq: int, about: dict[str, Any]
    ) -> Record:
        checksum = "sha256:" + blob_name(f"{self.head.checksum}{text}{about}".encode())
        values = {"group": 1, "state_bytes": 100 + sequence, "event_seq": event_seq, "blobs": blobs, **about}
        uuid = f"{blob_name(self.workflow_id.encode())[:8]}-0000-4000-8000-{sequence:012d}"
        entry = Entry(sequence, uuid, NOON, "agent_complete", checksum, parent=sequence - 1, **values)
        data = record_line(self.workflow_id, self.head.checksum, entry, text)
        return Record(replace(entry, length=len(data)), data)


def record_line(workflow_id: str, parent: str, entry: Entry, text: str) -> bytes:
    """Write a record as format version 1 does; its checksum is not a true one, stores do not look."""
    fields = {
        "seq": entry.sequence,
        "id": entry.uuid,
        "wf": workflow_id,
        "ts": entry.timestamp,
        "type": entry.type,
        "stage": entry.stage,
        "agent": entry.agent,
        "session": entry.session,
        "parent": parent,
        "base": entry.parent,
        "schema": entry.schema,
        "phase": entry.phase,
        "size": entry.state_bytes,
        "event_seq": entry.event_seq,
        "blobs": list(entry.blobs) or None,
        "ops": [{"op": "set", "path": ["text"], "value": text}],
        "checksum": entry.checksum,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(given, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def make_keyframe(sequence: int, data: bytes, blobs: tuple[str, ...] = ()) -> Keyframe:
    """Make a keyframe out of any bytes."""
    return Keyframe(KeyframeEntry(sequence, blob_name(data), len(data), "json", blobs), data)


def raises(kind: type[Exception], call: Callable[[], Any]) -> Exception:
    """Answer the error that a call raises, also while what it returns is read."""
    try:
        found = call()
        if isinstance(found, Iterator):
            list(found)
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised, but {found!r} returned")


def in_threads(calls: list[Callable[[], None]]) -> None:
    """Run calls at once; raise the first thing that went wrong in one of them."""
    problems: list[BaseException] = []

    def guarded(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=guarded, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]


class Opening:
    """How a suite gets at stores: `open_store` gives an empty one, `reopen` the same one again."""

    def open_store(self) -> Store:
        """Open a new and empty store."""
        raise NotImplementedError

    def reopen(self, store: Store) -> Store:
        """Close a store and open it again; a store that forgets everything is answered as it is."""
        return store

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """Open a new store for one test."""
        store = self.open_store()
        try:
            yield store
        finally:
            store.close()
