"""Telling workflows, in their own journals, that they pass from one session to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.application.commands import AppendEvent
from holdfast.application.commit_queue import Ticket
from holdfast.application.resolve import living
from holdfast.application.writer import Writer
from holdfast.domain.checkpoint import has_ended
from holdfast.domain.errors import CheckpointConflictError, CheckpointError, LeaseHeldError
from holdfast.domain.session_record import Session
from holdfast.ports import Store

HANDED_OFF_EVENT = "WORKFLOW_HANDED_OFF"
TAKEN_OVER_EVENT = "WORKFLOW_TAKEN_OVER"
_ATTEMPTS_MAX = 5


class PassingOn:
    """Notes events in the workflows of a session that have not ended.

    The trail of the session is what proves the step. These are for who reads the journal: that one cannot be
    written, because somebody else has a lease, is told and stops nobody.
    """

    def __init__(self, store: Store, writer: Writer, wait: Callable[[Ticket], object]) -> None:
        self._store = store
        self._writer = writer
        self._wait = wait

    def hand_off(self, session: Session) -> tuple[str, ...]:
        """Note that a session leaves its workflows; answer what could not be noted, and why."""
        target = session.context.target_agent
        data = {"session_id": session.id, "target_agent": target.id if target else None}
        return self._note_all(session, HANDED_OFF_EVENT, data)

    def take_over(self, session: Session) -> tuple[str, ...]:
        """Note that a session goes on with the workflows of another."""
        data = {"session_id": session.id, "continues": session.continues}
        return self._note_all(session, TAKEN_OVER_EVENT, data)

    def _note_all(self, session: Session, type: str, data: Mapping[str, Any]) -> tuple[str, ...]:
        going_on = filter(self._goes_on, session.context.workflow_ids)
        problems = (self._note(AppendEvent(one, type, data)) for one in going_on)
        return tuple(problem for problem in problems if problem)

    def _goes_on(self, workflow_id: str) -> bool:
        newest = next(living(self._store, workflow_id), None)
        return self._store.head(workflow_id).event_seq > 0 and not (newest and has_ended(newest))

    def _note(self, command: AppendEvent) -> str:
        said = ""
        for _ in range(_ATTEMPTS_MAX):
            try:
                self._wait(self._writer.append(command))
                return ""
            except CheckpointError as problem:
                said = f"{command.workflow_id} was not told: {problem}"
                is_race = isinstance(problem, CheckpointConflictError) and not isinstance(
                    problem, LeaseHeldError
                )
                if not is_race:
                    break
        return said
