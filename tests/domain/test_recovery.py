"""What a recovery tells."""

from __future__ import annotations

from holdfast.domain.recovery import RecoveryMode, RecoveryResult


def test_a_result_is_true_if_the_recovery_succeeded() -> None:
    assert RecoveryResult(True)
    assert not RecoveryResult(False)


def test_modes_are_named_as_in_a_request() -> None:
    assert [str(mode) for mode in RecoveryMode] == ["full", "latest", "point_in_time"]
