"""Where a target stands in a source's history of a workflow, or the first thing that is not the same."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.application.history import History, look
from holdfast.domain.errors import CheckpointConflictError, CheckpointCorruptError, ChecksumMismatchError
from holdfast.domain.event import Event, decode_event
from holdfast.domain.record import Head
from holdfast.ports import Store

_SHOWN_CHARS = len("sha256:") + 12


def find_standing(source: Store, target: Store, history: History) -> Head:
    """Answer the target's head, which is a point of the source's history.

    Checkpoints and events are chained: who has the same last ones has the same ones before them.

    Raises:
        CheckpointConflictError: it is none; names the first difference. Or the rest cannot be added.
    """
    head = target.head(history.workflow_id)
    if not _has_checkpoint(history, head) or not _has_event(source, history, head):
        raise _conflict(
            history,
            f"the target has another history of this workflow: {_difference(source, target, history)}",
        )
    _check_gap(source, history, head)
    _check_ground(target, history, head)
    return head


def _conflict(history: History, problem: str) -> CheckpointConflictError:
    return CheckpointConflictError(
        problem, place=history.workflow_id, hint="Nothing of it was written. Copy it into another store."
    )


def _has_checkpoint(history: History, head: Head) -> bool:
    if head.sequence == 0:
        return True
    wanted = (head.sequence, head.checksum)
    return any((entry.sequence, entry.checksum) == wanted for entry in reversed(history.entries))


def _has_event(source: Store, history: History, head: Head) -> bool:
    """Look for the target's last event in the source; where it was removed, the one after it must fit."""
    if head.event_seq == 0:
        return True
    if head.event_seq >= history.head.event_seq:
        return (head.event_seq, head.event_hash) == (history.head.event_seq, history.head.event_hash)
    line = _line_after(source, history, head.event_seq - 1)
    event = decode_event(line, None)
    if event.seq == head.event_seq:
        return event.hash == head.event_hash
    return event.seq > head.event_seq + 1 or _is_built_on(line, head.event_hash)


def _is_built_on(line: bytes, previous_hash: str) -> bool:
    try:
        decode_event(line, previous_hash)
    except ChecksumMismatchError:
        return False
    return True


def _check_gap(source: Store, history: History, head: Head) -> None:
    """Refuse to go on where events would be missing in the middle: nobody could check them any more."""
    if not 0 < head.event_seq < history.head.event_seq:
        return
    first = decode_event(_line_after(source, history, head.event_seq), None).seq
    if first > head.event_seq + 1:
        raise _conflict(
            history,
            f"the source has removed events {head.event_seq + 1} to {first - 1}, which the target lacks",
        )


def _check_ground(target: Store, history: History, head: Head) -> None:
    """Refuse to go on where the target removed what the new checkpoints are restored from.

    A group that was dropped cannot be gone on with either: its tombstones would be looked for in it.
    """
    if not any(0 < entry.group <= head.sequence for entry in history.after(head.sequence)):
        # The new ones begin with a keyframe of their own.
        return
    there = look(target, history.workflow_id)
    # As long as anything is kept, everything from a keyframe to the last record is.
    if not there.entries[-1].group and there.keyframe_at(head.sequence) is None:
        raise _conflict(
            history,
            f"the target has removed every checkpoint up to {head.sequence}, which the next ones build on",
        )


def _line_after(source: Store, history: History, after: int) -> bytes:
    for line in source.events(history.workflow_id, after=after):
        return line
    raise CheckpointCorruptError(
        f"there is no event after {after}, {history.head.event_seq} were committed",
        place=f"events of {history.workflow_id}",
        hint="Run `holdfast doctor` on that store to see what can be recovered.",
    )


def _difference(source: Store, target: Store, history: History) -> str:
    """Name the first difference, among checkpoints before events."""
    sent = {entry.sequence: entry.checksum for entry in history.entries}
    for entry in target.entries(history.workflow_id):
        if entry.sequence > history.head.sequence:
            return f"it has checkpoint {entry.sequence}, the source ends with {history.head.sequence}"
        if (checksum := sent.get(entry.sequence, entry.checksum)) != entry.checksum:
            here, there = checksum[:_SHOWN_CHARS], entry.checksum[:_SHOWN_CHARS]
            return f"checkpoint {entry.sequence} is {here} in the source, {there} in the target"
    return _event_difference(source, target, history)


def _event_difference(source: Store, target: Store, history: History) -> str:
    sent = _events(source, history)
    mine = next(sent, None)
    for event in _events(target, history):
        while mine is not None and mine.seq < event.seq:
            mine = next(sent, None)
        if event.seq > history.head.event_seq:
            return f"it has event {event.seq}, the source ends with {history.head.event_seq}"
        if mine is not None and mine.seq == event.seq and mine.hash != event.hash:
            here, there = mine.hash[:_SHOWN_CHARS], event.hash[:_SHOWN_CHARS]
            return f"event {event.seq} is {here} in the source, {there} in the target"
    return "its last event is none of the source's"


def _events(store: Store, history: History) -> Iterator[Event]:
    return (decode_event(line, None) for line in store.events(history.workflow_id))
