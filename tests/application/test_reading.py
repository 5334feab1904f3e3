"""Questions to a store are answered from verified bytes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import cast

import pytest

from holdfast.application.reading import Reader
from holdfast.application.resolve import resolve
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    ChecksumMismatchError,
    InvalidStateError,
    StoreDamageWarning,
)
from holdfast.domain.record import Removal
from holdfast.testing import FailingStore
from tests.application.services import make_kit, make_service


def filled() -> FailingStore:
    store = FailingStore()
    service = make_service(store)
    for number in range(60):
        service.create_checkpoint("W", {"n": number, "text": str(number) * 900})
    return store


def test_a_chain_that_does_not_lead_to_the_listed_checkpoint_is_refused() -> None:
    store = filled()
    reader = Reader(make_kit(store))
    store.alter("entries", lambda entries: [replace(entry, checksum="sha256:0") for entry in entries])
    with pytest.raises(ChecksumMismatchError, match="not the one listed"):
        reader.restore("W@60")


def test_damage_that_was_worked_around_is_told() -> None:
    store = filled()
    store.fail("keyframe", ChecksumMismatchError("damaged"))
    with pytest.warns(StoreDamageWarning, match="damaged"):
        state = Reader(make_kit(store)).restore("W@60")
    assert state.context["n"] == 59


def test_the_newest_state_is_that_of_the_newest_living_checkpoint() -> None:
    store = filled()
    reader = Reader(make_kit(store))
    store.remove("W", Removal(sequences=(60,)))
    latest = reader.latest("W")
    assert latest is not None and latest.context["n"] == 58 and latest.checkpoint_id == "W@59"


def test_events_whose_beginning_was_pruned_are_still_verified_among_themselves() -> None:
    store = filled()
    reader = Reader(make_kit(store))
    store.remove("W", Removal(sequences=(1,), events_through=10))
    assert [event.seq for event in reader.events("W", 0, None, 3)] == [11, 12, 13]
    store.alter("events", lambda lines: [line.replace(b'"cp_seq":12', b'"cp_seq":13') for line in lines])
    with pytest.raises(ChecksumMismatchError):
        reader.events("W", 0, None, None)


def test_bytes_that_are_gone_are_damage_and_no_missing_checkpoint() -> None:
    store = FailingStore()
    service = make_service(store)
    service.create_checkpoint("W", {"long": "x" * 20_000})
    found, gone = resolve(store, "W@1"), CheckpointNotFoundError("the file is gone", place="blobs/1")
    restored = Reader(make_kit(store)).restored(found)
    for part in ("blob", "keyframe"):
        store.fail(part, gone)
        with pytest.raises(CheckpointCorruptError, match=r"the file is gone: blobs/1.*recover"):
            Reader(make_kit(store)).restore("W@1")
    store.fail("blob", gone)
    with pytest.raises(CheckpointCorruptError):
        Reader(make_kit(store)).whole(found, restored)


def test_what_is_pruned_while_it_is_read_is_not_called_damaged() -> None:
    store = FailingStore()
    service = make_service(store)
    for number in range(2):
        service.create_checkpoint("W", {"n": number})
    found = resolve(store, "W@1")
    store.remove("W", Removal(sequences=(1,)))
    store.fail("keyframe", CheckpointNotFoundError("the file is gone"))
    with pytest.raises(CheckpointNotFoundError):
        Reader(make_kit(store)).verified(found)


def test_a_state_is_read_whole_or_with_references() -> None:
    store = FailingStore()
    make_service(store).create_checkpoint("W", {"long": "x" * 20_000})
    reader = Reader(make_kit(store))
    restored = reader.restored(resolve(store, "W@1"))
    assert restored.tree["context"]["long"]["$hf"] == "blob"
    assert reader.whole(resolve(store, "W@1"), restored)["context"]["long"] == "x" * 20_000


def test_how_many_are_wanted_is_a_number_and_a_moment_has_a_time_zone() -> None:
    with make_service() as service:
        service.create_checkpoint("W", {})
        for wrong in (-1, 1.5, "9"):
            with pytest.raises(InvalidStateError, match="limit"):
                service.list_checkpoints("W", cast("int", wrong))
            with pytest.raises(InvalidStateError, match="limit"):
                service.events("W", limit=cast("int", wrong))
        with pytest.raises(InvalidStateError, match="time zone"):
            service.list_checkpoints("W", after=datetime(2026, 1, 1))
