"""Validation looks at a checkpoint from every side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.application.reading import Reader
from holdfast.application.service import CheckpointService
from holdfast.application.validate import ValidationResult, list_workflow, validate_listed
from holdfast.domain.errors import CheckpointCorruptError, CheckpointNotFoundError
from holdfast.testing import FailingStore
from tests.application.services import make_kit, make_service


@pytest.fixture
def store() -> FailingStore:
    return FailingStore()


@pytest.fixture
def service(store: FailingStore) -> CheckpointService:
    service = make_service(store)
    for number in range(60):
        service.create_checkpoint("W", {"n": number, "text": str(number) * 900, "long": "x" * 20_000})
    return service


def problems(result: ValidationResult) -> str:
    assert not result.valid and not result
    return " ".join(result.problems)


def test_what_is_right_is_valid(service: CheckpointService) -> None:
    result = service.validate_checkpoint("W@60")
    assert result and result.valid and result.problems == () and result.notes == ()
    assert str(result.id) == "W@60"


def test_a_changed_record_is_found(service: CheckpointService, store: FailingStore) -> None:
    store.alter("records", lambda lines: [line.replace(b'"n"', b'"m"') for line in lines])
    assert "not the one that was committed" in problems(service.validate_checkpoint("W@60"))


def test_a_listing_that_lies_is_found(service: CheckpointService, store: FailingStore) -> None:
    store.alter("entries", lambda entries: [replace(entry, state_bytes=7) for entry in entries])
    assert "7 were committed" in problems(service.validate_checkpoint("W@60"))
    store.alter("entries", lambda entries: [replace(entry, parent=entry.sequence - 2) for entry in entries])
    assert "on top of the checkpoint before" in problems(service.validate_checkpoint("W@60"))


def test_a_missing_blob_is_found(service: CheckpointService, store: FailingStore) -> None:
    store.fail("blob", CheckpointNotFoundError("there is no such blob"), times=10)
    assert "no such blob" in problems(service.validate_checkpoint("W@60"))


def test_damage_that_does_no_harm_is_noted(service: CheckpointService, store: FailingStore) -> None:
    store.fail("keyframe", CheckpointCorruptError("damaged"))
    result = service.validate_checkpoint("W@60")
    assert result.valid and "damaged" in result.notes[0]


def test_many_are_validated_with_one_look_at_their_listing(
    service: CheckpointService, store: FailingStore
) -> None:
    kit = make_kit(store)
    reader = Reader(kit)
    store.calls.clear()
    listed = list_workflow(store, "W")
    assert [one.found.entry.sequence for one in listed] == list(range(1, 61))
    assert all(validate_listed(kit, reader, one) for one in listed)
    assert store.calls["entries"] == 1
    # What is asked about each does not depend on how many there are.
    assert store.calls["newest_keyframe"] == 60 and store.calls["records"] <= 120


def test_a_listing_that_lies_about_the_one_before_is_found_in_all(
    service: CheckpointService, store: FailingStore
) -> None:
    store.alter("entries", lambda entries: [replace(entry, parent=entry.sequence - 2) for entry in entries])
    kit = make_kit(store)
    results = [validate_listed(kit, Reader(kit), one) for one in list_workflow(store, "W")]
    # The first one has nothing before it, whatever the listing says.
    assert [result.valid for result in results] == [True] + [False] * 59
