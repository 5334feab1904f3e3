"""Checkpoints that the journal tells of and that come after the last one stored: what held them is gone."""

from __future__ import annotations

from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointReadError
from holdfast.domain.event import Event, decode_event
from holdfast.domain.record import Head
from holdfast.ports import Store


def told_by(event: Event, before: int) -> int:
    """Answer the newest checkpoint that is told of, one event later.

    A recovery has given its own account of what was gone by then.
    """
    # Both events have the names of their entries in the trail.
    if event.type == AuditType.WORKFLOW_RECOVERED:
        return 0
    return max(before, event.cp_seq or 0) if event.type == AuditType.CHECKPOINT_CREATED else before


def vanished(store: Store, workflow_id: str, after: int) -> tuple[int, ...]:
    """Name the checkpoints, newest first, that events after one tell of and that are not listed any more.

    A listing that is made anew from files that are cut or gone does not know what is missing at its end.
    """
    head = store.head(workflow_id)
    told = _last_told(store, workflow_id, after, head)
    return tuple(range(told, head.sequence, -1))


def _last_told(store: Store, workflow_id: str, after: int, head: Head) -> int:
    told, previous = 0, None
    try:
        for line in store.events(workflow_id, after=after):
            event = decode_event(line, previous)
            if event.seq > head.event_seq:
                # Somebody went on meanwhile.
                break
            told, previous = told_by(event, told), event.hash
    except CheckpointReadError:
        # Whoever replays the events says what is wrong with them.
        return told
    return told
