"""The best checkpoint that verifies is found, past everything that does not."""

from __future__ import annotations

import pytest

from holdfast.application.recovery.searching import Search
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointCorruptError, CheckpointNotFoundError, KeyDestroyedError
from holdfast.domain.recovery import RecoveryMode
from holdfast.testing import FailingStore
from tests.application.services import make_service


@pytest.fixture
def store() -> FailingStore:
    return FailingStore()


@pytest.fixture
def service(store: FailingStore) -> CheckpointService:
    service = make_service(store)
    for number in range(1, 61):
        service.create_checkpoint("W", {"n": number, "text": str(number) * 900})
    return service


def search(service: CheckpointService) -> Search:
    return Search(service._engine.kit, service._engine.reader)


def test_the_newest_is_taken_if_it_verifies(service: CheckpointService) -> None:
    way = search(service).way("W", RecoveryMode.LATEST, None)
    assert str(way.checkpoint_id) == "W@60" and way.fields["context"]["n"] == 60
    assert way.passed_over == () and way.damage == () and way.notes == ()
    assert way.newest is not None and way.newest.sequence == 60
    assert way.event_seq == way.newest.event_seq


def test_where_there_is_nothing_there_is_no_way(service: CheckpointService) -> None:
    way = search(service).way("V", RecoveryMode.LATEST, None)
    assert way.checkpoint_id is None and way.newest is None and way.event_seq == 0


def test_a_target_has_to_be_there(service: CheckpointService) -> None:
    assert str(search(service).way("W", RecoveryMode.POINT_IN_TIME, 7).checkpoint_id) == "W@7"
    with pytest.raises(CheckpointNotFoundError):
        search(service).way("W", RecoveryMode.POINT_IN_TIME, 61)


def test_the_full_way_begins_with_the_oldest_keyframe(
    service: CheckpointService, store: FailingStore
) -> None:
    keyframes = store.keyframes("W")
    assert len(keyframes) > 1
    newest = keyframes[-1].sequence
    store.fail("keyframe", CheckpointCorruptError("the first keyframe asked for is damaged"))
    way = search(service).way("W", RecoveryMode.FULL, None)
    assert way.fields["context"]["n"] == 60
    assert "W@1:" in way.notes[0] and f"W@{newest}" not in way.notes[0]


def test_a_damaged_keyframe_is_worked_around_and_noted(
    service: CheckpointService, store: FailingStore
) -> None:
    store.fail("keyframe", CheckpointCorruptError("damaged"))
    way = search(service).way("W", RecoveryMode.LATEST, None)
    assert str(way.checkpoint_id) == "W@60" and "an older one was used" in way.notes[0]


def test_what_was_erased_is_not_taken_for_damage(service: CheckpointService, store: FailingStore) -> None:
    store.fail("keyframe", KeyDestroyedError("it was erased"), times=99)
    with pytest.raises(KeyDestroyedError):
        search(service).way("W", RecoveryMode.LATEST, None)
