"""What both faces of the service hand out as it is: rooms with calls of their own."""

from __future__ import annotations

from holdfast.application.audit_log import AuditLog
from holdfast.application.engine import Engine
from holdfast.application.erasing import Eraser
from holdfast.application.holding import Holds
from holdfast.application.key_care import Keys
from holdfast.application.subject_export import SubjectExporter
from holdfast.application.subjects import Subjects


class Rooms:
    """Rooms behind a face. Their calls wait for the disk: a coroutine uses `asyncio.to_thread`."""

    _engine: Engine

    @property
    def keys(self) -> Keys:
        """The keys of an encrypted store: listing, checking and rotating them."""
        return Keys(self._engine.kit)

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
    def erasure(self) -> Eraser:
        """Erasing workflows and people for ever."""
        return self._engine.eraser
