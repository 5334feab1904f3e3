from __future__ import annotations

import pytest

from holdfast.domain.annotation import (
    LABEL_CHARS_MAX,
    LABELS_MAX,
    NOTE_CHARS_MAX,
    Annotation,
    check_labels,
    check_note,
    read_annotation,
    write_annotation,
)
from holdfast.domain.errors import InvalidStateError


def test_labels_are_in_order_and_each_is_there_once():
    assert check_labels(["b", " a ", "b"]) == ("a", "b")


@pytest.mark.parametrize(
    "labels", [[""], [" "], ["x" * (LABEL_CHARS_MAX + 1)], ["a\nb"], map(str, range(LABELS_MAX + 1))]
)
def test_what_cannot_be_a_label_is_refused(labels):
    with pytest.raises(InvalidStateError):
        check_labels(list(labels))


def test_a_note_has_a_limit():
    assert check_note(" why \n") == "why"
    with pytest.raises(InvalidStateError):
        check_note("x" * (NOTE_CHARS_MAX + 1))


def test_what_was_said_is_read_again():
    said = Annotation(("a", "b"), "why", "ann", 7)
    assert read_annotation(write_annotation(said), 7) == said


def test_what_has_another_shape_says_nothing():
    assert read_annotation({"labels": 3, "note": ["x"], "by": 1}, 4) == Annotation(event_seq=4)


@pytest.mark.parametrize("labels", ["abc", b"abc", 5, [5], [None], {"a": 1}, ["Smith, Ann"]])
def test_labels_of_another_kind_are_refused_by_name(labels) -> None:
    with pytest.raises(InvalidStateError, match="label"):
        check_labels(labels)


@pytest.mark.parametrize("note", [5, ["x"], b"x", "\ud800"])
def test_a_note_of_another_kind_is_refused_by_name(note) -> None:
    with pytest.raises(InvalidStateError, match="a note"):
        check_note(note)
