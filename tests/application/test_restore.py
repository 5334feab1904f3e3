"""Restoring: every byte verified, and a way around damage where there is one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from unittest.mock import ANY

import pytest

from holdfast.adapters.formats import Formats
from holdfast.adapters.memory import MemoryStore
from holdfast.application.keyframes import ReadKeyframe
from holdfast.application.records import Body, Opened, build, change_body, open_record
from holdfast.application.restore import Restorer, open_alone
from holdfast.application.survey import survey
from holdfast.domain import delta
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    ChecksumMismatchError,
    StoreDamageWarning,
)
from holdfast.domain.ids import GENESIS
from holdfast.domain.record import Head, Keyframe
from holdfast.testing import FailingStore
from tests.application.services import make_service


def filled(checkpoints: int = 80) -> FailingStore:
    """Make a store with a history that has several keyframes."""
    store = FailingStore()
    service = make_service(store)
    for number in range(checkpoints):
        service.create_checkpoint("W", {"n": number, "text": str(number) * 900})
    return store


def without(damaged: bytes, records: Iterable[bytes]) -> list[bytes]:
    """Leave one record out."""
    return [one for one in records if one != damaged]


def restorer(store: FailingStore) -> Restorer:
    return Restorer(store, make_service(store)._engine.kit.formats)


def test_a_restore_reads_one_keyframe_and_the_records_after_it() -> None:
    store = filled()
    keyframes = [keyframe.sequence for keyframe in store.keyframes("W")]
    assert len(keyframes) > 2
    store.calls.clear()
    restored = restorer(store).restore("W", keyframes[1] + 1)
    assert restored.tree["context"]["n"] == keyframes[1]
    assert store.calls["keyframe"] == 1 and store.calls["records"] == 1
    assert restored.notes == ()


def test_the_checksum_is_that_of_the_chain() -> None:
    store = filled()
    reader = restorer(store)
    for entry in store.entries("W"):
        assert reader.restore("W", entry.sequence).checksum == entry.checksum


def test_a_damaged_keyframe_is_passed_over_and_told() -> None:
    store = filled()
    newest = store.keyframes("W")[-1].sequence
    store.fail("keyframe", ChecksumMismatchError("the bytes were changed"))
    restored = restorer(store).restore("W", 80)
    assert restored.tree["context"]["n"] == 79
    assert restored.notes == (f"keyframe W@{newest}: the bytes were changed; an older one was used",)


def test_the_first_error_is_told_where_no_way_is_left() -> None:
    store = filled()
    store.fail("keyframe", ChecksumMismatchError("the newest"), times=1)
    store.fail("keyframe", ChecksumMismatchError("an older one"), times=100)
    with pytest.raises(ChecksumMismatchError, match="the newest"):
        restorer(store).restore("W", 80)


def test_a_keyframe_that_its_record_does_not_name_is_refused() -> None:
    store = filled(3)
    workflow = store.store._workflows["W"]  # type: ignore[attr-defined]
    other = filled(1).store._workflows["W"].keyframes[1]  # type: ignore[attr-defined]
    forged = other.data.replace(b'"n":0', b'"n":9')
    import hashlib

    entry = replace(other.entry, sha256=hashlib.sha256(forged).hexdigest())
    workflow.keyframes[1] = Keyframe(entry, forged)
    with pytest.raises(ChecksumMismatchError, match="not the one its record names"):
        restorer(store).restore("W", 2)


def test_a_record_that_is_gone_is_noticed() -> None:
    store = filled(3)
    store.alter("records", lambda records: list(records)[:-1])
    with pytest.raises(CheckpointError):
        restorer(store).restore("W", 3)


def test_a_changed_record_is_noticed_wherever_it_stands() -> None:
    for changed in range(3):
        store = filled(3)

        def damage(records: object, changed: int = changed) -> list[bytes]:
            lines = list(records)  # type: ignore[call-overload]
            return [
                line.replace(b"W", b"V") if number == changed and len(lines) == 3 else line
                for number, line in enumerate(lines)
            ]

        store.alter("records", damage)
        with pytest.raises(CheckpointCorruptError):
            restorer(store).restore("W", 3)


def test_what_never_was_is_not_found() -> None:
    store = filled(2)
    for workflow_id, sequence in (("W", 3), ("W", 0), ("V", 1)):
        with pytest.raises(CheckpointNotFoundError):
            restorer(store).restore(workflow_id, sequence)
    assert store.head("V") == Head()


@pytest.mark.parametrize("gone", ["nothing", "record", "listing", "both"])
def test_a_record_is_opened_on_top_of_what_others_say_of_the_one_before(gone: str) -> None:
    store = filled(3)
    last = next(iter(store.records("W", 3, 3)))
    second = next(entry for entry in store.entries("W") if entry.sequence == 2)
    assert b'"parent"' not in last
    if gone in ("record", "both"):
        store.alter("records", lambda records: [line.replace(b'"sha256:', b'"SHA256:') for line in records])
    if gone in ("listing", "both"):
        store.alter("entries", lambda entries: [entry for entry in entries if entry.sequence != 2])
    if gone == "both":
        with pytest.raises(CheckpointCorruptError):
            open_alone(store, last, "W", 3)
        return
    opened, parent = open_alone(store, last, "W", 3)
    assert (opened.line, parent) == (last, second.checksum)


def test_a_record_whose_parent_nothing_tells_is_refused() -> None:
    store = filled(1)
    for line in (b'{"parent":1}\n', b"{}\n", b""):
        with pytest.raises(CheckpointCorruptError):
            open_alone(store, line, "V", 7)


def test_a_record_of_before_names_its_parent() -> None:
    store = filled(2)
    data, checksum = build(b'{"seq":7,"parent":"sha256:1"', Body(b""), "sha256:1")
    assert open_alone(store, data, "V", 7) == (Opened(data, b"", checksum), "sha256:1")
    with pytest.raises(ChecksumMismatchError):
        open_alone(store, data.replace(b"sha256:1", b"sha256:2"), "V", 7)


def test_where_the_last_record_is_damaged_no_other_keyframe_is_tried_in_vain() -> None:
    for is_from_oldest in (False, True):
        store = filled()
        sequence = store.keyframes("W")[-1].sequence + 1
        [whole] = store.records("W", sequence, sequence)
        store.alter("records", partial(without, whole))
        store.calls.clear()
        with pytest.raises(CheckpointError):
            restorer(store).restore("W", sequence, is_from_oldest=is_from_oldest)
        assert store.calls["keyframe"] == 1


def test_from_the_oldest_keyframe_damage_in_between_is_gone_around() -> None:
    store = filled()
    sequence = store.keyframes("W")[1].sequence
    [damaged] = store.records("W", sequence, sequence)
    store.alter("records", partial(without, damaged))
    store.calls.clear()
    assert restorer(store).restore("W", 80, is_from_oldest=True).tree["context"]["n"] == 79
    assert store.calls["keyframe"] == 2


def test_changes_that_leave_no_object_are_no_state() -> None:
    data, checksum = build(b'{"seq":2', change_body([delta.set_value((), 1)], Formats()), GENESIS)
    record = open_record(data, GENESIS, "W", 2)
    assert record.checksum == checksum
    restorer = Restorer(MemoryStore(), Formats())
    with pytest.raises(CheckpointCorruptError, match="is not an object"):
        restorer._apply(ReadKeyframe({"n": 1}, GENESIS, False, False), [record], ())


def with_a_complete_one() -> FailingStore:
    """Make a store with a checkpoint that was made complete, as the state before it could not be read."""
    store = FailingStore()
    service = make_service(store)
    for number in (1, 2):
        service.create_checkpoint("W", {"n": number, "lost": "full"})
    store.fail("keyframe", CheckpointCorruptError("damaged"))
    service = make_service(store)
    with pytest.warns(StoreDamageWarning):
        service.create_checkpoint("W", {"n": 3})
    service.create_checkpoint("W", {"n": 4, "full": "sha256:of nothing"})
    return store


def test_nothing_before_a_complete_checkpoint_is_a_part_of_its_state() -> None:
    store = with_a_complete_one()
    for sequence, context in ((2, {"n": 2, "lost": "full"}), (3, {"n": 3}), (4, {"n": 4, "full": ANY})):
        for is_from_oldest in (False, True):
            restored = restorer(store).restore("W", sequence, is_from_oldest=is_from_oldest)
            assert restored.tree["context"] == context and restored.notes == ()


@pytest.mark.parametrize("is_gone", [True, False])
def test_without_its_keyframe_a_complete_checkpoint_is_not_made_from_others(is_gone: bool) -> None:
    store = with_a_complete_one()
    keyframes = store.store._workflows["W"].keyframes  # type: ignore[attr-defined]
    if is_gone:
        del keyframes[3]
    else:
        keyframes[3] = replace(keyframes[3], data=keyframes[3].data.replace(b'"n":3', b'"n":9'))
    for sequence in (3, 4):
        with pytest.raises(CheckpointError):
            restorer(store).restore("W", sequence)
    assert restorer(store).restore("W", 2).tree["context"]["n"] == 2
    assert [entry.sequence for entry in survey(store, "W").reachable] == [2, 1]
