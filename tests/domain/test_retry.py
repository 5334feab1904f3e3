"""What is tried again, how often, and after which pauses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import (
    AtomicRenameFailedError,
    CheckpointWriteError,
    ChecksumMismatchError,
    DiskFullError,
    PermissionDeniedError,
    UnsupportedVersionError,
)
from holdfast.domain.retry import FaultSettings, RetryPolicy


def test_the_defaults_are_those_of_the_design():
    policy = RetryPolicy()
    assert (policy.max_attempts, policy.base_delay_ms, policy.max_delay_ms) == (3, 100, 5000)
    assert (policy.exponential_base, policy.jitter) == (2.0, True)


@pytest.mark.parametrize("error", [DiskFullError("x"), AtomicRenameFailedError("x")])
def test_what_may_pass_is_tried_again(error):
    assert RetryPolicy().is_retryable(error)
    assert [RetryPolicy().should_retry(error, attempts) for attempts in (1, 2, 3)] == [True, True, False]


@pytest.mark.parametrize(
    "error",
    [
        PermissionDeniedError("x"),
        ChecksumMismatchError("x"),
        UnsupportedVersionError("x"),
        CheckpointWriteError("x"),
        ValueError("x"),
    ],
)
def test_what_does_not_pass_is_not(error):
    assert not RetryPolicy().is_retryable(error)
    assert not RetryPolicy().should_retry(error, 1)


def test_what_is_listed_as_hopeless_wins():
    policy = RetryPolicy(retryable_errors=(CheckpointWriteError,))
    assert policy.is_retryable(DiskFullError("x")) and not policy.is_retryable(PermissionDeniedError("x"))


def test_pauses_grow_exponentially_up_to_their_bound():
    policy = RetryPolicy(jitter=False)
    assert [policy.delay_seconds(attempts) for attempts in (1, 2, 3, 4)] == [0.1, 0.2, 0.4, 0.8]
    assert policy.delay_seconds(7) == 5.0 and policy.delay_seconds(100_000) == 5.0


@given(st.integers(1, 1000), st.floats(0, 1))
def test_jitter_takes_away_up_to_half_of_a_pause(attempts, random):
    whole = RetryPolicy(jitter=False).delay_seconds(attempts)
    assert whole / 2 <= RetryPolicy().delay_seconds(attempts, random) <= whole


def test_nothing_degrades_unless_asked_for():
    assert not FaultSettings().is_degrading
