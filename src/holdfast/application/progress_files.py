"""Progress reports of a store: appended to while a workflow runs, made anew from its journal at any time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from holdfast.application.kit import Kit
from holdfast.application.reading import Reader
from holdfast.application.resolve import known_head
from holdfast.application.trailing import Trail
from holdfast.domain.errors import CheckpointError
from holdfast.domain.event import Event
from holdfast.domain.ids import check_workflow_id
from holdfast.domain.progress_report import has_section, render_report, report_head, section_of

_LOG = logging.getLogger("holdfast")


class ProgressFiles:
    """Writes the reports of one store, and tells what they say.

    What is in the journal counts; a report is a view of it. In an encrypted store none is written: what is
    sealed there would lie open beside it.
    """

    def __init__(self, kit: Kit, trail: Trail | None = None) -> None:
        """Take a store, and what tells of reading its journal."""
        self._kit = kit
        self._reader = Reader(kit, trail)
        #: Nobody is shown what is read to keep a report up to date; when that is read is chance, too.
        self._keeper = Reader(kit)
        self._mutex = threading.Lock()
        #: Up to which event a report was made from the journal here; what came later was appended.
        self._made_until: dict[str, int] = {}

    def append(self, *events: Event) -> None:
        """Add the sections of events of one workflow that were committed; a failing write stops nobody.

        The first ones bring the report up to date: a process that died may have left it behind.
        """
        if self._kit.progress is None or self._kit.store.read_only or not events:
            return
        try:
            with self._mutex:
                self._append(events[0].workflow_id, events)
        except CheckpointError as problem:
            _LOG.warning("the progress report of %s is behind: %s", events[0].workflow_id, problem)

    def _append(self, workflow_id: str, events: Sequence[Event]) -> None:
        place = self._kit.progress
        assert place is not None
        if workflow_id not in self._made_until or not place.has(workflow_id):
            self._make_up(workflow_id)
        new = [event for event in events if event.seq > self._made_until[workflow_id]]
        if new:
            text = "".join(section_of(event).render() for event in new)
            place.append(workflow_id, report_head(workflow_id), text)

    def _make_up(self, workflow_id: str) -> None:
        """Make a report from the journal; where that cannot be read, go on with what there is."""
        self._made_until[workflow_id] = 0
        try:
            self._make(workflow_id, self._keeper)
        except CheckpointError as problem:
            _LOG.warning("the progress report of %s may lack sections: %s", workflow_id, problem)

    def rebuild(self, workflow_id: str) -> str:
        """Make a report anew from the journal, in the place of what is there; answer what it says.

        Where no report is written it is answered only.

        Raises:
            CheckpointNotFoundError: there is no such workflow.
            ChecksumMismatchError: an event is not what was committed.
            CheckpointWriteError: the file cannot be written.
        """
        with self._mutex:
            return self._make(workflow_id, self._reader)

    def text(self, workflow_id: str) -> str:
        """Tell what a report says: its file if there is one, else the journal.

        Raises:
            CheckpointNotFoundError: there is no such workflow.
        """
        check_workflow_id(workflow_id)
        found = None if self._kit.progress is None else self._kit.progress.read(workflow_id)
        return (
            render_report(workflow_id, self._sections(workflow_id, self._reader)) if found is None else found
        )

    def remove(self, workflow_id: str) -> None:
        """Take a report away, if there is one.

        Raises:
            CheckpointWriteError: it is still there.
        """
        if self._kit.progress is not None:
            self._kit.progress.remove(workflow_id)

    def _make(self, workflow_id: str, reader: Reader) -> str:
        sections = self._sections(workflow_id, reader)
        text = render_report(workflow_id, sections)
        place = None if self._kit.store.read_only else self._kit.progress
        if place is not None and sections:
            place.replace(workflow_id, text)
        elif place is not None:
            place.remove(workflow_id)
        self._made_until[workflow_id] = max((event.seq for event in sections), default=0)
        return text

    def _sections(self, workflow_id: str, reader: Reader) -> list[Event]:
        known_head(self._kit.store, workflow_id)
        return [event for event in reader.events(workflow_id, 0, None, None) if has_section(event)]
