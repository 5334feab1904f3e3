"""Commits made by hand, for tests below the service."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from holdfast.domain.record import (
    Commit,
    Entry,
    EventRecord,
    Head,
    Keyframe,
    KeyframeEntry,
    Record,
)

TIMESTAMP = "2026-01-11T14:30:00.000000Z"


def line(**fields: Any) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def keyframe(sequence: int, data: bytes = b'{"state": {}}\n', blobs: tuple[str, ...] = ()) -> Keyframe:
    return Keyframe(KeyframeEntry(sequence, sha256(data), len(data), "json", blobs), data)


def event(workflow_id: str, seq: int, timestamp: str = TIMESTAMP, **fields: Any) -> EventRecord:
    told = {"seq": seq, "ts": timestamp, "type": "NOTED", "wf": workflow_id, **fields, "hash": f"h{seq}"}
    return EventRecord(seq, timestamp, f"h{seq}", line(**told))


def checkpoint(workflow_id: str, head: Head, group: int = 1, **fields: Any) -> Commit:
    """The next checkpoint of a workflow, with one event; the first one with its keyframe."""
    sequence = head.sequence + 1
    blobs = tuple(fields.pop("blobs", ()))
    told = {
        "seq": sequence,
        "id": f"{sequence:04d}-{workflow_id}",
        "wf": workflow_id,
        "ts": TIMESTAMP,
        "type": "agent_complete",
        "blobs": blobs,
        "event_seq": head.event_seq + 1,
        **fields,
        "checksum": f"c{sequence}",
    }
    data = line(**told)
    entry = Entry(
        sequence,
        told["id"],
        TIMESTAMP,
        "agent_complete",
        f"c{sequence}",
        sequence - 1,
        group,
        len(data),
        session=fields.get("session"),
        blobs=blobs,
        event_seq=head.event_seq + 1,
    )
    first = keyframe(1) if sequence == 1 else None
    return Commit(workflow_id, head, Record(entry, data), first, (event(workflow_id, head.event_seq + 1),))
