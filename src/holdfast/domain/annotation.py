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
        InvalidStateError: one is empty or too long, cannot be printed or has a comma, or there are too many.
    """
    # Letters are strings, too: one text would be as many labels as it has.
    if not isinstance(labels, Collection) or isinstance(labels, (str, bytes, Mapping)):
        raise InvalidStateError(f"labels are a list of texts, not a {type(labels).__name__}")
    for label in labels:
        if not isinstance(label, str):
            raise InvalidStateError(f"a label is a text, not a {type(label).__name__}")
    kept = tuple(sorted({label.strip() for label in labels}))
    for label in kept:
        # Where people write several, commas part them.
        if not 0 < len(label) <= LABEL_CHARS_MAX or not label.isprintable() or "," in label:
            raise InvalidStateError(
                f"a label has 1 to {LABEL_CHARS_MAX} printable characters and no comma",
                place=ascii(label[:100]),
            )
    if len(kept) > LABELS_MAX:
        raise InvalidStateError(f"a checkpoint has at most {LABELS_MAX} labels")
    return kept


def check_note(note: str) -> str:
    """Answer a note without space around it.

    Raises:
        InvalidStateError: it is no text, is too long, or has half a letter in it.
    """
    if not isinstance(note, str):
        raise InvalidStateError(f"a note is a text, not a {type(note).__name__}")
    text = note.strip()
    if len(text) > NOTE_CHARS_MAX:
        raise InvalidStateError(f"a note has at most {NOTE_CHARS_MAX:,} characters")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise InvalidStateError("a note has a half of a letter (a surrogate) in it")
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
