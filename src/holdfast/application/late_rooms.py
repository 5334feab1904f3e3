"""Rooms of an engine that are made when they are first asked for.

Opening a store, committing and restoring need none of them, and importing them all took longer than those
three together: whoever starts a process to record one checkpoint waited for audit reports and recovery.
What acts when a store is opened or closed, or with each commit, is no late room.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from holdfast.application.fork_gate import GATE

if TYPE_CHECKING:
    from holdfast.application.access import Tokens
    from holdfast.application.annotating import Annotations
    from holdfast.application.audit.audit_log import AuditLog
    from holdfast.application.audit.log_keeping import LogKeeper
    from holdfast.application.commands import CheckpointName, CheckpointOptions, CreateCheckpoint, State
    from holdfast.application.commit_queue import Ticket
    from holdfast.application.holding import Holds
    from holdfast.application.key_care import Keys
    from holdfast.application.kit import Kit
    from holdfast.application.privacy.erasing import Eraser
    from holdfast.application.privacy.subject_export import SubjectExporter
    from holdfast.application.progress_files import ProgressFiles
    from holdfast.application.reading import Reader
    from holdfast.application.recovery.incomplete import Incomplete
    from holdfast.application.recovery.partial_failure import PartialFailures
    from holdfast.application.recovery.quarantining import Quarantine
    from holdfast.application.recovery.recovering import Recovery
    from holdfast.application.recovery.resuming import Resumption
    from holdfast.application.recovery.statuses import Statuses
    from holdfast.application.removing import Removing
    from holdfast.application.requests import Requests
    from holdfast.application.sessions.working_sessions import WorkingSessions
    from holdfast.application.subjects import Subjects
    from holdfast.application.trailing import Trail
    from holdfast.application.travel.replaying import Replaying
    from holdfast.application.travel.travelling import TimeTravel
    from holdfast.application.upgrading import Upgrading
    from holdfast.application.validate import ValidationResult
    from holdfast.application.writer import Writer

_Room = TypeVar("_Room")


class LateRoom(Generic[_Room]):
    """An attribute that is made, once, when it is first asked for; its maker imports what it needs.

    It is kept among the other attributes, so that only the first time comes by here. The fork gate is held
    meanwhile: a child would wait for ever for a lock of `functools.cached_property`, or of an import, that
    another thread of its parent held.
    """

    def __init__(self, make: Callable[[Any], _Room]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, owner: Any, kind: type) -> _Room:
        with GATE:
            kept: dict[str, Any] = vars(owner)
            if self._name not in kept:
                kept[self._name] = self._make(owner)
            room: _Room = kept[self._name]
            return room


class LateRooms:
    """What an engine offers beyond committing and restoring."""

    kit: Kit
    trail: Trail
    writer: Writer
    reader: Reader
    wait: Callable[[Ticket], Any]
    checkpoint_command: Callable[[str, State, CheckpointOptions], CreateCheckpoint]
    face: Callable[[], Any]

    def forget_rooms(self) -> None:
        """Let every room be made anew: those of a parent have its locks and its queue."""
        for name in _NAMES:
            vars(self).pop(name, None)

    def has_made(self, name: str) -> bool:
        """Tell whether somebody asked for a room."""
        return name in vars(self)

    @property
    def is_watched(self) -> bool:
        """Whether somebody counts or traces."""
        return bool(self.kit.observer or self.kit.tracing)

    @LateRoom
    def keeper(self) -> LogKeeper:
        """The log: its heads, its tiles, its proofs."""
        from holdfast.application.audit.log_keeping import LogKeeper

        return LogKeeper(self.kit, self.trail)

    @LateRoom
    def audit(self) -> AuditLog:
        """The trail: writing, finding and verifying audit entries, and signing the log."""
        from holdfast.application.audit.audit_log import AuditLog

        return AuditLog(self.kit, self.trail, self.keeper)

    @LateRoom
    def removing(self) -> Removing:
        """Removing checkpoints."""
        from holdfast.application.removing import Removing

        return Removing(self.kit, self.trail, self.writer, self.holds)

    @LateRoom
    def holds(self) -> Holds:
        """Legal holds: what must not be removed."""
        from holdfast.application.holding import Holds

        return Holds(self.kit, self.trail, self.subjects)

    @LateRoom
    def subjects(self) -> Subjects:
        """Who workflows are about."""
        from holdfast.application.subjects import Subjects

        return Subjects(self.kit, self.trail)

    @LateRoom
    def exporter(self) -> SubjectExporter:
        """Giving a person everything about them."""
        from holdfast.application.privacy.subject_export import SubjectExporter

        return SubjectExporter(self.kit, self.trail, self.subjects, self.audit, self.keeper)

    @LateRoom
    def eraser(self) -> Eraser:
        """Erasing workflows and people for ever."""
        from holdfast.application.privacy.erasing import Eraser

        return Eraser(self.kit, self.trail, self.writer, self.holds, self.subjects, self.exporter)

    @LateRoom
    def sessions(self) -> WorkingSessions:
        """Sessions: opening, closing, handing off and resuming them."""
        from holdfast.application.sessions.working_sessions import WorkingSessions

        return WorkingSessions(self.kit, self.trail, self.writer, self.reader, self.wait)

    @LateRoom
    def progress(self) -> ProgressFiles:
        """Progress reports: what a workflow has found out so far, for people."""
        from holdfast.application.progress_files import ProgressFiles

        return ProgressFiles(self.kit, self.trail)

    @LateRoom
    def upgrades(self) -> Upgrading:
        """Bringing states to the version of the program, ahead of time."""
        from holdfast.application.upgrading import Upgrading

        return Upgrading(self.kit, self.trail, self.writer, self.reader, self.wait)

    @LateRoom
    def validation(self) -> Callable[[CheckpointName], ValidationResult]:
        """Checking a checkpoint."""
        from holdfast.application.validate import validate

        return partial(validate, self.kit, self.reader)

    @LateRoom
    def incomplete(self) -> Callable[..., list[Incomplete]]:
        """Finding what crashed."""
        from holdfast.application.recovery.incomplete import incomplete_workflows

        return partial(incomplete_workflows, self.kit)

    @LateRoom
    def quarantine(self) -> Quarantine:
        """What was found damaged and set aside: looking at it, releasing it, dropping it."""
        from holdfast.application.recovery.quarantining import Quarantine

        return Quarantine(self.kit, self.trail, self.writer, self.reader)

    @LateRoom
    def statuses(self) -> Statuses:
        """How checkpoints stand."""
        from holdfast.application.recovery.statuses import Statuses

        return Statuses(self.kit, self.writer, self.reader, self.wait)

    @LateRoom
    def annotations(self) -> Annotations:
        """What people say about checkpoints."""
        from holdfast.application.annotating import Annotations

        return Annotations(self.kit, self.writer, self.reader, self.wait)

    @LateRoom
    def resumption(self) -> Resumption:
        """Letting handlers go on with the work; where somebody counts or traces, what tells of it."""
        from holdfast.application.recovery.resuming import Resumption
        from holdfast.application.recovery.watched_recovery import WatchedResumption

        return (WatchedResumption if self.is_watched else Resumption)(
            self.kit,
            self.trail,
            self.writer,
            self.reader,
            self.wait,
            self.quarantine,
            open_service=self.face,
        )

    @LateRoom
    def recovery(self) -> Recovery:
        """Bringing workflows back; where somebody counts or traces, what tells of it."""
        from holdfast.application.recovery.recovering import Recovery
        from holdfast.application.recovery.watched_recovery import WatchedRecovery

        return (WatchedRecovery if self.is_watched else Recovery)(
            self.kit,
            self.trail,
            self.writer,
            self.reader,
            self.quarantine,
            self.resumption,
            self.wait,
            lambda *given: self.wait(self.writer.create(self.checkpoint_command(*given))),
        )

    @LateRoom
    def partial_failures(self) -> PartialFailures:
        """Agents that failed while their workflow lives: restarting them, else rolling back."""
        from holdfast.application.recovery.partial_failure import PartialFailures

        return PartialFailures(self.kit, self.writer, self.reader, self.statuses, self.wait)

    @LateRoom
    def keys(self) -> Keys:
        """The keys of an encrypted store: listing, checking and rotating them."""
        from holdfast.application.key_care import Keys

        return Keys(self.kit)

    @LateRoom
    def requests(self) -> Requests:
        """What is asked of workflows by those who do not run them."""
        from holdfast.application.requests import Requests

        return Requests(self.kit, self.trail)

    @LateRoom
    def tokens(self) -> Tokens:
        """Who may ask the server of this store for what."""
        from holdfast.application.access import Tokens

        return Tokens(self.kit, self.trail)

    @LateRoom
    def travel(self) -> TimeTravel:
        """States between checkpoints, differences and forks."""
        from holdfast.application.travel.travelling import TimeTravel

        return TimeTravel(self.kit, self.trail, self.reader)

    @LateRoom
    def replaying(self) -> Replaying:
        """Running the reducers again, and comparing with what was stored."""
        from holdfast.application.travel.replaying import Replaying

        return Replaying(self.kit, self.travel, self.trail)


_NAMES = tuple(name for name, found in vars(LateRooms).items() if isinstance(found, LateRoom))
