from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.checkpoint import (
    LEGAL_TRANSITIONS,
    Checkpoint,
    CheckpointMeta,
    CheckpointStatus,
    CheckpointType,
    Scope,
    check_transition,
)
from holdfast.domain.errors import CheckpointCorruptError, InvalidStateError
from holdfast.domain.ids import CheckpointID
from holdfast.domain.record import Entry
from holdfast.domain.time import timestamp_text

NOW = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)
LATER = NOW + timedelta(seconds=5)
STATUSES = st.sampled_from(CheckpointStatus)
MOVES = {
    CheckpointStatus.COMPLETED: lambda checkpoint, at: checkpoint.mark_completed(at),
    CheckpointStatus.FAILED: lambda checkpoint, at: checkpoint.mark_failed("boom", at),
    CheckpointStatus.RECOVERING: lambda checkpoint, at: checkpoint.mark_recovering(at),
}


def a_checkpoint(status: CheckpointStatus = CheckpointStatus.ACTIVE, **changes: object) -> Checkpoint:
    fields = {
        "id": CheckpointID("WF", 3, NOW, "sha256:0", "u-3"),
        "type": CheckpointType.AGENT_START,
        "created_at": NOW,
        "updated_at": NOW,
        "status": status,
    }
    return Checkpoint(**(fields | changes))


def test_there_are_eight_types_and_four_statuses():
    assert [kind.value for kind in CheckpointType] == [
        "workflow_start",
        "stage_start",
        "stage_complete",
        "agent_start",
        "agent_complete",
        "sync_barrier",
        "error_state",
        "workflow_complete",
    ]
    assert {status.value for status in CheckpointStatus} == {"active", "completed", "failed", "recovering"}


@pytest.mark.parametrize(
    ("stage", "agent", "scope"),
    [
        (None, None, Scope.WORKFLOW),
        ("s", None, Scope.STAGE),
        ("s", "a", Scope.AGENT),
        (None, "a", Scope.AGENT),
    ],
)
def test_the_scope_is_the_narrowest_name_given(stage, agent, scope):
    assert Scope.of(stage, agent) is scope
    checkpoint_id = CheckpointID("WF", 1, NOW, "sha256:0", "u", stage, agent)
    assert a_checkpoint(id=checkpoint_id).scope is scope


@given(STATUSES, st.sampled_from(sorted(MOVES)))
def test_a_move_is_made_if_legal_and_refused_if_not(status, target):
    checkpoint = a_checkpoint(status)
    if target in LEGAL_TRANSITIONS[status]:
        moved = MOVES[target](checkpoint, LATER)
        assert (moved.status, moved.updated_at, moved.created_at) == (target, LATER, NOW)
        assert checkpoint.status is status
    else:
        with pytest.raises(InvalidStateError, match=f"WF@3. From {status}"):
            MOVES[target](checkpoint, LATER)


def test_the_legal_moves_are_these_and_no_others():
    legal = {(str(old), str(new)) for old, news in LEGAL_TRANSITIONS.items() for new in news}
    assert legal == {
        ("active", "completed"),
        ("active", "failed"),
        ("active", "recovering"),
        ("failed", "recovering"),
        ("recovering", "completed"),
        ("recovering", "failed"),
    }


def test_nothing_becomes_active_again():
    for status in CheckpointStatus:
        with pytest.raises(InvalidStateError):
            check_transition(status, CheckpointStatus.ACTIVE)


@given(st.lists(st.sampled_from(sorted(MOVES)), max_size=30))
def test_retries_count_the_failures_of_recoveries(targets):
    checkpoint, failed_recoveries = a_checkpoint(), 0
    for target in targets:
        before = checkpoint.status
        if target not in LEGAL_TRANSITIONS[before]:
            continue
        checkpoint = MOVES[target](checkpoint, LATER)
        pair = (before, target)
        failed_recoveries += pair == (CheckpointStatus.RECOVERING, CheckpointStatus.FAILED)
    assert checkpoint.retry_count == failed_recoveries


@given(STATUSES, st.integers(0, 5), st.integers(0, 5))
def test_work_may_be_retried_while_open_and_retries_are_left(status, retry_count, max_retries):
    checkpoint = a_checkpoint(status, retry_count=retry_count, max_retries=max_retries)
    is_open = status in (CheckpointStatus.ACTIVE, CheckpointStatus.FAILED)
    assert checkpoint.can_retry() is (is_open and retry_count < max_retries)


def test_a_failure_keeps_message_and_stack_trace():
    try:
        raise RuntimeError("the model is gone")
    except RuntimeError as error:
        failed = a_checkpoint().mark_failed(error, LATER)
    assert failed.error_message == "the model is gone"
    assert "test_a_failure_keeps_message_and_stack_trace" in (failed.error_stacktrace or "")


def test_an_error_that_cannot_be_printed_is_still_a_failure():
    class Unprintable(Exception):
        def __str__(self) -> str:
            raise ValueError

    failed = a_checkpoint().mark_failed(Unprintable(), LATER)
    assert failed.error_message
    assert "Unprintable" in (failed.error_stacktrace or "")


def test_an_error_without_a_message_is_named_by_its_class():
    assert a_checkpoint().mark_failed(KeyboardInterrupt(), LATER).error_message == "KeyboardInterrupt"


def test_an_error_stays_readable_during_recovery_and_is_settled_by_completion():
    recovering = a_checkpoint().mark_failed("boom", NOW).mark_recovering(NOW)
    assert recovering.error_message == "boom"
    assert recovering.mark_completed(LATER).error_message is None


def test_a_listing_entry_becomes_meta():
    entry = Entry(
        sequence=7,
        uuid="u-7",
        timestamp=timestamp_text(NOW),
        type="agent_complete",
        checksum="sha256:7",
        state_bytes=2048,
        status="failed",
        stage="research",
        agent="worker-1",
        session="s-1",
        phase=2,
        label="before lunch",
        retry_count=1,
        pinned=True,
    )
    meta = CheckpointMeta.from_entry("WF", entry)
    assert meta == CheckpointMeta(
        id=CheckpointID("WF", 7, NOW, "sha256:7", "u-7", "research", "worker-1"),
        size_bytes=2048,
        schema_version="1.0.0",
        agent_id="worker-1",
        created_at=NOW,
        type=CheckpointType.AGENT_COMPLETE,
        status=CheckpointStatus.FAILED,
        scope=Scope.AGENT,
        stage_id="research",
        session_id="s-1",
        phase=2,
        retry_count=1,
        pinned=True,
        label="before lunch",
    )


@pytest.mark.parametrize("wrong", [{"type": "nap"}, {"status": "lost"}, {"timestamp": "now"}])
def test_an_entry_with_unknown_words_is_refused(wrong):
    fields = {
        "sequence": 7,
        "uuid": "",
        "timestamp": timestamp_text(NOW),
        "type": "error_state",
        "checksum": "",
    }
    with pytest.raises(CheckpointCorruptError):
        CheckpointMeta.from_entry("WF", Entry(**(fields | wrong)))
