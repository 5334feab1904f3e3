"""What people say about a checkpoint after it was made: labels and a note, beside what never changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.domain.errors import InvalidStateError

#: The event that says it; the last one holds, and no reducer knows it: states stay as they are.
NOTED_EVENT = "CHECKPOINT_NOTED"
LABELS_MAX = 20
LABEL_CHARS_MAX = 80
NOTE_CHARS_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Annotation:
    """Labels and a note of one checkpoint.

    Attributes:
        by: who said so last.
        event_seq: the event that says so; 0: nobody said anything.
    """

    labels: tuple[str, ...] = ()
    note: str = ""
    by: str | None = None
    event_seq: int = 0


def check_labels(labels: Collection[str]) -> tuple[str, ...]:
    """Answer labels in order, each once.

    Raises:
        InvalidStateError: one is empty or too long, cannot be printed, or there are too many.
    """
    kept = tuple(sorted({label.strip() for label in labels}))
    for label in kept:
        if not 0 < len(label) <= LABEL_CHARS_MAX or not label.isprintable():
            raise InvalidStateError(
                f"a label has 1 to {LABEL_CHARS_MAX} printable characters", place=ascii(label[:100])
            )
    if len(kept) > LABELS_MAX:
        raise InvalidStateError(f"a checkpoint has at most {LABELS_MAX} labels")
    return kept


def check_note(note: str) -> str:
    """Answer a note without space around it.

    Raises:
        InvalidStateError: it is too long.
    """
    text = note.strip()
    if len(text) > NOTE_CHARS_MAX:
        raise InvalidStateError(f"a note has at most {NOTE_CHARS_MAX:,} characters")
    return text


def read_annotation(data: Mapping[str, Any], event_seq: int) -> Annotation:
    """Read what an event says; what has another shape says nothing."""
    labels, note, by = data.get("labels"), data.get("note"), data.get("by")
    return Annotation(
        tuple(one for one in labels if isinstance(one, str)) if isinstance(labels, list) else (),
        note if isinstance(note, str) else "",
        by if isinstance(by, str) else None,
        event_seq,
    )


def write_annotation(said: Annotation) -> dict[str, Any]:
    """Write the data of the event that says so."""
    data: dict[str, Any] = {"labels": list(said.labels), "note": said.note}
    return data if said.by is None else {**data, "by": said.by}
