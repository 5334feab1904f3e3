"""A base read back from the store is the one that was forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import pytest

from holdfast.application.loading import caption_of, load_base, record_fields
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    ChecksumMismatchError,
    StoreDamageWarning,
)
from holdfast.domain.record import Entry, Head, Removal
from holdfast.testing import FailingStore
from tests.application.services import make_kit, make_service


def test_a_new_workflow_has_nothing_to_build_on() -> None:
    loaded = load_base(make_kit(), "W")
    assert loaded.base.head == Head() and loaded.base.snapshot is None and loaded.owed is None


def test_what_is_read_back_equals_what_was_remembered_at_every_step() -> None:
    service = make_service()
    kit = service._engine.kit
    for number in range(120):
        service.create_checkpoint(
            "W", {"n": number, "text": str(number) * 900}, agent_id="a", agent_state={"n": 1}
        )
        with service._engine.writer.bases.slot("W") as slot:
            remembered = slot.base
        loaded = load_base(kit, "W").base
        assert remembered is not None and remembered.snapshot is not None and loaded.snapshot is not None
        for name in (
            "head",
            "id",
            "fingerprint",
            "group",
            "keyframe_bytes",
            "weight",
            "checkpoint_event_seq",
        ):
            assert getattr(loaded, name) == getattr(remembered, name), name
        assert loaded.snapshot.plain(kit.packer) == remembered.snapshot.plain(kit.packer)
        assert loaded.size_bytes == remembered.size_bytes


def test_of_a_long_workflow_only_the_last_group_is_listed() -> None:
    store = FailingStore()
    service = make_service(store)
    for number in range(200):
        service.create_checkpoint("W", {"n": number, "text": str(number) * 900})
    listed: list[int] = []

    def drawn(entries: Iterable[Entry]) -> Iterator[Entry]:
        for entry in entries:
            listed.append(entry.sequence)
            yield entry

    store.alter("entries", drawn)
    base = load_base(make_kit(store), "W").base
    assert listed == list(range(200, base.group - 1, -1)) and len(listed) < 60


def test_a_damaged_last_state_is_told_and_the_next_checkpoint_is_complete() -> None:
    store = FailingStore()
    make_service(store).create_checkpoint("W", {"a": 1})
    store.fail("keyframe", CheckpointCorruptError("damaged"))
    service = make_service(store)
    with pytest.warns(StoreDamageWarning, match="damaged"):
        second = service.create_checkpoint("W", {"a": 2})
    assert [keyframe.sequence for keyframe in store.keyframes("W")] == [1, 2]
    assert service.restore_checkpoint(second).context == {"a": 2}
    assert service.validate_checkpoint(second)


def test_a_state_that_was_erased_is_no_damage_and_the_next_checkpoint_is_complete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STORE_KEY", "ab" * 32)
    sealed = {"encrypt": True, "encryption_key": "env:STORE_KEY"}
    store = FailingStore()
    first = make_service(store, **sealed)
    first.create_checkpoint("W", {"a": 1})
    first.erasure.workflow("W", reason="asked for")
    service = make_service(store, **sealed)
    # Warnings are errors here.
    second = service.create_checkpoint("W", {"a": 2})
    assert service.restore_checkpoint(second).context == {"a": 2}


def test_a_workflow_that_changes_while_it_is_read_is_a_conflict() -> None:
    store = FailingStore()
    make_service(store).create_checkpoint("W", {"a": 1})
    store.alter("head", lambda head: Head(1, "sha256:other", head.event_seq, head.event_hash))
    with pytest.raises(CheckpointConflictError):
        load_base(make_kit(store), "W")


def test_a_number_that_the_journal_tells_of_is_not_given_again_before_a_recovery() -> None:
    store = FailingStore()
    first, last = (make_service(store).create_checkpoint("W", {"a": number}) for number in (1, 2))
    head = store.head("W")
    store.alter("head", lambda _: replace(head, sequence=1, checksum=first.checksum))
    store.alter("entries", lambda entries: [entry for entry in entries if entry.sequence < last.sequence])
    with pytest.raises(CheckpointCorruptError, match=r"tells of checkpoints up to 2.*recover W"):
        load_base(make_kit(store), "W")


def test_a_record_that_is_not_the_listed_one_is_refused() -> None:
    store = FailingStore()
    service = make_service(store)
    service.create_checkpoint("W", {"a": 1})
    service.create_checkpoint("V", {"a": 1})
    [entry] = store.entries("W")
    store.alter("records", lambda _: store.store.records("V", 1, 1))
    with pytest.raises(ChecksumMismatchError):
        record_fields(store, "W", entry)


def test_the_caption_of_a_stored_checkpoint_is_the_one_it_would_have_had() -> None:
    store = FailingStore()
    service = make_service(store)
    service.create_checkpoint("W", {"a": 1})
    service.append_event("W", "STEP")
    service.create_checkpoint("W", {"a": 2}, agent_id="a", agent_version="1", session_id="s")
    first, second = store.entries("W")
    caption = caption_of(store, "W", second)
    assert (caption.sequence, caption.checksum, caption.timestamp) == (2, second.checksum, second.timestamp)
    assert (caption.agent_id, caption.agent_version, caption.session_id) == ("a", "1", "s")
    assert (caption.parent_sequence, caption.parent_checksum) == (1, first.checksum)
    assert (caption.events_since_prev, caption.size_bytes) == (2, second.state_bytes)


def test_a_tombstone_at_the_head_is_built_upon_but_never_repeated() -> None:
    store = FailingStore()
    service = make_service(store)
    service.create_checkpoint("W", {"a": 1})
    service.create_checkpoint("W", {"a": 2})
    store.remove("W", Removal(sequences=(2,)))
    loaded = load_base(make_kit(store), "W").base
    assert loaded.id is None and loaded.snapshot is not None
    assert make_service(store).create_checkpoint("W", {"a": 2}).sequence == 3
