"""Checkpoints that the journal tells of and that come after the last one stored: what held them is gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from holdfast.application.secrecy.sealing import Vault
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointReadError
from holdfast.domain.event import Event, decode_event
from holdfast.domain.recovery import RecoveryMode
from holdfast.ports import Store

#: Both events have the names of their entries in the trail.
_TELLING = (AuditType.CHECKPOINT_CREATED, AuditType.WORKFLOW_RECOVERED)
_NAMES = tuple(f'"{name}"'.encode() for name in _TELLING)


def told_by(event: Event, before: int) -> int:
    """Answer the newest checkpoint that is told of, one event later.

    A recovery has given its own account of what was gone by then, beyond the checkpoint it went on from.
    """
    if event.type == AuditType.WORKFLOW_RECOVERED:
        return before if _looks_back(event) else min(before, event.cp_seq or 0)
    return max(before, event.cp_seq or 0) if event.type == AuditType.CHECKPOINT_CREATED else before


def vanished(store: Store, workflow_id: str, after: int, vault: Vault | None = None) -> tuple[int, ...]:
    """Name the checkpoints, newest first, that events after one tell of and that are not listed any more.

    A listing that is made anew from files that are cut or gone does not know what is missing at its end.

    Args:
        vault: opens what recoveries say of themselves, in an encrypted store.
    """
    head, told = store.head(workflow_id), set[int]()
    # Whoever replays the events says what is wrong with them.
    with suppress(CheckpointReadError):
        for event in _telling(store, workflow_id, after, vault):
            if event.seq > head.event_seq:
                # Somebody went on meanwhile.
                break
            if event.type == AuditType.WORKFLOW_RECOVERED:
                told = {one for one in told if _looks_back(event) or one <= (event.cp_seq or 0)}
            elif event.cp_seq is not None and event.cp_seq > head.sequence:
                told.add(event.cp_seq)
    return tuple(sorted(told, reverse=True))


def _looks_back(event: Event) -> bool:
    """Tell whether a recovery was to a point in time: it says nothing of what came after."""
    return event.data.get("mode") == RecoveryMode.POINT_IN_TIME


def _telling(store: Store, workflow_id: str, after: int, vault: Vault | None) -> Iterator[Event]:
    """Read the events that tell of checkpoints; there may be thousands of others, which are not read."""
    for line in store.events(workflow_id, after=after):
        if any(name in line for name in _NAMES):
            event = decode_event(line, None)
            if event.type == AuditType.WORKFLOW_RECOVERED and vault is not None:
                event = vault.open_event(event, workflow_id, None)
            if event.type in _TELLING:
                yield event
