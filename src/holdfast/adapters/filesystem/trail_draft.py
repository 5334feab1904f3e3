"""From audit entries to file operations: lines of trails, payloads beside them, places of the leaves."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.adapters.filesystem import layout, order
from holdfast.adapters.filesystem.frame import Kind, Operation
from holdfast.adapters.filesystem.order import RECORD_BYTES
from holdfast.adapters.filesystem.payload_slots import (
    commits_to_payload,
    empty_slot,
    encode_slot,
    erased_slot,
)
from holdfast.adapters.filesystem.trails import UNLISTED, Session, Trails, session_line
from holdfast.adapters.filesystem.writer import Draft
from holdfast.domain.audit_entry import AuditEntry, AuditRecord, TrailHead
from holdfast.domain.trail import chain


class TrailDraft:
    """What the commits of one group tell in the trail."""

    def __init__(self, draft: Draft, trails: Trails) -> None:
        self._draft = draft
        self._trails = trails
        #: Where sessions stand after the group.
        self.sessions: dict[str, Session] = {}

    def chain(self, audit: Sequence[AuditEntry]) -> list[AuditRecord]:
        """Write entries as the lines that follow in their sessions; nothing is added yet."""
        return chain(audit, self._head) if audit else []

    def _head(self, session_id: str) -> TrailHead:
        return (self.sessions.get(session_id) or self._trails.known(session_id)).head

    def add(self, records: Sequence[AuditRecord]) -> None:
        """Add lines to their trails, and to the tree in the same order."""
        draft = self._draft
        for record in records:
            head, data = record.head, record.data
            session_id, seq = head.session_id, head.seq
            offset = draft.append(layout.trail_path(session_id), data)
            session = self.sessions.get(session_id) or self._trails.known(session_id)
            listed_at = session.listed_at
            if listed_at == UNLISTED:
                listed_at = draft.append(layout.SESSIONS, session_line(session_id))
            self.sessions[session_id] = Session(head, listed_at)
            self._append_place(order.encode(listed_at, seq, offset, len(data)))
            if commits_to_payload(data):
                payload = record.payload
                slot = encode_slot(seq, payload) if payload else empty_slot(seq)
                draft.append(layout.payloads_path(session_id), slot)

    def _append_place(self, line: bytes) -> None:
        # Leaves are found by counting: where half a line was left, the next one begins after a whole one.
        missing = -self._draft.end(layout.ORDER) % RECORD_BYTES
        self._draft.append(layout.ORDER, b"-" * missing + line if missing else line)

    def erasures(self, erased: Sequence[tuple[str, int]]) -> list[Operation]:
        """Operations that overwrite payloads; what is not there needs none."""
        operations = []
        for session_id, seq in erased:
            slot = self._trails.slot(session_id, seq)
            if slot is not None and slot.stored_bytes:
                path = layout.payloads_path(session_id)
                operations.append(Operation(Kind.WRITE, path, slot.offset, erased_slot(slot)))
        return operations
