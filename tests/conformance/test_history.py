"""The commits that the suite tries a store with are well formed themselves."""

from __future__ import annotations

import json

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.conformance.history import History, Opening, blob_name, make_keyframe, raises
from holdfast.domain.event import decode_event
from holdfast.domain.ids import GENESIS
from holdfast.domain.record import Head


def test_each_commit_builds_on_the_one_before() -> None:
    history = History(MemoryStore())
    first, second = history.commit(text="one"), history.commit(text="two", phase=3)
    assert first.record is not None and second.record is not None
    assert second.expected == first.head
    assert decode_event(first.events[0].data, GENESIS).seq == 1
    assert decode_event(second.events[0].data, first.events[0].hash).seq == 2
    line = json.loads(second.record.data)
    assert (line["seq"], line["parent"], line["phase"]) == (2, first.record.entry.checksum, 3)
    assert second.record.entry.length == len(second.record.data)


def test_a_commit_of_events_alone_keeps_the_checkpoint_head() -> None:
    history = History(MemoryStore())
    history.commit(is_checkpoint=False)
    assert (history.head.sequence, history.head.event_seq) == (0, 1)
    assert history.draft(is_checkpoint=False).head.checksum == Head().checksum


def test_keyframes_and_blobs_are_named_by_their_bytes() -> None:
    keyframe = make_keyframe(3, b"state", blobs=("x",))
    assert keyframe.entry.sha256 == blob_name(b"state")
    assert (keyframe.entry.length, keyframe.entry.blobs) == (5, ("x",))


def test_an_error_is_found_in_the_call_and_in_what_it_yields() -> None:
    def late() -> object:
        yield 1
        raise KeyError("late")

    assert isinstance(raises(KeyError, late), KeyError)
    assert isinstance(raises(ValueError, lambda: int("x")), ValueError)
    with pytest.raises(AssertionError, match="KeyError was not raised"):
        raises(KeyError, lambda: 7)


def test_a_suite_must_say_how_to_open_a_store() -> None:
    with pytest.raises(NotImplementedError):
        Opening().open_store()
