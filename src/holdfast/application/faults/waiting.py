"""Commits that wait in memory for a store that can be written again, in the order in which they came."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice

from holdfast.application.base import Base
from holdfast.application.commit_queue import Lineage, Ticket
from holdfast.application.draft import Subject
from holdfast.application.intent import Intent, Made, StateIntent, kept_bytes
from holdfast.application.snapshot import Snapshot
from holdfast.domain.event import Event
from holdfast.domain.ids import CheckpointID
from holdfast.domain.record import EventRecord
from holdfast.domain.value import value

#: What one waiting commit costs beside its bytes.
OVERHEAD_BYTES = 2048


@value
class Spilled:
    """Where an intent lies that memory had no room for: its number in the second store."""

    number: int
    #: What was asked for beside the state; None: it is an event.
    subject: Subject | None = None
    #: What it takes in memory when it is read back.
    bytes: int = 0


@dataclass(slots=True, eq=False)
class Held:
    """One commit that waits."""

    ticket: Ticket
    intent: Intent | Spilled
    since: datetime
    bytes: int
    #: The commit as it was tried last, or will be; None: it has to be made again.
    made: Made | None
    #: Whether it is what its caller was told, to the byte.
    is_exact: bool = True
    #: Last event that the state knows of, once events have overtaken it.
    as_of: int | None = None
    #: The last event of a commit whose outcome nobody learnt, and what its caller would have got.
    tried: tuple[EventRecord, CheckpointID | Event] | None = None

    @property
    def workflow_id(self) -> str:
        """The run that it belongs to."""
        return self.ticket.commit.workflow_id

    @property
    def load_bytes(self) -> int:
        """What it takes in memory while it is being written."""
        return self.bytes + (self.intent.bytes if isinstance(self.intent, Spilled) else 0)

    @property
    def is_state(self) -> bool:
        """Whether it is a checkpoint; else it is an event."""
        return isinstance(self.ticket.result, CheckpointID)


def hold(ticket: Ticket, intent: Intent, since: datetime, before: Snapshot | None) -> Held:
    """Take a ticket in; `before` is the snapshot that is kept already and shares its parts."""
    snapshot = None
    if isinstance(intent, StateIntent):
        told = ticket.result
        # The fields are the caller's own objects: the snapshot has everything that counts.
        command = replace(intent.subject.command, fields={})
        subject = replace(intent.subject, command=command, uuid=told.uuid, taken_at=told.timestamp)
        intent, snapshot = replace(intent, subject=subject), intent.snapshot
    size = OVERHEAD_BYTES + kept_bytes(ticket.commit, snapshot, before)
    if ticket.lineage.is_moved:
        return Held(ticket, intent, since, size, None, is_exact=False)
    return Held(ticket, intent, since, size, Made(ticket.commit, ticket.result, ticket.following))


class Waiting:
    """What waits, as one line and by workflow. Safe to use from several threads."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._line: dict[int, Held] = {}
        self._of: dict[str, dict[int, Held]] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._line)

    @property
    def bytes(self) -> int:
        """What all of it costs."""
        return self._bytes

    @property
    def oldest(self) -> datetime | None:
        """Since when the first one waits."""
        with self._mutex:
            return next((held.since for held in self._line.values()), None)

    def add(self, held: Held) -> None:
        """Put one at the end; where those before it have to be made again, so has this one."""
        with self._mutex:
            line = self._of.setdefault(held.workflow_id, {})
            if any(not earlier.is_exact for earlier in islice(reversed(line.values()), 1)):
                held.made, held.is_exact = None, False
            self._line[id(held)] = line[id(held)] = held
            self._bytes += held.bytes

    def remove(self, held: Held) -> None:
        """Take one out, if it is in."""
        with self._mutex:
            if self._line.pop(id(held), None) is None:
                return
            line = self._of[held.workflow_id]
            del line[id(held)]
            if not line:
                del self._of[held.workflow_id]
            self._bytes -= held.bytes

    def first(self, count: int, max_bytes: int) -> list[Held]:
        """Answer the first few, at least one if there is any."""
        with self._mutex:
            found: list[Held] = []
            for held in islice(self._line.values(), count):
                max_bytes -= held.load_bytes
                if found and max_bytes < 0:
                    break
                found.append(held)
            return found

    def all(self) -> list[Held]:
        """Answer everything, in order."""
        with self._mutex:
            return list(self._line.values())

    def workflows(self) -> list[str]:
        """Name the workflows of what waits."""
        with self._mutex:
            return list(self._of)

    def of(self, workflow_id: str) -> list[Held]:
        """Answer what waits of one workflow, in order."""
        with self._mutex:
            return list(self._of.get(workflow_id, {}).values())

    def last_of(self, workflow_id: str) -> Held | None:
        """Answer the last that waits of one workflow."""
        with self._mutex:
            return next(reversed(self._of.get(workflow_id, {}).values()), None)

    def unmake(self, workflow_id: str) -> None:
        """See to it that everything of a workflow is made again before it is written."""
        for held in self.of(workflow_id):
            held.made, held.is_exact = None, False

    def shrink(self, held: Held, spilled: Spilled) -> None:
        """Keep nothing of one but where it lies."""
        with self._mutex:
            self._bytes -= held.bytes - OVERHEAD_BYTES
            held.bytes = OVERHEAD_BYTES
        held.intent, held.made, held.is_exact = spilled, None, False
        ticket = held.ticket
        ticket.intent = None
        ticket.commit = replace(ticket.commit, record=None, keyframe=None, events=(), blobs={}, audit=())
        # Without a snapshot the next checkpoint is a complete one, unless the writer remembers more.
        ticket.following = replace(ticket.following, snapshot=None)
        if held.tried is not None:
            held.tried = replace(held.tried[0], data=b""), held.tried[1]

    def base_of(self, workflow_id: str) -> Base | None:
        """Answer what the next commit of a workflow builds on; None if nothing of it waits."""
        last = self.last_of(workflow_id)
        if last is None:
            return None
        base: Base = last.ticket.following
        # What was refused afterwards is not what this was made from.
        return base if base.lineage.failure is None else replace(base, lineage=Lineage())

    def snapshot_of(self, workflow_id: str) -> Snapshot | None:
        """Answer the last snapshot that is kept of a workflow anyway."""
        for held in reversed(self.of(workflow_id)):
            if isinstance(held.intent, StateIntent):
                return held.intent.snapshot
        return None
