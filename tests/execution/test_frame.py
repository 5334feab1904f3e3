"""What a step is given, and what it may say."""

from __future__ import annotations

from holdfast.execution.frame import Frame, Milestone, Notes


def test_notes_tell_only_what_there_is() -> None:
    notes = Notes()
    assert notes.told() == {}
    notes.outputs.append(1)
    notes.confidence = 0.0
    assert notes.told() == {"outputs": [1], "confidence": 0.0}


def test_a_frame_is_that_of_a_first_attempt_in_a_first_round() -> None:
    frame = Frame("research[0]", "research", "gather")
    assert (frame.attempt, frame.iteration, frame.item, list(frame.history)) == (1, 1, None, [])


def test_a_milestone_may_have_no_partial_result() -> None:
    assert Milestone("half", {"page": 1}).partial is None
