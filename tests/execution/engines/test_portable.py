"""Errors on their way from one process to another."""

from __future__ import annotations

from holdfast.execution.engines.portable import RemoteAgentError, portable
from tests.execution.engines.odd_errors import LockedError


def test_an_error_travels_as_it_is_with_its_trace() -> None:
    told = portable(KeyError("x"))
    assert isinstance(told, KeyError)
    assert told.__notes__[0].startswith("On a worker:")


def test_an_error_that_cannot_travel_is_told_in_words() -> None:
    told = portable(LockedError())
    assert isinstance(told, RemoteAgentError)
    assert str(told).startswith("LockedError: ('it is locked'")


def test_secrets_are_hidden_in_the_trace_before_it_is_cut() -> None:
    told = portable(KeyError("x" * 10_000), lambda text, chars_max: f"{len(text) > chars_max} hidden")
    assert told.__notes__ == ["On a worker:\nTrue hidden"]
