"""What both faces of the service hand out as it is: rooms with calls of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.application.fork_gate import GATE

if TYPE_CHECKING:
    from holdfast.application.access import Tokens
    from holdfast.application.audit.audit_log import AuditLog
    from holdfast.application.engine import Engine
    from holdfast.application.faults.health import OnModeChange, OnWritten
    from holdfast.application.holding import Holds
    from holdfast.application.key_care import Keys
    from holdfast.application.privacy.erasing import Eraser
    from holdfast.application.privacy.subject_export import SubjectExporter
    from holdfast.application.progress_files import ProgressFiles
    from holdfast.application.recording import Recording
    from holdfast.application.recovery.partial_failure import PartialFailures
    from holdfast.application.recovery.quarantining import Quarantine
    from holdfast.application.requests import Requests
    from holdfast.application.sessions.working_sessions import WorkingSessions
    from holdfast.application.subjects import Subjects
    from holdfast.application.travel.replaying import Replaying
    from holdfast.application.upgrading import Upgrading


class Rooms:
    """Rooms behind a face. Their calls wait for the disk: a coroutine uses `asyncio.to_thread`."""

    _engine: Engine

    @property
    def keys(self) -> Keys:
        """The keys of an encrypted store: listing, checking and rotating them."""
        return self._engine.keys

    def on_mode_change(self, listener: OnModeChange) -> None:
        """Let a function be told of each step of the ladder of degradation, down or up."""
        self._engine.safety.on_mode_change(listener)

    def on_written(self, listener: OnWritten) -> None:
        """Let a function be told when what was not durable has become so, and under which number."""
        self._engine.safety.on_written(listener)

    @property
    def audit(self) -> AuditLog:
        """The trail: writing, finding and verifying audit entries, and signing the log."""
        return self._engine.audit

    @property
    def holds(self) -> Holds:
        """Legal holds: what must not be removed."""
        return self._engine.holds

    @property
    def subjects(self) -> Subjects:
        """Who workflows are about."""
        return self._engine.subjects

    @property
    def subject_export(self) -> SubjectExporter:
        """Giving a person everything about them."""
        return self._engine.exporter

    @property
    def sessions(self) -> WorkingSessions:
        """Sessions: opening, closing, handing off and resuming them."""
        return self._engine.sessions

    @property
    def recording(self) -> Recording:
        """Recording several facts in one commit, for whoever runs workflows."""
        # Not a late room of the engine, which it stands on.
        with GATE:
            from holdfast.application.recording import Recording
        return Recording(self._engine)

    @property
    def progress(self) -> ProgressFiles:
        """Progress reports: what a workflow has found out so far, for people."""
        return self._engine.progress

    @property
    def requests(self) -> Requests:
        """What is asked of workflows by those who do not run them."""
        return self._engine.requests

    @property
    def tokens(self) -> Tokens:
        """Who may ask the server of this store for what."""
        return self._engine.tokens

    @property
    def replaying(self) -> Replaying:
        """Running the reducers again, and comparing with what was stored."""
        return self._engine.replaying

    @property
    def upgrades(self) -> Upgrading:
        """Bringing states to the version of the program, ahead of time."""
        return self._engine.upgrades

    @property
    def quarantine(self) -> Quarantine:
        """What was found damaged and set aside: looking at it, releasing it, dropping it."""
        return self._engine.quarantine

    @property
    def partial_failures(self) -> PartialFailures:
        """Agents that failed while their workflow lives: restarting them, else rolling back."""
        return self._engine.partial_failures

    @property
    def erasure(self) -> Eraser:
        """Erasing workflows and people for ever."""
        return self._engine.eraser
