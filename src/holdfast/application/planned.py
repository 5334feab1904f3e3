"""Committing what is planned from how the store stands: whoever was faster is looked at first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.application.commands import AppendEvent
from holdfast.application.commit_queue import Ticket
from holdfast.application.resolve import Found
from holdfast.application.writer import Writer
from holdfast.domain.errors import CheckpointConflictError, LeaseHeldError, LeaseLostError
from holdfast.domain.event import Event
from holdfast.domain.record import Transition

ATTEMPTS_MAX = 20

#: Looks at the store, and answers what follows from it.
Plan = Callable[[], tuple[AppendEvent, tuple[Transition, ...]]]
#: Refuses a change by how a checkpoint stands when it is planned; nobody comes between that and the change.
Check = Callable[[Found], None]


def commit_planned(writer: Writer, wait: Callable[[Ticket], Any], workflow_id: str, plan: Plan) -> Event:
    """Commit what a plan answers, and plan anew each time that somebody else commits in between.

    The event is answered as it was recorded.

    Raises:
        CheckpointConflictError: others were faster every time, or have the workflow for themselves.
    """
    for attempt in range(ATTEMPTS_MAX):
        try:
            recorded: Event = wait(writer.append_planned(workflow_id, plan))
            return recorded
        except (LeaseHeldError, LeaseLostError):
            raise
        except CheckpointConflictError:
            if attempt == ATTEMPTS_MAX - 1:
                raise
    raise AssertionError("the last attempt answers or raises")
