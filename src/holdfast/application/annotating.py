"""Saying something about a checkpoint that was made: each time an event, so that nothing said is lost."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

from holdfast.application.commands import AppendEvent, CheckpointName
from holdfast.application.commit_queue import Ticket
from holdfast.application.kit import Kit
from holdfast.application.planned import Check, commit_planned
from holdfast.application.reading import Reader
from holdfast.application.resolve import Found, resolve
from holdfast.application.trailing import actor_of
from holdfast.application.writer import Writer
from holdfast.domain.annotation import (
    NOTED_EVENT,
    Annotation,
    check_labels,
    check_note,
    read_annotation,
    write_annotation,
)
from holdfast.domain.errors import (
    InvalidStateError,
)
from holdfast.domain.record import Transition


def annotation_of(reader: Reader, found: Found) -> Annotation:
    """Answer what was said last about a checkpoint."""
    return annotations_of(reader, found.workflow_id, [found]).get(found.entry.sequence, Annotation())


def annotations_of(reader: Reader, workflow_id: str, found: Collection[Found]) -> dict[int, Annotation]:
    """Answer what was said last about checkpoints of one workflow, by sequence."""
    said = reader.last_events(NOTED_EVENT, workflow_id, [one.entry for one in found])
    return {sequence: read_annotation(event.data, event.seq) for sequence, event in said.items()}


class Annotations:
    """Gives checkpoints labels and notes."""

    def __init__(self, kit: Kit, writer: Writer, reader: Reader, wait: Callable[[Ticket], object]) -> None:
        self._kit = kit
        self._writer = writer
        self._reader = reader
        self._wait = wait

    def annotate(
        self,
        name: CheckpointName,
        labels: Collection[str] | None = None,
        note: str | None = None,
        *,
        check: Check | None = None,
    ) -> Annotation:
        """Say something about a checkpoint; what is None stays as it was said before.

        Args:
            check: looks at it as it stands when this is said, and may refuse.

        Raises:
            CheckpointNotFoundError: there is no such checkpoint.
            InvalidStateError: a label or the note cannot be one, or neither is given.
        """
        if labels is None and note is None:
            raise InvalidStateError("say what is to change: labels, a note, or both")
        change: dict[str, Any] = {
            **({} if labels is None else {"labels": tuple(map(self._clean, check_labels(labels)))}),
            **({} if note is None else {"note": self._clean(check_note(note))}),
        }
        found = resolve(self._kit.store, name)
        plan = partial(self._planned, found, change, check)
        event = commit_planned(self._writer, self._wait, found.workflow_id, plan)
        # What was said here: what is read now may be somebody else's.
        return read_annotation(event.data, event.seq)

    def _planned(
        self, found: Found, change: dict[str, Any], check: Check | None
    ) -> tuple[AppendEvent, tuple[Transition, ...]]:
        if check is not None:
            check(resolve(self._kit.store, found.id))
        # As it stands now: who was faster said something, too.
        before = annotation_of(self._reader, found)
        data = write_annotation(replace(before, **change, by=actor_of(self._kit)))
        return AppendEvent(found.workflow_id, NOTED_EVENT, data, cp_seq=found.entry.sequence), ()

    def _clean(self, text: str) -> str:
        return text if self._kit.redactor is None else self._kit.redactor.text(text)
