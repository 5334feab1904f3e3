"""How the work of checkpoints is going: each change of status is an event, committed with what it changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from holdfast.application.commands import AppendEvent, CheckpointName
from holdfast.application.commit_queue import Ticket
from holdfast.application.kit import Kit
from holdfast.application.planned import Check, commit_planned
from holdfast.application.reading import Reader
from holdfast.application.resolve import Found, resolve
from holdfast.application.writer import Writer
from holdfast.domain.checkpoint import STATUS_EVENT, Checkpoint, CheckpointMeta, CheckpointStatus
from holdfast.domain.errors import (
    CheckpointReadError,
)
from holdfast.domain.event import Event
from holdfast.domain.record import Transition

MESSAGE_CHARS_MAX = 2_000
STACKTRACE_CHARS_MAX = 20_000
_CUT = "\n[...]\n"

Move = Callable[[Checkpoint], Checkpoint]


@dataclass(frozen=True, slots=True)
class Standing:
    """How a checkpoint stands after a change, as it was recorded: without secrets."""

    status: CheckpointStatus
    updated_at: datetime
    retry_count: int = 0
    pinned: bool = False
    error_message: str | None = None
    error_stacktrace: str | None = None


class Statuses:
    """Changes the status of checkpoints, their retry counts and pins."""

    def __init__(self, kit: Kit, writer: Writer, reader: Reader, wait: Callable[[Ticket], object]) -> None:
        self._kit = kit
        self._writer = writer
        self._reader = reader
        self._wait = wait

    def mark_recovering(self, name: CheckpointName) -> Standing:
        """Say that the work of a checkpoint is being resumed; the error that led here stays readable.

        Raises:
            CheckpointNotFoundError: there is no such checkpoint.
            InvalidStateError: it is neither active nor failed.
        """
        return self._change(name, lambda checkpoint: checkpoint.mark_recovering(self._kit.clock.now()))

    def mark_completed(self, name: CheckpointName) -> Standing:
        """Say that the work of a checkpoint is done.

        Raises:
            CheckpointNotFoundError: there is no such checkpoint.
            InvalidStateError: it is neither active nor recovering.
        """
        return self._change(name, lambda checkpoint: checkpoint.mark_completed(self._kit.clock.now()))

    def mark_failed(self, name: CheckpointName, error: BaseException | str) -> Standing:
        """Say that the work of a checkpoint failed; one that failed while it was resumed used up a retry.

        Args:
            name: the checkpoint.
            error: what happened. Message and stack trace are stored, without secrets.

        Raises:
            CheckpointNotFoundError: there is no such checkpoint.
            InvalidStateError: it is neither active nor recovering.
        """
        return self._change(name, lambda checkpoint: checkpoint.mark_failed(error, self._kit.clock.now()))

    def pin(self, name: CheckpointName, *, check: Check | None = None) -> Standing:
        """Keep a checkpoint whatever the retention policy says.

        Args:
            check: looks at it as it stands when it is pinned, and may refuse.
        """
        return self._change(name, self._touched, pinned=True, check=check)

    def unpin(self, name: CheckpointName, *, check: Check | None = None) -> Standing:
        """Leave a checkpoint to the retention policy again.

        Args:
            check: looks at it as it stands when it is unpinned, and may refuse.
        """
        return self._change(name, self._touched, pinned=False, check=check)

    def told(self, found: Found, error: BaseException) -> Standing:
        """Say how an error would be recorded, and record nothing: a completed checkpoint stays completed."""
        stands = self._standing(found)
        failed = replace(stands, status=CheckpointStatus.ACTIVE).mark_failed(error, self._kit.clock.now())
        return Standing(
            stands.status,
            failed.updated_at,
            stands.retry_count,
            found.entry.pinned,
            self._hidden(failed.error_message, MESSAGE_CHARS_MAX),
            self._hidden(failed.error_stacktrace, STACKTRACE_CHARS_MAX),
        )

    def _touched(self, checkpoint: Checkpoint) -> Checkpoint:
        return replace(checkpoint, updated_at=self._kit.clock.now())

    def _change(
        self, name: CheckpointName, move: Move, *, pinned: bool | None = None, check: Check | None = None
    ) -> Standing:
        """Commit a change on top of how the checkpoint stands; who was faster is looked at first."""
        found = resolve(self._kit.store, name)
        outcome: list[Standing] = []
        plan = partial(self._planned, found, move, pinned, check, outcome)
        commit_planned(self._writer, self._wait, found.workflow_id, plan)
        return outcome[-1]

    def _planned(
        self, found: Found, move: Move, pinned: bool | None, check: Check | None, outcome: list[Standing]
    ) -> tuple[AppendEvent, tuple[Transition, ...]]:
        current = resolve(self._kit.store, found.id)
        if check is not None:
            check(current)
        entry = current.entry
        moved = move(self._standing(current))
        stands = Standing(
            moved.status,
            moved.updated_at,
            moved.retry_count,
            entry.pinned if pinned is None else pinned,
            self._hidden(moved.error_message, MESSAGE_CHARS_MAX),
            self._hidden(moved.error_stacktrace, STACKTRACE_CHARS_MAX),
        )
        outcome.append(stands)
        transition = Transition(entry.sequence, str(stands.status), stands.retry_count, stands.pinned)
        is_pin_told = stands.pinned or entry.pinned
        command = AppendEvent(
            found.workflow_id,
            STATUS_EVENT,
            _told(stands, is_pin_told=is_pin_told),
            agent_id=entry.agent,
            cp_seq=entry.sequence,
        )
        return command, (transition,)

    def _standing(self, found: Found) -> Checkpoint:
        """Describe a checkpoint by its listing and its last change: its record may be damaged."""
        meta = CheckpointMeta.from_entry(found.workflow_id, found.entry)
        last = self._last_change(found) if meta.status is not CheckpointStatus.ACTIVE else None
        return Checkpoint(
            id=meta.id,
            type=meta.type,
            created_at=meta.created_at,
            updated_at=last.timestamp if last else meta.created_at,
            status=meta.status,
            retry_count=meta.retry_count,
            error_message=last.data.get("error_message") if last else None,
            error_stacktrace=last.data.get("error_stacktrace") if last else None,
        )

    def _last_change(self, found: Found) -> Event | None:
        try:
            return self._reader.last_status(found)
        except CheckpointReadError:
            # The listing says how it stands; only the words of the last error are lost with a damaged event.
            return None

    def _hidden(self, text: str | None, chars_max: int) -> str | None:
        return None if text is None else hidden(self._kit, text, chars_max)


def hidden(kit: Kit, text: str, chars_max: int) -> str:
    """Hide the secrets of a text, then cut it: half a secret would not be known as one."""
    sound = text.encode("utf-8", "replace").decode()
    return shortened(sound if kit.redactor is None else kit.redactor.text(sound), chars_max)


def shortened(text: str, chars_max: int) -> str:
    """Cut the middle out of a long text: how an error began and where it ended are both wanted."""
    if len(text) <= chars_max:
        return text
    kept = chars_max - len(_CUT)
    return text[: kept // 4] + _CUT + text[-(kept - kept // 4) :]


def _told(stands: Standing, *, is_pin_told: bool) -> dict[str, Any]:
    data: dict[str, Any] = {"status": str(stands.status), "retry_count": stands.retry_count}
    if is_pin_told:
        data["pinned"] = stands.pinned
    if stands.error_message is not None:
        data["error_message"] = stands.error_message
    if stands.error_stacktrace is not None:
        data["error_stacktrace"] = stands.error_stacktrace
    return data
