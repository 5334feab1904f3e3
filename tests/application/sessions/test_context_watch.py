"""A watch says when a window is too full, what to leave then, and whom to tell."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.application.sessions.context_watch import DEFAULT_THRESHOLD, ContextWatch, Leaving
from holdfast.domain.errors import InvalidStateError


def test_without_a_summary_the_states_speak_for_themselves():
    assert ContextWatch().prepare("s-1", 0.9) == Leaving()
    assert ContextWatch().threshold == DEFAULT_THRESHOLD


def test_what_is_left_may_be_a_summary_or_everything():
    whole = Leaving("half done", {"n": 1}, "reviewer")
    assert ContextWatch(summarize=lambda session, used: f"{session} {used}").prepare("s", 0.9) == Leaving(
        "s 0.9"
    )
    assert ContextWatch(summarize=lambda session, used: whole).prepare("s", 0.9) is whole


def test_what_is_nothing_to_leave_is_refused():
    def seven(session: str, used: float) -> Any:
        return 7

    with pytest.raises(InvalidStateError, match="nothing to leave"):
        ContextWatch(summarize=seven).prepare("s", 0.9)


def test_a_threshold_is_a_fraction():
    with pytest.raises(InvalidStateError, match="from 0 to 1"):
        ContextWatch(80)
