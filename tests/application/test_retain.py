"""Plans for pruning: what goes, what it gives back, and a second keyframe where one would be too few."""

from __future__ import annotations

import pytest

from holdfast import CheckpointService
from holdfast.application.retain import PruneResult, plan_delete, plan_prune, secure
from holdfast.domain.errors import CheckpointCorruptError, ChecksumMismatchError
from holdfast.domain.retention import RetentionPolicy
from holdfast.testing import FailingStore
from tests.application.services import make_kit, make_service
from tests.process.conftest import fast_folder as fast_folder
from tests.recovery.conftest import place as place
from tests.recovery.places import Place

FEW = RetentionPolicy(retain_count=3, retain_days=0)


def test_a_result_counts() -> None:
    assert int(PruneResult((1, 2, 5), 100)) == 3


def test_a_plan_touches_nothing_and_tells_what_the_store_gives_back() -> None:
    service = make_service()
    kit = service._engine.kit
    for number in range(100):
        service.create_checkpoint("W", {"n": number, "text": str(number) * 900})
    plan = plan_prune(kit, "W", FEW)
    assert plan == plan_prune(kit, "W", FEW)
    assert plan.removal.groups
    events_bytes = sum(map(len, kit.store.events("W")))
    freed_bytes = kit.store.remove("W", plan.removal)
    assert plan.freed_bytes <= freed_bytes <= plan.freed_bytes + events_bytes


def test_what_has_a_label_stays_where_that_was_asked_for_whenever_it_was_given() -> None:
    kit = make_kit()
    service = CheckpointService(kit)
    for number in range(8):
        service.create_checkpoint("W", {"n": number})
    service.annotate("W@2", labels=["golden"])
    service.annotate("W@3", labels=["golden"])
    service.annotate("W@3", labels=[])
    service.annotate("W@4", note="no label")
    policy = RetentionPolicy(2, 0, keep_tagged=True)
    assert 2 not in plan_prune(kit, "W", policy).removal.sequences
    assert plan_prune(kit, "W", RetentionPolicy(2, 0)).removal.sequences == (1, 2, 3, 4, 5, 6)
    assert service.prune_checkpoints("W", policy=policy).removed == (1, 3, 4, 5, 6)
    assert service.restore_checkpoint("W@2").context == {"n": 1}


def test_one_keyframe_for_all_that_stays_becomes_two() -> None:
    service = make_service()
    kit = service._engine.kit
    for number in range(10):
        service.create_checkpoint("W", {"n": number, "text": "x" * 900})
    assert len(kit.store.keyframes("W")) == 1
    secure(kit, "W", FEW)
    assert [keyframe.sequence for keyframe in kit.store.keyframes("W")] == [1, 10]
    secure(kit, "W", FEW)
    assert len(kit.store.keyframes("W")) == 2
    assert service.restore_checkpoint("W@10").context["n"] == 9


def test_nothing_is_written_where_nothing_goes() -> None:
    service = make_service()
    kit = service._engine.kit
    service.create_checkpoint("W", {"n": 1})
    secure(kit, "W", FEW)
    secure(kit, "V", FEW)
    assert len(kit.store.keyframes("W")) == 1
    assert plan_prune(make_kit(), "V", FEW).removal.sequences == ()


def test_no_state_is_read_where_nothing_goes() -> None:
    store = FailingStore()
    service = make_service(store)
    for number in range(5):
        service.create_checkpoint("W", {"n": number})
    store.calls.clear()
    assert plan_prune(service._engine.kit, "W", RetentionPolicy()).removal.sequences == ()
    assert not store.calls["records"] and not store.calls["keyframe"]


def test_deleting_the_only_checkpoint_takes_everything_with_it() -> None:
    service = make_service()
    kit = service._engine.kit
    service.create_checkpoint("W", {"text": "x" * 20_000})
    plan = plan_delete(kit, "W", 1)
    assert plan.removal.sequences == (1,) and plan.removal.groups == (1,) and len(plan.removal.blobs) == 1


def test_what_can_be_restored_stays_where_the_newest_cannot(place: Place) -> None:
    with place.open() as service:
        for number in range(1, 9):
            service.create_checkpoint("W", {"n": number})
    place.damage_record("W", 5)
    with place.open() as service:
        removed = service.prune_checkpoints("W", retain_count=2, retain_days=0)
        assert removed.removed == (1, 2, 5, 6), "the last two are kept, and the last two that can be restored"
        result = service.recover_workflow("W")
        assert result.state is not None and result.state.context == {"n": 4}


def test_where_nothing_can_be_restored_nothing_goes(place: Place) -> None:
    with place.open() as service:
        for number in range(1, 9):
            service.create_checkpoint("W", {"n": number})
    place.damage_keyframe("W", 1)
    with place.open() as service:
        with pytest.raises(CheckpointCorruptError):
            service.prune_checkpoints("W", retain_count=2, retain_days=0)
        assert len(service.list_checkpoints("W")) == 8


def test_what_can_be_restored_stays_where_a_blob_of_the_newest_is_damaged() -> None:
    damaged: set[str] = set()

    class Spoilt(FailingStore):
        def blob(self, sha256: str) -> bytes:
            if sha256 in damaged:
                raise ChecksumMismatchError("the bytes were changed", place=sha256)
            return super().blob(sha256)

    store = Spoilt()
    service = make_service(store)
    for number in range(1, 9):
        service.create_checkpoint("W", {"n": number, "large": ("a" if number < 5 else "b") * 500_000})
    [fifth] = [entry for entry in store.entries("W") if entry.sequence == 5]
    damaged.update(fifth.blobs)
    removed = service.prune_checkpoints("W", retain_count=2, retain_days=0)
    assert removed.removed == (1, 2, 5, 6)
    result = service.recover_workflow("W")
    assert result.state is not None and result.state.context["n"] == 4
